// The inner loops of sampled roundings (rounding_noise.h), where they take the time: sums of products over
// tokens, channels and columns, and draws. The same source is compiled for three instruction sets; every sum
// is taken in one order (over channels of a score: sixteen sums side by side) and no multiply-add is fused,
// so that all three return the same bits; subnormal numbers are 0 in all.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/rounding_noise.h"

namespace assay {

/// One number per sample.
using Lanes = float __attribute__((vector_size(sizeof(float) * kNoiseSamples)));

/// y_rc += sum over i of x_ri from_ic, one i after the other. A factor x that is 0 takes nothing, whatever
/// `from` holds.
template <typename Factor, typename From, typename To>
struct SampledProduct {
  int64_t rows = 0, inner = 0, columns = 0;
  const Factor* x = nullptr;
  int64_t x_row = 0, x_inner = 0;  ///< how far apart in x rows are, and the terms of a sum
  const From* from = nullptr;      ///< inner x columns
  To* y = nullptr;                 ///< rows x columns
};
using SamplesTimesNumbers = SampledProduct<Lanes, float, Lanes>;
using NumbersTimesSamples = SampledProduct<float, Lanes, Lanes>;
using NumbersTimesNumbers = SampledProduct<float, float, float>;
using DoublesTimesDoubles = SampledProduct<double, double, double>;

/// y_tc += weights_tc sum over v of state_cv values_tv, one v after the other; where a weight is 0, nothing.
template <typename Number>
struct SampledContraction {
  int64_t tokens = 0, rows = 0, columns = 0;
  const float* weights = nullptr;  ///< tokens x rows
  const Number* state = nullptr;   ///< rows x columns
  const float* values = nullptr;   ///< tokens x columns
  Number* y = nullptr;             ///< tokens x rows
};

/// The scores of a token with `count` tokens j before it: terms scale q_c w_jc k_jc, added up, and the noise
/// of their operands: of each term times that of its query and of its key.
struct SampledScores {
  int64_t K = 0, count = 0;
  const float *q = nullptr, *k = nullptr, *w = nullptr;  ///< q: of the one token; count x K
  float scale = 1, u = 0;
  const Lanes *query_noise = nullptr, *key_noise = nullptr;  ///< null: none
  float *value = nullptr, *squares = nullptr;  ///< of each: sums of the terms, and of their squares
  float* common = nullptr;                     ///< of each term twice what is alike in sign
  Lanes* noise = nullptr;
  const float* along = nullptr;                  ///< of each: null, or what its terms are multiplied by and
  float *by_query = nullptr, *by_key = nullptr;  ///< added to, channel by channel; count x K
};

/// y_jc *= a_c, of tokens x rows.
struct SampledDecay {
  int64_t tokens = 0, rows = 0;
  const float* a = nullptr;
  float* y = nullptr;
};

/// What a pair of tokens t and j adds to the gradients of q_t, k_j and of the decays between them.
struct SampledPair {
  struct Row {
    Lanes* near = nullptr;
    float *common = nullptr, *squares = nullptr;
  };
  int64_t K = 0;
  const float *q = nullptr, *k = nullptr, *w = nullptr;
  float M = 0, squares = 0, u = 0;           ///< the score of values, the squares of its terms
  Lanes of_dq = {}, of_dk = {}, of_dg = {};  ///< roundings of that score
  const Lanes *query_noise = nullptr, *key_noise = nullptr;  ///< null: scores take operands as they are
  Row dq, dk, dg_from,
      dg_to;  ///< of t, of j, of the decays from one token to before another; null: not crossed
};

/// Samples' products with each other, with the exact values, and with 1.
struct SampledMoments {
  Lanes gram[kNoiseSamples] = {}, along = {}, summed = {};
};

/// How far apart the keys of places are whose draws follow each other.
inline constexpr uint64_t kNextPlace = 0x8cb92ba72f3d8dd7;

/// Where one lives, this thread's subnormal numbers are 0, taken and made, where the processor can do that:
/// they take a hundred times as long as others, samples decay to them, and no statistic is told by them.
class FlushedSubnormals {
 public:
  FlushedSubnormals();
  ~FlushedSubnormals();
  FlushedSubnormals(const FlushedSubnormals&) = delete;
  FlushedSubnormals& operator=(const FlushedSubnormals&) = delete;

 private:
  unsigned before_ = 0;
};

/// A bijection of 64 bits that leaves no pattern, of one word or several side by side.
template <typename Words>
inline __attribute__((always_inline)) Words mixed_each(Words x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
inline uint64_t mixed(uint64_t x) {
  return mixed_each(x);
}

/// How far roundings of operands that a weight w has scaled agree in sign (rounding_noise.h).
inline float alike(float w, float u) {
  const float off = 1 - w;
  return off <= u ? off : u * u / off;
}

struct SampledLoops {
  std::string_view instruction_set;
  void (*samples_times_numbers)(const SamplesTimesNumbers&);
  void (*numbers_times_samples)(const NumbersTimesSamples&);
  void (*numbers_times_numbers)(const NumbersTimesNumbers&);
  void (*doubles_times_doubles)(const DoublesTimesDoubles&);  ///< subnormal numbers are what they are
  void (*contract_samples)(const SampledContraction<Lanes>&);
  void (*decay)(const SampledDecay&);
  void (*scores)(const SampledScores&);
  void (*pair)(const SampledPair&);
  /// Uniform in [-amplitude, amplitude], y_i for the key + i kNextPlace, of each of `count` amplitudes.
  void (*draw)(uint64_t key, const float* amplitudes, int64_t count, Lanes* y);
  /// Adds those of `count` errors, e_i scale, beside exact values x.
  void (*add_moments)(const Lanes* e, const float* x, float scale, int64_t count, SampledMoments&);
  /// pairs_s += sum over i of first_i[s] second_i, `stride` apart.
  void (*add_pairs)(const Lanes* first, const Lanes* second, int64_t stride, int64_t count, Lanes* pairs);
};

/// The loops for this processor.
const SampledLoops& sampled_loops();
/// All that this processor can run, the plainest first.
std::vector<SampledLoops> runnable_sampled_loops();

/// By numbers_times_numbers of the state transposed.
void contract_numbers(const SampledContraction<float>&);

}  // namespace assay
