#include "reference/adjoint_block.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr int W = kAdjointColumns;

int64_t chunk_of(const Arithmetic& a) {
  const bool costs = a.boundary > 0 || (a.crossing > 0 && a.crossing_per_nat > 0);
  return costs ? a.chunk : 0;
}

}  // namespace

AdjointBlock::AdjointBlock(const AdjointProblem& f, const Slice& slice, int64_t v0)
    : f_(f),
      slice_(slice),
      v0_(v0),
      width_(std::min<int64_t>(W, f.V() - v0)),
      size_(adjoint_state_size(f.K())),
      state_chunk_(chunk_of(f.model.arithmetic().state)),
      adjoint_chunk_(chunk_of(f.model.arithmetic().adjoint)),
      G_(static_cast<size_t>(size_)) {
  segment_ =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(slice.tokens)))));
}

void AdjointBlock::run(std::vector<AdjointSums>& sums) {
  const auto size = static_cast<size_t>(size_);
  std::vector<double> state(size);
  if (f_.x.S0) load(*f_.x.S0, state);
  if (f_.dS) load(*f_.dS, G_);
  // In reversed time the first token's `step` meets dS_T too; without tokens nothing does.
  const double step = slice_.tokens > 0 ? f_.model.arithmetic().adjoint.step : 0;
  for (int64_t c = 0; c < f_.K(); ++c)
    for (int64_t j = 0; j < W; ++j) {
      const auto i = static_cast<size_t>(c * 3 * W + j);
      G_[i + 2 * W] = step * G_[i + W];
    }
  std::vector<std::vector<double>> checkpoints;
  for (int64_t t = 0; t < slice_.tokens; t += segment_) {
    checkpoints.push_back(state);
    const int64_t tokens = std::min(segment_, slice_.tokens - t);
    read(t, tokens);
    run_states(t, tokens, state.data(), false);
  }
  std::vector<double> states(size * static_cast<size_t>(segment_ + 1));
  for (int64_t i = static_cast<int64_t>(checkpoints.size()) - 1; i >= 0; --i) {
    const int64_t first = i * segment_, tokens = std::min(segment_, slice_.tokens - first);
    read(first, tokens);
    std::copy(checkpoints.back().begin(), checkpoints.back().end(), states.begin());
    checkpoints.pop_back();
    run_states(first, tokens, states.data(), true);
    run_reverse(first, tokens, states.data(), sums);
    store_dv(first, tokens);
  }
  if (f_.dS0) store_dS0();
}

/// Of the tokens from t on, the first that starts another chunk, at most `end`.
int64_t AdjointBlock::run_end(int64_t t, int64_t end, int64_t chunk) const {
  return chunk > 0 ? std::min(end, (t / chunk + 1) * chunk) : end;
}

/// States of the segment's tokens. A state at a chunk's end carries that chunk's error already, which its own
/// readout does not have: more, never less.
void AdjointBlock::run_states(int64_t first, int64_t tokens, double* states, bool keep) const {
  for (int64_t t = first; t < first + tokens;) {
    const int64_t end = run_end(t, first + tokens, state_chunk_), at = t - first;
    double* from = keep ? states + at * size_ : states;
    gated_kernels().states({end - t, f_.K(), coefficients_.data() + at * f_.K(), f_.model.state().written(),
                            v_.data() + at * W, from, keep});
    const bool ends = state_chunk_ > 0 && (end % state_chunk_ == 0 || end == slice_.tokens);
    double* last = keep ? states + (end - first) * size_ : states;
    if (ends) end_chunk(f_.model.state(), state_chunk_, (end - 1) / state_chunk_ * state_chunk_, last);
    t = end;
  }
}

void AdjointBlock::run_reverse(int64_t first, int64_t tokens, const double* states,
                               std::vector<AdjointSums>& sums) {
  for (auto* x : {&dv_, &dv_abs_, &dv_excess_}) x->resize(v_.size());
  for (int64_t end = first + tokens; end > first;) {
    const int64_t chunk = adjoint_chunk_, in_chunk = chunk > 0 ? (end - 1) / chunk * chunk : first;
    const int64_t begin = std::max(first, in_chunk), at = begin - first;
    (f_.x.exclusive() ? gated_kernels().reverse_exclusive : gated_kernels().reverse)(
        {end - begin, f_.K(), coefficients_.data() + at * f_.K(), f_.model.adjoint().written(),
         v_.data() + at * W, d_o_.data() + at * W, states + at * size_, G_.data(),
         sums.data() + begin * f_.K(), dv_.data() + at * W, dv_abs_.data() + at * W,
         dv_excess_.data() + at * W});
    if (chunk > 0 && begin == in_chunk) end_chunk(f_.model.adjoint(), chunk, begin, G_.data());
    end = begin;
  }
}

/// E <- E + b (P + E) for the chunk of tokens from `first` on.
void AdjointBlock::end_chunk(const BoundModel& model, int64_t chunk, int64_t first, double* state) const {
  const int64_t tokens = std::min(chunk, slice_.tokens - first);
  std::vector<double> decayed(static_cast<size_t>(f_.K())), row(decayed.size());
  for (int64_t t = 0; f_.x.gated() && t < tokens; ++t) {
    f_.x.read_decays(slice_, first + t, 1, row.data(), nullptr);
    for (size_t c = 0; c < row.size(); ++c) decayed[c] += std::fabs(row[c]) * (1 + 0x1p-40);
  }
  for (size_t c = 0; c < decayed.size(); ++c) {
    const double error = model.chunk_error(decayed[c]);
    double* P = state + c * 3 * W + W;
    for (int64_t j = 0; j < W; ++j) P[W + j] += error * (P[j] + P[W + j]);
  }
}

void AdjointBlock::load(const Tensor& tensor, std::vector<double>& state) const {
  double row[W];
  for (int64_t c = 0; c < f_.K(); ++c) {
    decode_run(tensor, f_.state_row(slice_, c) + v0_, width_, row);
    for (int64_t j = 0; j < width_; ++j) {
      const auto i = static_cast<size_t>(c * 3 * W + j);
      state[i] = row[j], state[i + W] = std::fabs(row[j]);
    }
  }
}

/// Coefficients and columns of the tokens from `first` on.
void AdjointBlock::read(int64_t first, int64_t tokens) {
  const int64_t row = slice_.first_row + first;
  const auto n = static_cast<size_t>(tokens * f_.K());
  q_.resize(n), k_.resize(n), g_.resize(n), a_.resize(n), coefficients_.resize(n);
  decode_rows(f_.x.q, row, tokens, f_.H(), slice_.h, f_.K(), q_.data());
  decode_rows(f_.x.k, row, tokens, f_.H(), slice_.h, f_.K(), k_.data());
  f_.x.read_decays(slice_, first, tokens, g_.data(), a_.data());
  for (size_t i = 0; i < n; ++i) {
    const double a = a_[i];
    const ExcessStep S = f_.model.state().step(a, g_[i]), G = f_.model.adjoint().step(a, g_[i]);
    coefficients_[i] = {a,       k_[i],  std::fabs(k_[i]), q_[i], std::fabs(q_[i]),
                        S.carry, S.grow, G.carry,          G.grow};
  }
  v_.assign(static_cast<size_t>(tokens * W), 0), d_o_ = v_;
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t from = f_.output_row(slice_, first + t) + v0_;
    decode_run(f_.x.v, from, width_, v_.data() + t * W);
    decode_run(f_.d_o, from, width_, d_o_.data() + t * W);
    for (int64_t j = 0; j < width_; ++j) d_o_[static_cast<size_t>(t * W + j)] *= f_.problem.scale;
  }
}

void AdjointBlock::store_dv(int64_t first, int64_t tokens) {
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < width_; ++j) {
      const auto out = static_cast<size_t>(f_.output_row(slice_, first + t) + v0_ + j),
                 i = static_cast<size_t>(t * W + j);
      f_.dv->mid[out] = dv_[i], f_.dv->companion[out] = dv_abs_[i], f_.dv->bound[out] = dv_excess_[i];
    }
}

void AdjointBlock::store_dS0() {
  for (int64_t c = 0; c < f_.K(); ++c)
    for (int64_t j = 0; j < width_; ++j) {
      const auto out = static_cast<size_t>(f_.state_row(slice_, c) + v0_ + j),
                 i = static_cast<size_t>(c * 3 * W + j);
      f_.dS0->mid[out] = G_[i], f_.dS0->companion[out] = G_[i + W], f_.dS0->bound[out] = G_[i + 2 * W];
    }
}

}  // namespace assay
