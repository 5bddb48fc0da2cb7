// compare_runs_of: one program run twice, in another order of blocks and warps, from other bytes in unwritten
// memory or on another architecture: where the two part first.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/base/vm/machine.h"

namespace assay::vm {

/// The first instruction instance whose result differs; in the order of launches and blocks, then of the
/// first run's execution.
struct Departure {
  SourceLocation where;
  std::string instruction;  ///< opcode
  std::array<uint32_t, 3> block{}, thread{};
  std::string first, second;  ///< the result in either run, in decimal or hexadecimal
};

struct RunSetting {
  MachineOptions machine;
  uint8_t poison = 0xff;  ///< Program::poison
};

struct TwoRuns {
  Outcome second;
  std::optional<Departure> departure;  ///< none: no register differs, or too much would have to be kept
  /// Whatever differs was added to memory by atomics on floats (or by SwapLoops), or follows from what such
  /// sums hold: the order of additions, which a program leaves open, and nothing else.
  bool by_order_of_sums = false;
  std::string skipped;  ///< why no departure was looked for; or empty
};

/// `first`: the outputs of the run under `a`. Keeps four bytes per warp instruction, at most 1 GiB. `locate`:
/// as ShadowOptions::locate. Throws BadInput as run() does.
TwoRuns compare_runs_of(
    const Program&, const TensorMap& inputs, const Outcome& first, const RunSetting& a, const RunSetting& b,
    const std::function<SourceLocation(const ptx::Module&, int32_t function, int32_t instruction)>& locate =
        nullptr);

}  // namespace assay::vm
