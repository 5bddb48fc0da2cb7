// Walks over the tokens of one slice, state by state as the declared arithmetic makes them: each from the one
// before, or in chunks of tiles (delta_tile.h), where what stands for a kernel's states is kept between the
// chunks' ends (norm_recurrence.h).
#pragma once
#include "reference/bounds/chunk_reads.h"

namespace assay {

/// One direction of a recurrence. What its tokens do is the derived class's.
class ChunkWalk {
 public:
  NormState start(const std::vector<double>& values) const { return recurrence_.start(values); }
  /// The last state, from that of the walk's last token.
  void finish(NormState&) const;

 protected:
  struct Sizes {
    int64_t T, K, V;
  };
  ChunkWalk(const Sizes& sizes, const Arithmetic& a, double underflow)
      : sizes_(sizes), arithmetic_(a), recurrence_(sizes.K, sizes.V, a, underflow), passages_(sizes.K) {}
  ~ChunkWalk() = default;

  /// Token t's transition passes errors on.
  virtual void pass(int64_t t, ChunkPassages&) const = 0;
  /// Token t's step on a state that is made at every token.
  virtual void step(int64_t t, NormState&) const = 0;
  /// The same in a chunk, by what the token's tile told of it.
  virtual void step_in_chunk(int64_t t, const double* update, const double* residual, const double* rest,
                             NormState&) const = 0;
  /// What a chunk's first state loses as the one state that all of its tokens read.
  virtual double held() const { return 0; }
  /// Of `tokens` from `first` on, in the walk's order, and the state before them; tile after tile.
  virtual TileUpdates tile(int64_t first, int64_t tokens, const NormState&) = 0;

  bool chunked() const { return in_chunks(arithmetic_); }

  const Sizes sizes_;
  const Arithmetic arithmetic_;
  const NormRecurrence recurrence_;
  ChunkPassages passages_;
};

/// S_t, first token first.
class ChunkStates : public ChunkWalk {
 public:
  /// From the state after token t - 1 to that after token t; for the first time in the tokens' order, when
  /// chunks get their norms and tiles what they are off by.
  void advance(int64_t t, NormState&);
  /// The state after token t - 1 as token t finds it.
  NormState found_by(int64_t t, const NormState&) const;
  /// At least |u^_t - what token t reads| of a value channel, of the states that stand for the kernel's; 0
  /// where it goes token by token.
  double residual(int64_t t, int64_t j) const { return chunked() ? residuals_(t, j) : 0; }

 protected:
  ChunkStates(const Sizes&, const Arithmetic&, double underflow);

 private:
  void take_tile(int64_t first, const NormState&);

  std::vector<ChunkPassage> passed_;        ///< the chunks, as far as they have been reached
  int64_t taken_ = 0;                       ///< tokens whose tiles are known
  TileMatrix updates_, residuals_, rests_;  ///< T x V, in chunks
};

/// G_t = dL/dS_t, last token first.
class ChunkAdjoints : public ChunkWalk {
 public:
  /// From what token t + 1 left to G_t: the write of scale q_t do_t.
  void read_out(int64_t t, NormState&);
  /// From G_t to what token t leaves.
  void advance(int64_t t, NormState&);
  /// At least |du^_t - what is read of G_t| likewise, of the tile at hand.
  double residual(int64_t t, int64_t j) const { return chunked() ? at_hand_.residual(row_of(t), j) : 0; }

 protected:
  /// `readers`: what reads S_t as q_t does.
  ChunkAdjoints(const Sizes&, const SliceMatrix& readers, const SliceMatrix& d_o, double scale,
                const Arithmetic&, double underflow);

  const SliceMatrix &readers_, &d_o_;
  const double scale_;

 private:
  void take_tile(int64_t last, const NormState&);
  int64_t row_of(int64_t t) const { return first_ + at_hand_.update.rows - 1 - t; }

  const std::vector<double> zeros_;
  int64_t first_;        ///< of the tile at hand
  TileUpdates at_hand_;  ///< its rows, last first
};

}  // namespace assay
