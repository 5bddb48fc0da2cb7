// The samples of the errors that a state carries from block to block (carried_errors.h): of what is new in a
// block, and of what is not.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "reference/sampled_chunk.h"
#include "src/verification/compare/rounding_model.h"

namespace assay {

/// What a bilinear form makes of each pair of samples.
class Form {
 public:
  /// Of `count` errors each, `stride` apart.
  void add_column(const Lanes* first, const Lanes* second, size_t stride, size_t count) {
    sampled_loops().add_pairs(first, second, static_cast<int64_t>(stride), static_cast<int64_t>(count),
                              pairs_);
  }
  void add(const Form& o) {
    for (int i = 0; i < kNoiseSamples; ++i) pairs_[i] += o.pairs_[i];
  }
  void make_symmetric() {
    for (int i = 0; i < kNoiseSamples; ++i)
      for (int j = 0; j < i; ++j) pairs_[i][j] = pairs_[j][i] = (pairs_[i][j] + pairs_[j][i]) / 2;
  }
  /// Of one sample with itself.
  double mean() const {
    double sum = 0;
    for (int i = 0; i < kNoiseSamples; ++i) sum += static_cast<double>(pairs_[i][i]);
    return sum / kNoiseSamples;
  }
  /// Mean square over the pairs of two samples; `common`: what it makes of the common source, which has the
  /// same sign in samples an even number apart, and is no variance.
  double variance(double common) const {
    double sum = 0;
    for (int i = 0; i < kNoiseSamples; ++i)
      for (int j = 0; j < kNoiseSamples; ++j) {
        const double y = static_cast<double>(pairs_[i][j]) - ((i - j) % 2 == 0 ? common : -common);
        sum += i == j ? 0 : y * y;
      }
    return sum / (2 * static_cast<double>(ExpectedErrors::kPairs));
  }

 private:
  Lanes pairs_[kNoiseSamples] = {};
};

/// The samples of one sequence and head from block to block, storing included.
class CarriedSamples {
 public:
  /// Of several threads, and in any order.
  void add(const NoiseBlock&, const OutputBlock&, const ReferenceOutput&, const OutputModel&);

  /// Nothing where no block follows another.
  std::optional<CarriedErrors> errors() &&;

 private:
  /// Of one block: what its states are off by.
  struct Gathered {
    StateReads reads;
    int64_t rows = 0;
    std::vector<Lanes> fresh = {}, old = {};
    std::vector<float> common = {}, kept = {};
    double kept_variance = 0, kept_common = 0;
  };
  static Gathered gathered(const NoiseBlock&, const OutputBlock&, const ReferenceOutput&, const OutputModel&);
  static void add_errors(const NoiseBlock&, size_t at, size_t flat, const ReferenceOutput&, Lanes* fresh,
                         Lanes* old);
  static void take_kept(const NoiseBlock&, const OutputBlock&, const OutputModel&, Gathered&);
  void take(Gathered);
  void add_products(const Gathered&);

  std::mutex mutex_;
  std::map<int64_t, Gathered> waiting_;  ///< by their first token
  int64_t next_ = 0;                     ///< the first token of the block to be taken
  CarriedErrors errors_;
  std::vector<Lanes> before_;
  std::vector<float> common_before_;
  Form old_;           ///< what is not new
  double common_ = 0;  ///< and of what is common to all
  double links_ = 0;   ///< variances of all blocks and columns
};

}  // namespace assay
