// What a recurrence's outputs would be off by if its state were kept in the operands' format: rounded at the
// end of every chunk, where nothing of the kind is declared. A direction in which to look at errors, made of
// the inputs alone; and the variance of what the declared roundings (rounding_noise.h) make along it,
// exactly: sum over the sources of (a c)^2 / 3, a the amplitude of a source's uniform draw, c its derivative.
//
// The states S at the chunks' starts are those that keys as they are rounded on their way into it make; kept,
// the state is S + D,
//   D <- round(w D + S) - S,   w the chunk's decay,
// and the chunk's tokens are off by x_t w D, x_t as they read the state at its start. Only what is carried
// from the chunk before is taken: the chunk's own rounding is that of the state's copy, which is declared. Of
// an element that a chunk adds less than a few spacings to, the copies may be rounded alike before and behind
// it: nothing of it is carried.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/sampled_chunk.h"

namespace assay {

class KeptState {
 public:
  KeptState(int64_t rows, int64_t columns, float u);

  void load(const std::vector<double>& S);
  /// w D at the chunk's start, rows x columns.
  const std::vector<float>& carried() const { return carried_; }
  /// What the chunk writes, whatever the state is. `keys`: tokens x rows, rounded when they are scaled there.
  std::vector<float> written(const SampledChunk&, const ChunkOperand& keys,
                             const std::vector<float>& values) const;
  /// To the end of the chunk that writes that.
  void advance(const SampledChunk&, const std::vector<float>& written);

 private:
  int64_t columns_;
  float u_;
  bool stored_ = false;  ///< S has been rounded: it is no initial state
  std::vector<float> S_, carried_;
};

/// Of the chunk's tokens, tokens x columns: sum over the rows of x_tc (w D)_c.
std::vector<float> moved_by(const SampledChunk&, const std::vector<float>& carried,
                            const std::vector<float>& reads, int64_t columns);

/// The variances, chunk by chunk, the last one first: of what rounding keys on their way into the state makes
/// of all later chunks along the direction.
class KeptKeys {
 public:
  KeptKeys(int64_t rows, int64_t columns) : columns_(columns), G_(static_cast<size_t>(rows * columns)) {}

  /// Derivatives by the state at the chunk's end.
  const std::vector<float>& derivatives() const { return G_; }
  /// Of the chunk's keys.
  static double variance(const SampledChunk&, const ChunkOperand& keys, const std::vector<float>& values,
                         const std::vector<float>& derivatives);
  /// To the chunk's start: `reads` and `direction` are its own.
  void advance(const SampledChunk&, const std::vector<float>& reads, const std::vector<float>& direction);

 private:
  int64_t columns_;
  std::vector<float> G_;
};

/// Of the sources that stay within a chunk: copies of its state, and queries that read it.
double variance_of_reads(const SampledChunk&, const SampledState&, float copy_amplitude,
                         const ChunkOperand& queries, const std::vector<float>& weights, float scale,
                         const std::vector<float>& direction);

}  // namespace assay
