#include "reference/adjoint_block.h"

#include <algorithm>
#include <cmath>

#include "reference/elements.h"

namespace assay {
namespace {

constexpr int W = kAdjointColumns;

int64_t chunk_of(const Arithmetic& a) {
  const bool costs = a.boundary > 0 || (a.crossing > 0 && a.crossing_per_nat > 0) || a.write_scaled > 0 ||
                     a.prefix_per_nat > 0;
  return costs ? a.chunk : 0;
}
/// Tokens after which the inner loops end so that a state can be stored.
int64_t stored_of(const BoundModel& model) {
  return model.stored() > 1 ? model.stored() : 0;
}
/// The first multiple of one of `everies` (0: has none) behind t, at most `end`.
int64_t next_end(int64_t t, int64_t end, std::initializer_list<int64_t> everies) {
  for (const int64_t every : everies)
    if (every > 0) end = std::min(end, (t / every + 1) * every);
  return end;
}
/// The last multiple below t, at least `first`.
int64_t last_start(int64_t t, int64_t first, std::initializer_list<int64_t> everies) {
  for (const int64_t every : everies)
    if (every > 0) first = std::max(first, (t - 1) / every * every);
  return first;
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
      G_(static_cast<size_t>(size_)),
      own_of_G_(static_cast<size_t>(f.K() * W)) {
  segment_ =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(slice.tokens)))));
}

void AdjointBlock::run(std::vector<AdjointSums>& sums) {
  std::vector<double> state(static_cast<size_t>(size_)), own(static_cast<size_t>(f_.K() * W));
  if (f_.x.S0) load(*f_.x.S0, state);
  if (f_.dS) load(*f_.dS, G_);
  // In reversed time the first token's `step` meets dS_T too; without tokens nothing does.
  const double step = slice_.tokens > 0 ? f_.model.arithmetic().adjoint.step : 0;
  for (int64_t c = 0; c < f_.K(); ++c)
    for (int64_t j = 0; j < W; ++j) {
      const auto i = static_cast<size_t>(c * 3 * W + j);
      G_[i + 2 * W] = step * G_[i + W];
    }
  std::vector<std::pair<std::vector<double>, std::vector<double>>> checkpoints;
  for (int64_t t = 0; t < slice_.tokens; t += segment_) {
    checkpoints.emplace_back(state, own);
    const int64_t tokens = std::min(segment_, slice_.tokens - t);
    read(t, tokens);
    run_states(t, tokens, state.data(), own, nullptr);
  }
  Kept kept;
  for (int64_t i = static_cast<int64_t>(checkpoints.size()) - 1; i >= 0; --i) {
    const int64_t first = i * segment_, tokens = std::min(segment_, slice_.tokens - first);
    read(first, tokens);
    auto& [from, own_from] = checkpoints.back();
    run_states(first, tokens, from.data(), own_from, &kept);
    checkpoints.pop_back();
    run_reverse(first, tokens, kept, sums);
    store_dv(first, tokens);
  }
  if (f_.dS0) store_dS0();
}

/// The segment's tokens, from the state before them to the one after, in `state`; `own`: A of that (bound.h).
/// Where kept, a state that is stored is there twice: as it is read at its token, and as what follows is made
/// of, with its chunk's error.
void AdjointBlock::run_states(int64_t first, int64_t tokens, double* state, std::vector<double>& own,
                              Kept* kept) {
  const BoundModel& model = f_.model.state();
  const int64_t stored = stored_of(model), last = first + tokens;
  int64_t place = 0;
  if (kept) kept->place.assign(static_cast<size_t>(tokens + 1), 0);
  for (int64_t t = first; t < last;) {
    const int64_t end = next_end(t, last, {state_chunk_, stored}), at = t - first, count = end - t;
    double* from = state;
    if (kept) {
      const auto places = static_cast<size_t>((place + count + 1) * size_);
      if (kept->states.size() < places) kept->states.resize(places);
      from = kept->states.data() + place * size_;
      std::copy(state, state + size_, from);
      for (int64_t i = 0; i <= count; ++i) kept->place[static_cast<size_t>(at + i)] = place + i;
    }
    gated_kernels().states({count, f_.K(), coefficients_.data() + at * f_.K(), written(model, t),
                            v_.data() + at * W, from, kept != nullptr, model.own_of_excess()});
    if (kept) std::copy(from + count * size_, from + (count + 1) * size_, state);
    const auto ends = [&](int64_t every) { return every > 0 && (end % every == 0 || end == slice_.tokens); };
    if (ends(state_chunk_)) end_chunk(model, state_chunk_, (end - 1) / state_chunk_ * state_chunk_, state);
    if (ends(stored)) {
      const int64_t n = (end - 1) / stored;
      store_state(stored, n * stored, n + 1, state, own);
    }
    place += count + 1, t = end;
  }
}

void AdjointBlock::run_reverse(int64_t first, int64_t tokens, const Kept& kept,
                               std::vector<AdjointSums>& sums) {
  const BoundModel& model = f_.model.adjoint();
  const int64_t chunk = adjoint_chunk_, stored = stored_of(model);
  for (auto* x : {&dv_, &dv_abs_, &dv_excess_}) x->resize(v_.size());
  for (int64_t end = first + tokens; end > first;) {
    const int64_t begin = last_start(end, first, {chunk, stored, state_chunk_, stored_of(f_.model.state())});
    const int64_t at = begin - first;
    (f_.x.exclusive() ? gated_kernels().reverse_exclusive : gated_kernels().reverse)(
        {end - begin, f_.K(), coefficients_.data() + at * f_.K(), written(model, begin), v_.data() + at * W,
         d_o_.data() + at * W, kept.states.data() + kept.place[static_cast<size_t>(at)] * size_, G_.data(),
         sums.data() + begin * f_.K(), dv_.data() + at * W, dv_abs_.data() + at * W,
         dv_excess_.data() + at * W, model.own_of_excess()});
    if (chunk > 0 && begin % chunk == 0) end_chunk(model, chunk, begin, G_.data());
    if (stored > 0 && begin % stored == 0) {
      const int64_t all = (slice_.tokens - 1) / stored + 1;
      store_state(stored, begin, all - begin / stored, G_.data(), own_of_G_);
    }
    end = begin;
  }
}

/// Sums of |g| of the `tokens` from `first` on, or of as many as there are.
const std::vector<double>& AdjointBlock::decayed(int64_t first, int64_t tokens) {
  std::vector<double>& sums = decayed_[{first, tokens}];
  if (!sums.empty()) return sums;
  sums.resize(static_cast<size_t>(f_.K()));
  if (!f_.x.gated()) return sums;
  const int64_t count = std::min(tokens, slice_.tokens - first);
  std::vector<double> gates(static_cast<size_t>(count * f_.K()));
  f_.x.read_decays(slice_, first, count, gates.data(), nullptr);
  for_each_element(gates.size(), sums.size(),
                   [&](size_t i, size_t, size_t c) { sums[c] += std::fabs(gates[i]); });
  return sums;
}

/// Of the terms that the tokens of t's chunk write.
double AdjointBlock::written(const BoundModel& model, int64_t t) {
  const int64_t chunk = model.scaled_chunk();
  if (chunk == 0) return model.written();
  const std::vector<double>& nats = decayed(t / chunk * chunk, chunk);
  return model.written(*std::max_element(nats.begin(), nats.end()) * (1 + 0x1p-30));
}

/// E <- E + b (P + E) for the chunk of tokens from `first` on.
void AdjointBlock::end_chunk(const BoundModel& model, int64_t chunk, int64_t first, double* state) {
  const std::vector<double>& nats = decayed(first, chunk);
  for (size_t c = 0; c < nats.size(); ++c) {
    const double error = model.chunk_error(nats[c] * (1 + 0x1p-30));
    double* P = state + c * 3 * W + W;
    for (int64_t j = 0; j < W; ++j) P[W + j] += error * (P[j] + P[W + j]);
  }
}

/// P <- |S| and what the evaluator's own S may be off by; `n`: of the states stored so far.
void AdjointBlock::store_state(int64_t stored, int64_t first, int64_t n, double* state,
                               std::vector<double>& own) {
  const std::vector<double>& nats = decayed(first, stored);
  for (size_t c = 0; c < nats.size(); ++c) {
    double* S = state + c * 3 * W;
    StoredChannel(n, stored, nats[c]).store(S, S + W, own.data() + c * W, W);
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
