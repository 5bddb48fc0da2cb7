// What errors a kernel's declared roundings make likely, block by block of every output:
// reference/rounding_noise.h applied to one problem. It knows nothing of any kernel's values.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reference/operator.h"
#include "reference/rounding_noise.h"
#include "src/verification/compare/carried_errors.h"
#include "src/verification/compare/output_blocks.h"

namespace assay {

/// Sums over the elements of a part. Sums of two parts are those of both.
struct ExpectedErrors {
  static constexpr size_t kPairs = kNoiseSamples * (kNoiseSamples - 1) / 2;

  int64_t elements = 0;
  double exact_squares = 0;  ///< x^2 of the exact values
  /// What no sampled rounding covers, with its full bound r: r^2, |x| r, r.
  double rest_squares = 0, rest_along = 0, rest = 0;
  /// What is common to all, c: c^2, |sum of c x|, |sum of c| of each block.
  double common_squares = 0, common_along = 0, common_sum = 0;
  // Of the sampled errors e:
  double noise_squares = 0;  ///< e^2, mean over the samples
  /// Of sources that stay within a block, or a row of it: tr(Sigma^2) of these, and the largest.
  double near_square = 0, largest_near_square = 0;
  double far_squares = 0;                         ///< e^2 of all other sources, mean over the samples
  std::array<double, kPairs> products = {};       ///< e e' of two samples, of all other sources
  std::array<double, kNoiseSamples> along = {};   ///< e x of each
  std::array<double, kNoiseSamples> summed = {};  ///< e of each

  void add(const ExpectedErrors&);
};

/// An exact value as the sums take it: 0 where its square would underflow.
inline double summed_value(double mid) {
  return std::fabs(mid) < 0x1p-400 ? 0 : mid;
}

struct OutputModel {
  OutputBlocks blocks;
  std::vector<ExpectedErrors> expected;  ///< of each block
  std::vector<double> rest;              ///< of each element; negative: the element is not judged
  std::string skipped;                   ///< why the model says nothing of this output
  Dtype operands = Dtype::fp32;          ///< format whose roundings are sampled
  std::vector<CarriedErrors> carried;    ///< of each sequence and head that reads a state
  int threads = 1;                       ///< that may look at it

  explicit OutputModel(OutputBlocks b) : blocks(std::move(b)), expected(blocks.blocks().size()) {}
};

struct RoundingProblem {
  const Operator* op = nullptr;
  const Problem* problem = nullptr;  ///< with what the kernel declares
  /// At most so many multiplications of samples are spent; what takes more is skipped. 0: all of it is.
  double work = 0;
};

/// By output, for every output of the reference.
std::map<std::string, OutputModel> rounding_model(const RoundingProblem&, const ReferenceResult&);

/// Why the model fails on these inputs: tokens or channels that are repeated, values of few kinds; empty
/// where it does not. Then roundings are alike that it takes for independent, or are none at all.
std::string inputs_without_model(const Operator&, const Problem&);

}  // namespace assay
