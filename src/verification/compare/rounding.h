// The statistical verdict: do the declared roundings explain the errors of an output?
//
// Under the model (reference/rounding_noise.h) the errors of a part are e = s + r + b: s made by storing the
// results, uniform and independent; r = sum of d_i c_i over the sources, as the samples show them; b at
// most the rest of the bound, and what is common to all times one number within [-1, 1]. Both s and r are
// sub-Gaussian with covariance Sigma = Sigma_s + Sigma_r, as a uniform number is with its own variance. So,
// for every t, but with probability e^-t each,
//   |s + r|^2 <= tr Sigma + 2 sqrt(tr(Sigma^2) t) + 2 |Sigma| t      (Hsu, Kakade, Zhang 2012)
//   |x . (s + r)| <= sqrt(2 (t + ln 2) x^T Sigma x)                  for any direction x
// and |e| <= |s + r| + |b|, |x . e| <= |x . (s + r)| + |x| . |b|. tr(Sigma^2) and |Sigma| are what an
// effective number of independent terms is: sources with a long reach make them large. Samples e_i, R of
// them, of the sources that stay within a block (near) and of all others (far) show
//   tr Sigma_r      the mean |e_i|^2, plus 2 sqrt(tr(Sigma_r^2) t / R) for its own error
//   tr(Sigma_r^2)   of either kind the mean (e_i . e_j)^2 over the R (R - 1) / 2 pairs, raised by 1 + t / 60
//                   for its own error, as few samples can halve it; near ones of several blocks add up, and
//                   so do a state's rows where no source enters two
//   |Sigma_r|       at most the largest near block's sqrt(tr(Sigma^2)) plus that of the far ones
//   x^T Sigma_r x   the mean (x . e_i)^2, with R degrees of freedom: tau standard deviations are passed with
//                   probability (1 + tau^2 / R)^(-R/2); or at most |Sigma_r| |x|^2
// Operands are at most as many kinds as there are significands times decays in a chunk: where more sources
// than that are of one kind their roundings may be the same, and the two norms are no smaller than for that
// many sources. Exact results need not be spread evenly over the spacing, as where something small is added
// to a number that the format has: where little else errs, storing does what it does to the exact values,
// which is known. So much more is allowed: their roundings' squares, where they are more than a uniform
// number's, slope and mean. Results that are nearer to each other than a sixteenth of their format's spacing
// count as one source likewise.
//
// Three statistics of each part: the root mean square, the slope on the exact values (x = exact), the mean
// (x = 1). And two of each sequence and head: what a state carries (carried_errors.h), and x = where the
// output would be off if the state were kept in the operands' format, whose variance is known without
// samples (reference/kept_state.h), and its sign too. There values that are rounded alike are one source by
// what x makes of all of them. All parts of all outputs together raise a false alarm with probability
// kFalseAlarms at most: t is the logarithm of the number of statistics over it.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "src/base/tensor/tensor.h"
#include "src/result/rounding.h"
#include "src/verification/compare/rounding_model.h"

namespace assay {

inline constexpr double kFalseAlarms = 1e-9;
inline constexpr double kMostEvidence = 64;

/// What a part's statistics may be, and are.
struct PartStatistics {
  RoundingPart part;
  double smallest = 0;  ///< the smallest uniform relative error that one of them would show
  bool late = false;    ///< of the last quarter of the tokens
  /// Of root mean square, slope and mean the largest t, at most kMostEvidence, at which it is more than is
  /// allowed: beyond t with probability e^-t at most.
  std::array<double, 3> evidence = {};
};

/// How many statistics are looked at in a run with these outputs.
int64_t statistics_in(const std::map<std::string, OutputModel>&, const TensorMap& outputs);

/// Every part of an output, in the order of OutputBlocks::parts; `statistics`: of the whole run. Empty where
/// the model says nothing of it.
std::vector<PartStatistics> part_statistics(const Tensor& got, const ReferenceOutput&, const OutputModel&,
                                            int64_t statistics);

/// Values on so coarse a grid that roundings of them to `dtype` are no more uniform.
bool on_coarse_grid(const ReferenceOutput&, Dtype, int threads = 1);

struct RoundingJudgement {
  RoundingOutput output;
  std::vector<PartStatistics> parts;    ///< empty where nothing is judged
  std::vector<PartStatistics> carried;  ///< of each sequence and head: evidence[0] (carried_errors.h)
};
RoundingJudgement judge_rounding(const Tensor& got, const ReferenceOutput&, const OutputModel&,
                                 int64_t statistics);

}  // namespace assay
