// What the declared roundings do within one chunk of the gated family, from its states at both ends
// (gated_noise.h).
#pragma once
#include <cstdint>
#include <vector>

#include "reference/gated_form.h"
#include "reference/noise_amplitudes.h"
#include "reference/sampled_chunk.h"

namespace assay {

/// What is the same for all chunks of a slice.
struct GatedNoiseModel {
  GatedNoiseModel(const Problem&, const GatedForm&, const Slice&, bool backward, const NoiseVisit&);

  int64_t chunks() const { return (slice.tokens + length - 1) / length; }
  bool noisy_S() const { return amplitudes.key > 0 || amplitudes.S_end > 0; }
  bool noisy_G() const { return amplitudes.query > 0 || amplitudes.G_end > 0; }
  NoiseVisitor visitor(double rest) const { return {visit, length, rest}; }
  /// The slice's part of a tensor of states.
  std::vector<double> decoded_state(const Tensor&) const;

  const GatedTensors x;
  const Slice slice;
  const NoiseVisit& visit;
  const bool backward;
  const int64_t K, V, H;
  const double u;
  const bool split;  ///< operands are split, and none is rounded to its format
  const float scale;
  int64_t length = 1;  ///< of a chunk
  NoiseAmplitudes amplitudes;
  NoiseRests rests;
  const Tensor *d_o = nullptr, *dS = nullptr;
  std::vector<float> bonus;

 private:
  /// How many chunks' ends what a state holds has crossed, at most: what came before has decayed.
  double chunks_crossed() const;
};

/// Where a chunk's outputs would be off if the state were kept in the operands' format (kept_state.h), and
/// the variance of what its keys' roundings make of later chunks' along it.
struct KeptDirection {
  std::vector<float> rows;
  double variance = 0;
};

class GatedChunkNoise {
 public:
  GatedChunkNoise(const GatedNoiseModel&, int64_t number);

  const SampledChunk& chunk() const { return chunk_; }
  const std::vector<float>& values() const { return v_; }
  std::vector<float> state_reads() const;
  ChunkOperand keys() const;

  /// S over the chunk, and its noise: a rounding of each key that is scaled to the chunk's end.
  void advance(SampledState& S) const;
  /// G likewise in reversed time.
  void retreat(SampledState& G) const;

  /// Hands on o, from S at the chunk's start.
  void outputs(const SampledState& S, const KeptDirection&);
  /// Hands on the gradients, from S there and G at its end.
  void gradients(const SampledState& S, const SampledState& G);

 private:
  /// What a chunk's gradients are summed up in.
  struct Gradients {
    SampledRows dq, dk, dv, dg;  ///< dg: of token t what t has more than t - 1
    Gradients(int64_t tokens, int64_t K, int64_t V)
        : dq(tokens, K), dk(tokens, K), dv(tokens, V), dg(tokens + 1, K) {}
  };
  struct ScoreRow;
  struct ScoreVariance;

  size_t key(int64_t t, int64_t c) const { return static_cast<size_t>(t * of_.K + c); }
  size_t value(int64_t t, int64_t v) const { return static_cast<size_t>(t * of_.V + v); }
  ChunkOperand queries() const { return {q_, NoiseSource::read, of_.amplitudes.read}; }
  void draw_in_scores();
  SampledScores scores(int64_t t, int64_t count, const float* w, ScoreRow&) const;
  void own_score(int64_t t, ScoreRow&) const;
  void score_values(int64_t t, const std::vector<float>& ones, ScoreRow&) const;
  float score_size(const ScoreRow&, int64_t j) const;
  void add_scores(SampledRows& o, ScoreVariance&) const;
  void add_pairs(Gradients&) const;
  void pair_gradients(int64_t t, int64_t j, const float* w, const ScoreRow& of_values, Gradients&) const;
  void gates_across(const SampledState& S, const SampledState& G, Gradients& y) const;
  void visit_gates(SampledRows& dg) const;

  const GatedNoiseModel& of_;
  const int64_t first_, tokens_;
  SampledChunk chunk_;
  std::vector<float> q_, k_, v_, do_;
  std::vector<Lanes> key_noise_, query_noise_;
};

}  // namespace assay
