// Laws that need an operator's type: what its transcription must obey over number types that no evaluation
// uses. One source per operator is made from operators.def; the tests loop over the rows.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/numerics/ball.h"
#include "src/base/numerics/fnv.h"

namespace assay {

struct LawShape {
  int64_t T, H, K, V, M;
};

/// <w, J d> against <J^T w, d> over intervals of 60 digits: both are certain to hold the exact number.
struct AdjointCheck {
  std::string moved;          ///< the input, or "all"
  Ball<double> disagreement;  ///< around <w, J d> - <J^T w, d>
  double forward;             ///< <w, J d>
  bool may_vanish;            ///< a gate's derivative is zero where everything has decayed
};

/// Differences of a run split in two and resumed from the state, forward and backward, over such intervals.
struct ResumedCheck {
  bool all_hold_zero = true;
  double widest = 0;  ///< radius
};

/// The transcription over fp32, as a kernel would be written, against the reference's bound.
struct Fp32Check {
  std::string output;
  int64_t judged = 0, outside = 0, unbounded = 0;
  double ratio = 0;   ///< largest error / bound
  bool exact = true;  ///< the bound is 0 everywhere
};

struct OperatorLaws {
  std::string name;
  /// Each input moved alone, and all together.
  std::vector<AdjointCheck> (*adjoint)(const std::string& decay, const LawShape&, uint64_t seed);
  ResumedCheck (*resumed)(const std::string& decay, const LawShape&, uint64_t seed);
  /// Outputs and gradients; every declared relative error is `share` of the true one.
  std::vector<Fp32Check> (*fp32)(const std::string& decay, const LawShape&, uint64_t seed, double share);
  /// The same, on the way to inputs with as large errors as hill climbing finds in so many steps.
  std::vector<Fp32Check> (*climbed)(const std::string& decay, const LawShape&, uint64_t seed, int64_t steps);
};

/// In the order of operators.def.
std::vector<OperatorLaws> operator_laws();

/// The first seed of an operator's problems, by a hash of its name: those of others stay what they are when
/// one is added.
inline uint64_t first_seed(std::string_view name) {
  return fnv1a(name) >> 32;
}

}  // namespace assay
