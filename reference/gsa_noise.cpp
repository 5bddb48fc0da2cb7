#include "reference/gsa_noise.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "reference/noise_amplitudes.h"
#include "reference/sampled_chunk.h"
#include "reference/sampled_softmax.h"

namespace assay {
namespace {

using Floats = std::vector<float>;
using Made = SampledWeights;

/// Multiples of a uniform draw from [-1, 1], as in gated_noise.cpp.
struct Amplitudes {
  float written = 0;                            ///< s on its way into the states
  float inner = 0;                              ///< scores and copies of dp
  float logit = 0;                              ///< scores and copies of y
  float read = 0;                               ///< p or dy as an operand that reads a state, and in scores
  float entered = 0;                            ///< p or dy on its way into Gv or Gk
  float read_v = 0, read_k = 0;                 ///< s as an operand for dv, dk
  float o = 0, dv = 0, dk = 0, ds = 0, dg = 0;  ///< scores and copies of that output
};

/// Rounding errors of what is made, relative to it.
struct Rests {
  double logit = 0, dp = 0, all = 0;
};

/// One of the two recurrences, S <- diag(e^g) S + s c^T, which d reads: (c, d) = (k, q) and (v, do).
struct Pass {
  int64_t columns;
  float scale;
  NoiseSource copy, adjoint_copy, operand, in_score, reads, score, inner_score;
  Floats c = {}, d = {};  ///< of the chunk
};

Pass first_pass(int64_t K, float scale) {
  return {K,
          scale,
          NoiseSource::logit_state_copy,
          NoiseSource::logit_adjoint_copy,
          NoiseSource::gradient_query,
          NoiseSource::gradient_query_in_score,
          NoiseSource::gradient_read,
          NoiseSource::gradient_score,
          NoiseSource::logit_score};
}
Pass second_pass(int64_t V) {
  return {V,
          1,
          NoiseSource::state_copy,
          NoiseSource::adjoint_copy,
          NoiseSource::query,
          NoiseSource::query_in_score,
          NoiseSource::read,
          NoiseSource::score,
          NoiseSource::inner_score};
}

class GsaNoise {
 public:
  GsaNoise(const Problem& p, const Slice& s, bool backward, const NoiseVisit& visit)
      : p_(p),
        slice_(s),
        visit_(visit),
        backward_(backward),
        M_(p.sizes.M),
        H_(p.sizes.H),
        u_(operand_roundoff(require_input(p, "s", p.sizes.B * p.sizes.T * H_ * M_).dtype)),
        chunk_(s, M_, u_),
        first_pass_(first_pass(p.sizes.K, static_cast<float>(p.scale))),
        second_pass_(second_pass(p.sizes.V)) {
    const Tensor& g = require_input(p, "g", p.sizes.B * p.sizes.T * H_ * M_);
    for (int64_t i = 0; i < g.size() && !decays_; ++i) decays_ = g.value(i) != 0;
    const Arithmetic& a = backward ? p.adjoint.state : p.arithmetic;
    wide_ = roundings_in(a.divide, u_) == 0;
    length_ = a.chunk > 0 ? a.chunk : std::max<int64_t>(s.tokens, 1);
    const double chunks = std::ceil(static_cast<double>(s.tokens) / static_cast<double>(length_));
    set_amplitudes(a, p.adjoint);
    set_rests(without_roundings(a, u_), without_roundings(p.adjoint, u_), chunks);
  }

  void run() {
    SampledState Hk = loaded("hk0", first_pass_, true), Hv = loaded("hv0", second_pass_, false);
    std::vector<std::pair<SampledState, SampledState>> starts;
    const int64_t chunks = (slice_.tokens + length_ - 1) / length_;
    for (int64_t i = 0; i < chunks; ++i) {
      read(i);
      if (!backward_) visit_rows("o", readout(second_pass_, Hv, weights(Hk)));
      if (backward_) starts.emplace_back(Hk, Hv);
      const ChunkOperand written{s_, NoiseSource::key, amplitudes_.written};
      chunk_.write(Hk, written, chunk_.after(), first_pass_.c, 1);
      chunk_.write(Hv, written, chunk_.after(), second_pass_.c, 1);
    }
    if (!backward_) {
      visitor().state("hkt", p_.sizes.K, transposed(Hk));
      return visitor().state("hvt", M_, Hv);
    }
    SampledState Gk = loaded("dhkt", first_pass_, true), Gv = loaded("dhvt", second_pass_, false);
    for (; !starts.empty(); starts.pop_back()) {
      read(static_cast<int64_t>(starts.size()) - 1);
      gradients(starts.back().first, starts.back().second, Gk, Gv);
    }
    if (find("hk0", first_pass_)) visitor().state("dhk0", p_.sizes.K, transposed(Gk));
    if (find("hv0", second_pass_)) visitor().state("dhv0", M_, Gv);
  }

 private:
  void set_amplitudes(const Arithmetic& a, const AdjointArithmetic& d) {
    const auto count = [&](double always, double decayed) {
      return roundings_in(always, u_) + (decays_ ? roundings_in(decayed, u_) : 0);
    };
    const int readout = roundings_in(a.readout, u_);
    amplitudes_.written = rounding_amplitude(u_, count(a.write, a.write_decayed + a.write_scaled));
    softmax_.weight = rounding_amplitude(u_, roundings_in(a.divide, u_));
    amplitudes_.logit = rounding_amplitude(u_, roundings_in(a.logits, u_));
    amplitudes_.o = rounding_amplitude(u_, std::min(readout, 1));
    amplitudes_.read =
        rounding_amplitude(u_, std::max(readout - 1, 0) + count(0, a.readout_decayed + a.readout_scaled));
    if (!backward_) return;
    amplitudes_.inner = softmax_.gradient = rounding_amplitude(u_, roundings_in(d.inner, u_));
    amplitudes_.entered =
        rounding_amplitude(u_, count(d.adjoint.write, d.adjoint.write_decayed + d.adjoint.write_scaled));
    amplitudes_.read_v = rounding_amplitude(u_, count(0, d.value_readout_decayed + d.value_readout_scaled));
    amplitudes_.read_k =
        rounding_amplitude(u_, count(0, d.adjoint.readout_decayed + d.adjoint.readout_scaled));
    amplitudes_.dv = rounding_amplitude(u_, roundings_in(d.value_readout, u_));
    amplitudes_.dk = amplitudes_.ds = rounding_amplitude(u_, roundings_in(d.adjoint.readout, u_));
    amplitudes_.dg = rounding_amplitude(u_, count(d.gate_readout, d.gate_readout_decayed));
  }
  void set_rests(const Arithmetic& a, const AdjointArithmetic& d, double chunks) {
    Arithmetic of_logits = a;
    of_logits.readout = a.logits;
    rests_.logit = forward_rest(of_logits, chunks, decays_);
    softmax_.per_nat = a.logits_per_nat, softmax_.divide = a.divide, softmax_.inner = d.inner;
    rests_.dp = forward_rest(a, chunks, decays_) - a.readout + d.inner;
    rests_.all = backward_ ? adjoint_rest(d, chunks, decays_) : forward_rest(a, chunks, decays_);
  }

  size_t slot(int64_t t, int64_t m) const { return static_cast<size_t>(t * M_ + m); }
  NoiseVisitor visitor() const { return {visit_, length_, rests_.all}; }
  void visit_rows(const char* output, SampledRows y) const { visitor().rows(output, first_, y); }

  const Tensor* find(const char* name, const Pass& pass) const {
    const int64_t sequences =
        p_.cu_seqlens.empty() ? p_.sizes.B : static_cast<int64_t>(p_.cu_seqlens.size()) - 1;
    return find_input(p_, name, sequences * H_ * M_ * pass.columns);
  }
  /// A state of slots x columns; `across`: it is kept as columns x slots.
  SampledState loaded(const char* name, const Pass& pass, bool across) const {
    SampledState S = across ? SampledState(pass.columns, M_) : SampledState(M_, pass.columns);
    if (const Tensor* tensor = find(name, pass)) {
      std::vector<double> row(S.value.size());
      const auto count = static_cast<int64_t>(row.size());
      decode_run(*tensor, (slice_.n * H_ + slice_.h) * count, count, row.data());
      S.load(row);
    }
    return across ? transposed(S) : S;
  }

  /// The tokens of a chunk.
  void read(int64_t chunk) {
    first_ = chunk * length_, tokens_ = std::min(length_, slice_.tokens - first_);
    const auto rows = [&](const char* name, int64_t width) {
      const Tensor& tensor = require_input(p_, name, p_.sizes.B * p_.sizes.T * H_ * width);
      std::vector<double> row(static_cast<size_t>(tokens_ * width));
      decode_rows(tensor, slice_.first_row + first_, tokens_, H_, slice_.h, width, row.data());
      return row;
    };
    const auto floats = [](const std::vector<double>& x) { return Floats(x.begin(), x.end()); };
    first_pass_.c = floats(rows("k", p_.sizes.K)), first_pass_.d = floats(rows("q", p_.sizes.K));
    second_pass_.c = floats(rows("v", p_.sizes.V)), s_ = floats(rows("s", M_));
    if (backward_) second_pass_.d = floats(rows("do", p_.sizes.V));
    std::vector<double> a = rows("g", M_);
    for (double& g : a) g = std::exp(g);
    chunk_.begin(chunk, tokens_, a, false);
    written_in_score_ = chunk_.in_scores(NoiseSource::key_in_score, amplitudes_.written);
  }

  /// scale d_t . c_j, and the squares of its terms.
  float pair_score(const Pass& pass, int64_t t, int64_t j, float& squares) const {
    const float *const d = pass.d.data() + t * pass.columns, *const c = pass.c.data() + j * pass.columns;
    float sum = 0;
    squares = 0;
    for (int64_t i = 0; i < pass.columns; ++i) {
      const float term = d[i] * c[i] * pass.scale;
      sum += term, squares += term * term;
    }
    return sum;
  }

  /// scale S d: the logits, and dp. `rest`: what the rest does to it on its way, relative to its terms.
  Made read_by_slot(const Pass& pass, const SampledState& S, float amplitude, double rest) const {
    const auto size = static_cast<size_t>(tokens_ * M_);
    Made y(size);
    Floats squares(size), common(size);
    const Floats& into = chunk_.into();
    chunk_.contract(S.value, pass.d, into, pass.scale, y.value);
    chunk_.contract_squares(S.squares, pass.d, into, pass.scale, squares);
    chunk_.contract(chunk_.copied(S, pass.copy, amplitude), pass.d, into, pass.scale, y.near);
    chunk_.contract(S.noise, pass.d, into, pass.scale, y.far);
    chunk_.contract(S.common, pass.d, into, pass.scale, common);
    const auto pair = [&](int64_t t, int64_t j, const float* w) {
      float of_terms;
      const float score = pair_score(pass, t, j, of_terms);
      Lanes rounding;
      chunk_.draw(pass.inner_score, t * tokens_ + j, amplitude * binade(score), rounding);
      for (int64_t m = 0; m < M_; ++m) {
        const size_t to = slot(t, m);
        const float x = s_[slot(j, m)] * w[m];
        y.value[to] += score * x, squares[to] += of_terms * x * x;
        y.near[to] += (rounding + score * written_in_score_[slot(j, m)]) * x;
        if (amplitudes_.written > 0) common[to] += score * x * alike(w[m], chunk_.u());
      }
    };
    chunk_.for_each_pair(pair, [](int64_t) {});
    for (size_t i = 0; i < size; ++i) {
      y.far[i] += chunk_.common() * common[i];
      const float off = static_cast<float>(rest) * (std::fabs(y.value[i]) + std::sqrt(squares[i]));
      y.moved[i] = off * off;
    }
    return y;
  }

  /// p = softmax(y), stored.
  Made weights(const SampledState& Hk) const {
    return sampled_softmax(chunk_, M_, softmax_,
                           read_by_slot(first_pass_, Hk, amplitudes_.logit, rests_.logit));
  }

  struct Score {
    float value = 0, common = 0, squares = 0, moved = 0;
    Lanes near = {}, far = {};
  };
  /// scale x_t w s_j, x a p or dy: as an operand of scores it is rounded, as s is.
  Score score(const Pass& pass, const Made& x, const std::vector<Lanes>& in_score, int64_t t, int64_t j,
              const float* w) const {
    Score y;
    for (int64_t m = 0; m < M_; ++m) {
      const size_t of_t = slot(t, m), of_j = slot(j, m);
      const float to = s_[of_j] * w[m] * pass.scale, term = x.value[of_t] * to;
      y.value += term, y.squares += term * term, y.moved += x.moved[of_t] * to * to;
      y.near += term * (in_score[of_t] + written_in_score_[of_j]) + x.near[of_t] * to;
      y.far += x.far[of_t] * to;
      y.common += term * 2 * alike(w[m], chunk_.u());
    }
    if (amplitudes_.written == 0) y.common = 0;
    return y;
  }
  /// Row `to` of y gets that score times a row of columns. `away`: where x is off enters other chunks too.
  static void add_row(const Score& score, const float* row, int64_t to, SampledRows& y) {
    const size_t first = static_cast<size_t>(to * y.columns);
    for (int64_t v = 0; v < y.columns; ++v) {
      const size_t i = first + static_cast<size_t>(v);
      y.near[i] += score.near * row[v], y.far[i] += score.far * row[v];
      y.common[i] += score.common * row[v];
      y.squares[i] += score.squares * row[v] * row[v], y.moved[i] += score.moved * row[v] * row[v];
    }
  }

  ChunkOperand reads(const Pass& pass, const Made& x) const {
    return {x.value, pass.reads, amplitudes_.read, x.near.data(), x.far.data(), x.moved.data(), wide_};
  }

  /// scale S^T x: o with p, dq with dy.
  SampledRows readout(const Pass& pass, const SampledState& S, const Made& x) const {
    SampledRows y(tokens_, pass.columns);
    chunk_.read(S, chunk_.copied(S, pass.copy, amplitudes_.o), reads(pass, x), chunk_.into(), pass.scale,
                amplitudes_.written > 0, y);
    const std::vector<Lanes> in_score = chunk_.in_scores(pass.in_score, amplitudes_.read, wide_);
    const auto pair = [&](int64_t t, int64_t j, const float* w) {
      Score made = score(pass, x, in_score, t, j, w);
      Lanes rounding;
      chunk_.draw(pass.score, t * tokens_ + j, amplitudes_.o * binade(made.value), rounding);
      made.near += rounding;
      add_row(made, pass.c.data() + j * pass.columns, t, y);
    };
    chunk_.for_each_pair(pair, [](int64_t) {});
    return y;
  }

  /// What both passes' gradients of s and g are summed up in. dg: of token t what t has more than t - 1.
  struct SlotGradients {
    SampledRows ds, dg;
    SlotGradients(int64_t tokens, int64_t M) : ds(tokens, M), dg(tokens + 1, M) {}
  };

  void gradients(const SampledState& Hk, const SampledState& Hv, SampledState& Gk, SampledState& Gv) const {
    const Made p = weights(Hk), dp = read_by_slot(second_pass_, Hv, amplitudes_.inner, rests_.dp),
               dy = sampled_softmax_gradient(chunk_, M_, softmax_, p, dp);
    visit_rows("dq", readout(first_pass_, Hk, dy));
    SlotGradients slots(tokens_, M_);
    visit_rows("dk", of_pass(first_pass_, Hk, Gk, dy, amplitudes_.dk, amplitudes_.read_k, slots));
    visit_rows("dv", of_pass(second_pass_, Hv, Gv, p, amplitudes_.dv, amplitudes_.read_v, slots));
    visit_rows("ds", std::move(slots.ds));
    visit_gates(slots.dg);
    chunk_.write(Gk, entering(first_pass_, dy), chunk_.into(), first_pass_.d, first_pass_.scale);
    chunk_.write(Gv, entering(second_pass_, p), chunk_.into(), second_pass_.d, second_pass_.scale);
  }
  ChunkOperand entering(const Pass& pass, const Made& x) const {
    return {x.value, pass.operand, amplitudes_.entered, x.near.data(), x.far.data(), x.moved.data(), wide_};
  }

  /// The gradient of what s writes, and this pass's part of ds and dg. What x is off by enters earlier
  /// chunks too: all of it is far.
  SampledRows of_pass(const Pass& pass, const SampledState& S, const SampledState& G, Made x, float amplitude,
                      float read, SlotGradients& slots) const {
    for (size_t i = 0; i < x.far.size(); ++i) x.far[i] += x.near[i], x.near[i] = Lanes{};
    SampledRows y(tokens_, pass.columns);
    const Floats& after = chunk_.after();
    chunk_.read(G, chunk_.copied(G, pass.adjoint_copy, amplitude), {s_, NoiseSource::read, read}, after, 1,
                true, y);
    chunk_.contract(chunk_.copied(G, pass.adjoint_copy, amplitudes_.ds), pass.c, after, 1, slots.ds.near);
    chunk_.contract(G.noise, pass.c, after, 1, slots.ds.far);
    chunk_.contract(G.common, pass.c, after, 1, slots.ds.common);
    chunk_.contract_squares(G.squares, pass.c, after, 1, slots.ds.squares);
    chunk_.contract_squares(G.moved, pass.c, after, 1, slots.ds.moved);
    gates_across(pass, S, G, x, slots.dg);
    const std::vector<Lanes> in_score = chunk_.in_scores(pass.in_score, amplitudes_.entered, wide_);
    const auto pair = [&](int64_t t, int64_t j, const float* w) {
      Score made = score(pass, x, in_score, t, j, w);
      Lanes rounding;
      chunk_.draw(pass.score, t * tokens_ + j, amplitude * binade(made.value), rounding);
      made.near += rounding;
      add_row(made, pass.d.data() + t * pass.columns, j, y);
      pair_gradients(pass, x, in_score, t, j, w, slots);
    };
    chunk_.for_each_pair(pair, [](int64_t) {});
    return y;
  }

  /// Terms scale (d_t . c_j) x_t w of ds_j, and times s_j of dg of the tokens between.
  void pair_gradients(const Pass& pass, const Made& x, const std::vector<Lanes>& in_score, int64_t t,
                      int64_t j, const float* w, SlotGradients& to) const {
    float of_terms;
    const float value = pair_score(pass, t, j, of_terms);
    Lanes rounding;
    chunk_.draw(pass.inner_score, t * tokens_ + j, binade(value), rounding);
    const Lanes of_ds = rounding * amplitudes_.ds, of_dg = rounding * amplitudes_.dg;
    for (int64_t m = 0; m < M_; ++m) {
      const size_t of_t = slot(t, m), of_j = slot(j, m);
      const float weight = x.value[of_t] * w[m], s = s_[of_j],
                  same = amplitudes_.written > 0 ? value * weight * alike(w[m], chunk_.u()) : 0;
      const Lanes off = x.far[of_t] * (w[m] * value);
      const float moved = x.moved[of_t] * w[m] * w[m] * value * value;
      to.ds.near[of_j] += (of_ds + value * in_score[of_t]) * weight;
      to.ds.far[of_j] += off, to.ds.moved[of_j] += moved;
      to.ds.common[of_j] += same, to.ds.squares[of_j] += of_terms * weight * weight;
      if (t == j) continue;
      const size_t begin = slot(j + 1, m), end = slot(t + 1, m);
      const Lanes near = (of_dg + value * (in_score[of_t] + written_in_score_[of_j])) * (weight * s);
      to.dg.near[begin] += near, to.dg.near[end] -= near;
      to.dg.far[begin] += off * s, to.dg.far[end] -= off * s;
      to.dg.common[begin] += 2 * same * s, to.dg.common[end] -= 2 * same * s;
      to.dg.squares[begin] += of_terms * weight * weight * s * s, to.dg.moved[begin] += moved * s * s;
    }
  }

  /// Terms of dg that cross a chunk's end.
  void gates_across(const Pass& pass, const SampledState& S, const SampledState& G, const Made& x,
                    SampledRows& dg) const {
    const StateEnds ends{S, G, pass.d, pass.c, x.value, s_, pass.scale};
    if (amplitudes_.dg > 0)
      chunk_.gates_across(ends, chunk_.copied(S, pass.copy, amplitudes_.dg),
                          chunk_.copied(G, pass.adjoint_copy, amplitudes_.dg), std::sqrt(0.5f), dg.near);
    chunk_.gates_across(ends, S.noise, G.noise, 1, dg.far);
    chunk_.gates_across(ends, S.common, G.common, 1, dg.common);
    const auto size = static_cast<size_t>(tokens_ * M_);
    Floats value(size), reads(size), writes(size), moved(size);
    chunk_.contract(S.value, pass.d, chunk_.into(), pass.scale, value);
    chunk_.contract_squares(S.squares, pass.d, chunk_.into(), pass.scale, reads);
    chunk_.contract_squares(G.squares, pass.c, chunk_.after(), 1, writes);
    chunk_.contract_squares(G.moved, pass.c, chunk_.after(), 1, moved);
    for (int64_t m = 0; m < M_; ++m) {
      const float whole = chunk_.whole()[static_cast<size_t>(m)];
      float over = 0, over_moved = 0;
      for (int64_t v = 0; v < pass.columns; ++v) {
        const auto i = static_cast<size_t>(m * pass.columns + v);
        over += S.squares[i] * G.squares[i], over_moved += S.value[i] * S.value[i] * G.moved[i];
      }
      dg.squares[slot(0, m)] += over * whole * whole, dg.moved[slot(0, m)] += over_moved * whole * whole;
      for (int64_t t = 0; t < tokens_; ++t) {
        const size_t i = slot(t, m);
        const float s = s_[i], w = x.value[i];
        dg.far[slot(0, m)] += x.far[i] * value[i], dg.far[slot(t + 1, m)] -= x.far[i] * value[i];
        // Sums that end inside are left in: more.
        dg.squares[slot(0, m)] += reads[i] * w * w, dg.moved[slot(0, m)] += x.moved[i] * value[i] * value[i];
        dg.squares[slot(t + 1, m)] += writes[i] * s * s, dg.moved[slot(t + 1, m)] += moved[i] * s * s;
      }
    }
  }
  /// Summed up over the tokens.
  void visit_gates(SampledRows& dg) const {
    const auto M = static_cast<size_t>(M_), size = static_cast<size_t>(tokens_ * M_);
    for (size_t i = M; i < size; ++i) {
      dg.near[i] += dg.near[i - M], dg.far[i] += dg.far[i - M], dg.common[i] += dg.common[i - M];
      dg.squares[i] += dg.squares[i - M], dg.moved[i] += dg.moved[i - M];
    }
    SampledRows y(tokens_, M_);
    std::copy_n(dg.near.begin(), size, y.near.begin()), std::copy_n(dg.far.begin(), size, y.far.begin());
    std::copy_n(dg.common.begin(), size, y.common.begin());
    std::copy_n(dg.squares.begin(), size, y.squares.begin());
    std::copy_n(dg.moved.begin(), size, y.moved.begin());
    visit_rows("dg", std::move(y));
  }

  const Problem& p_;
  const Slice slice_;
  const NoiseVisit& visit_;
  const bool backward_;
  const int64_t M_, H_;
  const double u_;
  SampledChunk chunk_;
  Pass first_pass_, second_pass_;
  bool decays_ = false;
  bool wide_ = false;  ///< p and dy are kept in more digits than operands have
  int64_t length_ = 1;
  Amplitudes amplitudes_;
  SoftmaxErrors softmax_;
  Rests rests_;
  // Of the chunk that is being looked at:
  int64_t first_ = 0, tokens_ = 0;
  Floats s_;
  std::vector<Lanes> written_in_score_;
};

void sample(const Problem& p, const Slice& s, bool backward, const NoiseVisit& visit) {
  const bool shared = p.sizes.HV != p.sizes.H;
  if (!shared && find_input(p, "g", p.sizes.B * p.sizes.T * p.sizes.H * p.sizes.M))
    GsaNoise(p, s, backward, visit).run();
}

}  // namespace

void gsa_forward_noise(const Problem& p, const Slice& s, const NoiseVisit& visit) {
  sample(p, s, false, visit);
}

void gsa_adjoint_noise(const Problem& p, const Slice& s, const NoiseVisit& visit) {
  sample(p, s, true, visit);
}

}  // namespace assay
