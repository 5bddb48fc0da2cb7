// Samples of what roundings do, chunk by chunk (rounding_noise.h): the tokens of one chunk of a recurrence
//   S <- diag(e^{g_t}) S + k_t v_t^T
// over `rows` key channels (or slots), its states at the chunk's ends, and what is read from them.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "reference/operator.h"
#include "reference/rounding_noise.h"
#include "reference/sampled_loops.h"
#include "reference/slices.h"

namespace assay {

/// What is drawn: one family of roundings each.
enum class NoiseSource : uint64_t {
  key,
  query,
  key_in_score,
  query_in_score,
  read,
  score,
  state_copy,
  adjoint_copy,
  // Of gated slot attention's first pass beside: dy is what p is in the second, its scores and copies.
  logit_score,
  logit_state_copy,
  logit_adjoint_copy,
  weight,
  weight_gradient,
  gradient_query,
  gradient_query_in_score,
  gradient_read,
  gradient_score,
  inner_score,
  // Of states of split operands, where a chunk's share is added to them.
  state_end,
  adjoint_end
};

/// The largest power of two that is not above |x|: the spacing of a format there is 2u times it.
inline float binade(float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7f800000u);
}

/// How many roundings an amplitude is made of (noise_amplitudes.h).
inline float roundings_of(float amplitude, float u) {
  return amplitude * amplitude / (u * u);
}

std::vector<float> squares_of(const std::vector<float>&);

/// Tokens x columns of a chunk: what reaches no other chunk, what does, and what is common to all, at most.
struct SampledRows {
  int64_t columns = 0;
  std::vector<Lanes> near, far;
  std::vector<float> common;
  std::vector<float> squares;  ///< of the terms
  std::vector<float> moved;    ///< of what else these terms may be off by

  SampledRows(int64_t rows, int64_t columns);
};

/// A state, rows x columns, and how each sample's differs from it.
struct SampledState {
  int64_t columns = 0;
  std::vector<float> value;
  std::vector<Lanes> noise;
  std::vector<float> common, squares, moved;  ///< as of SampledRows

  SampledState(int64_t rows, int64_t columns);
  void load(const std::vector<double>&);
};

/// What reads a state or is written to it, tokens x rows: rounded when it is scaled to its place, and off
/// itself where it is made inside the operator.
struct ChunkOperand {
  const std::vector<float>& x;
  NoiseSource source;
  float amplitude = 0;           ///< of that rounding
  const Lanes* near = nullptr;   ///< how far off x is, in each sample
  const Lanes* far = nullptr;    ///< likewise
  const float* moved = nullptr;  ///< squares of what else it may be off by
  bool wide = false;             ///< x has more digits than the format: rounded also where nothing scales it
};

/// What passes a chunk by way of states: token t reads x_t (S d_t) scale from the state before the chunk, and
/// y_t (G c_t) of what comes after it is its write's.
struct StateEnds {
  const SampledState &S, &G;
  const std::vector<float>&d, &c;  ///< tokens x columns of the states
  const std::vector<float>&x, &y;  ///< tokens x rows
  float scale;
};

class SampledChunk {
 public:
  SampledChunk(const Slice&, int64_t rows, double u);

  /// The next tokens to look at: their decays a, tokens x rows. Where the readout is exclusive it does not
  /// see its own token's.
  void begin(int64_t chunk, int64_t tokens, const std::vector<double>& a, bool exclusive);

  int64_t tokens() const { return tokens_; }
  size_t at(int64_t t, int64_t c) const { return static_cast<size_t>(t * rows_ + c); }
  float u() const { return u_; }
  /// What a rounding of x is relative to, in units of u: split operands have errors of products and sums, by
  /// their size.
  float rounded_size(float x) const { return u_ < 1 ? binade(x) : std::fabs(x); }
  const Lanes& common() const { return common_; }
  /// Decays from the chunk's start to a read, from a write to its end; over all of it.
  const std::vector<float>& into() const { return into_; }
  const std::vector<float>& after() const { return after_; }
  const std::vector<float>& whole() const { return whole_; }

  /// Uniform in [-amplitude, amplitude], one number per sample; the same for the same place.
  void draw(NoiseSource, int64_t index, float amplitude, Lanes&) const;
  /// One after the other from place `first` on.
  void draw(NoiseSource, int64_t first, const float* amplitudes, int64_t count, Lanes*) const;
  /// What a rounding of an operand x is relative to, in units of u: at most `size`, and at most what x has
  /// been scaled by anywhere in its chunk, as what it was before has the format's digits.
  float scaled_size(float x, float size, int64_t c) const;
  /// Relative noise of operands on their way into scores. What a tile makes of them is not known here: their
  /// significands are taken for spread evenly in their logarithm, of which the squared spacing is
  /// 3 / (8 ln 2) of that of a relative u in the mean. `wide`: as of ChunkOperand.
  std::vector<Lanes> in_scores(NoiseSource, float amplitude, bool wide = false) const;
  /// Amplitude of that of a row's operands.
  float in_score_size(float amplitude, int64_t row, bool wide = false) const;
  /// Amplitude of the rounding of scale x w, x operand i, of channel c, w its weight.
  float rounding_size(const ChunkOperand&, size_t i, size_t c, float w, float scale) const;

  /// S <- diag(whole) S + sum_t scale x_t weight_t values_t^T, with its noise.
  void write(SampledState& S, const ChunkOperand&, const std::vector<float>& weights,
             const std::vector<float>& values, float scale) const;
  /// A rounding of each of its numbers.
  void round(SampledState&, NoiseSource, float amplitude) const;
  /// What copying a state rounds.
  std::vector<Lanes> copied(const SampledState&, NoiseSource, float amplitude) const;
  /// y_t += sum_c scale x_tc weight_tc S_c from a rounded copy; `far`: the state is noisy.
  void read(const SampledState& S, const std::vector<Lanes>& copy, const ChunkOperand&,
            const std::vector<float>& weights, float scale, bool far, SampledRows& y) const;
  /// y_tc += scale weight_tc sum_v state_cv values_tv.
  void contract(const std::vector<Lanes>& state, const std::vector<float>& values,
                const std::vector<float>& weights, float scale, std::vector<Lanes>& y) const;
  void contract(const std::vector<float>& state, const std::vector<float>& values,
                const std::vector<float>& weights, float scale, std::vector<float>& y) const;
  /// The squares of the terms that it adds up, from those of the state's.
  void contract_squares(const std::vector<float>& squares, const std::vector<float>& values,
                        const std::vector<float>& weights, float scale, std::vector<float>& y) const;
  /// Where states differ by of_S and of_G, terms of the gates' gradients that cross the chunk's ends: from a
  /// state before it to a token of it, from a token of it to what is after it, and over the whole of it.
  /// Added up over the tokens, dg ((tokens + 1) x rows) are the gradients. `both`: a term takes one of each.
  template <typename Number>
  void gates_across(const StateEnds&, const std::vector<Number>& of_S, const std::vector<Number>& of_G,
                    float both, std::vector<Number>& dg) const;

  /// Calls row(t, count, weights) for every token of the chunk with how many tokens 0 .. count - 1 its terms
  /// cross decays from (itself among them, but where the readout is exclusive) and the decay of each row in
  /// between, count x rows; and own(t) for a token's own term beside.
  template <typename Row, typename Own>
  void for_each_row(const Row& row, const Own& own) const {
    std::vector<float> weights(a_.size());
    for (int64_t t = 0; t < tokens_; ++t) {
      const auto decay = [&] {
        sampled_loops().decay({t, rows_, a_.data() + t * rows_, weights.data()});
        std::fill_n(weights.begin() + t * rows_, rows_, 1.0f);
      };
      if (!exclusive_) decay();
      row(t, exclusive_ ? t : t + 1, weights.data());
      if (exclusive_) own(t), decay();
    }
  }

  /// Pair by pair likewise: pair(t, j, weights of j).
  template <typename Pair, typename Own>
  void for_each_pair(const Pair& pair, const Own& own) const {
    for_each_row(
        [&](int64_t t, int64_t count, const float* w) {
          for (int64_t j = 0; j < count; ++j) pair(t, j, w + j * rows_);
        },
        own);
  }

 private:
  /// An operand at its place, tokens x rows; what it has not is empty.
  struct ScaledOperand {
    std::vector<float> x, squares;
    std::vector<float> moved, common;  ///< as of SampledRows, by the operand itself
    std::vector<Lanes> rounding;
  };
  ScaledOperand scaled(const ChunkOperand&, const std::vector<float>& weights, float scale) const;
  std::vector<Lanes> drawn(NoiseSource, const std::vector<float>& amplitudes) const;
  template <typename Number>
  SampledContraction<Number> contraction(const std::vector<Number>& state, const std::vector<float>& values,
                                         const std::vector<float>& weights, std::vector<Number>& y) const;

  const int64_t rows_;
  const uint64_t key_;
  const float u_;
  Lanes common_ = {};
  bool exclusive_ = false;
  int64_t number_ = 0, tokens_ = 0;
  std::vector<float> a_, into_, after_, whole_;
};

/// How a chunk's rows read its state, as of NoiseBlock; left out where a block is no chunk.
struct StateReadout {
  const std::vector<float>&reads, &left, &kept;
  double kept_variance = 0;
};

/// Hands a chunk's rows on, block by block. Where chunks of `chunk` tokens and blocks do not fit, all of it
/// may reach other blocks.
struct NoiseVisitor {
  const NoiseVisit& visit;
  int64_t chunk = 1;
  double rest = 0;

  void rows(std::string_view output, int64_t first, SampledRows& y, const StateReadout* = nullptr) const;
  /// rows x columns of a state; `rows_apart`: each row has sources of its own.
  void state(std::string_view output, int64_t rows, const SampledState&, bool rows_apart = false) const;
};

/// Rows x columns, columns x rows.
SampledState transposed(const SampledState&);

}  // namespace assay
