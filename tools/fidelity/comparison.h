// Runs one form on two engines and compares every bit of every result.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/backend/backend.h"
#include "tools/fidelity/form.h"

namespace assay::fidelity {

/// One result that differs, or the digest of several results of one index.
struct Mismatch {
  uint64_t index = 0;
  std::vector<uint64_t> operands;  ///< as the first engine drew them
  uint64_t tested = 0, expected = 0;
};

struct Comparison {
  int64_t results = 0;
  int64_t mismatches = 0;  ///< indices that differ
  bool at_least = false;   ///< some differing threads were not looked into: there are more
  std::optional<Mismatch> first;
  std::optional<std::string> refused;  ///< an engine does not run the form: why
};

/// Indices [base, base + count) of a form on `tested` and `expected`; count is a multiple of 32 * stride.
/// Every 64 results or more are folded into a digest on the engine itself; where digests differ, the indices
/// behind them are run one by one.
Comparison compare(const Form&, uint64_t base, int64_t count, uint32_t stride, Backend& tested,
                   Backend& expected);

/// The recorded subset of a form: 2^14 indices at a place that its name decides, a 64th of 2^20.
inline constexpr int64_t subset_indices = 1 << 14;
/// Digest of the subset's results on an engine (FNV-1a over the threads' digests). Throws BadInput where the
/// engine does not run the form.
uint64_t subset_digest(const Form&, Backend&);

}  // namespace assay::fidelity
