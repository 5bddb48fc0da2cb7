#include "reference/forward_columns.h"

#include <algorithm>
#include <cmath>

#include "reference/elements.h"
#include "reference/gated_kernels.h"
#include "src/base/numerics/exponential.h"

namespace assay {
namespace {

constexpr int W = kForwardColumns;
constexpr int64_t kTileTokens = 32;
constexpr int64_t kGroups = kColumnsPerTask / W;

/// What one token contributes to every column's bound, from its own q, k, g.
struct TokenScalars {
  double q_sum = 0;       ///< sum_c |q_c|
  double k_max = 0;       ///< max_c |k_c|
  double weight_cap = 1;  ///< I_t / I_{t-1}; infinite where a gate is positive: the model has weights <= 1
};

/// q, k, g of a tile, decoded, with weights and recurrence coefficients.
struct TileInputs {
  std::vector<double> q, k, g, a;
  std::vector<ForwardCoefficient> coefficients;
  std::vector<TokenScalars> scalars;

  void read(const ForwardProblem& f, const Slice& slice, int64_t first, int64_t tokens) {
    const size_t n = static_cast<size_t>(tokens * f.K());
    q.resize(n), k.resize(n), a.resize(n), coefficients.resize(n), g.resize(n);
    scalars.assign(static_cast<size_t>(tokens), {});
    const int64_t row = slice.first_row + first;
    decode_rows(f.x.q, row, tokens, f.H(), slice.h, f.K(), q.data());
    decode_rows(f.x.k, row, tokens, f.H(), slice.h, f.K(), k.data());
    f.x.read_decays(slice, first, tokens, g.data(), a.data());
    for (int64_t t = 0; t < tokens; ++t) {
      TokenScalars& s = scalars[static_cast<size_t>(t)];
      s.weight_cap = f.model.inflation_per_token();
      for (int64_t c = 0; c < f.K(); ++c) {
        const size_t i = static_cast<size_t>(t * f.K() + c);
        const ExcessStep e = f.model.step(a[i], g[i]);
        coefficients[i] = {a[i], k[i], q[i], std::fabs(q[i]), e.carry, e.grow};
        s.q_sum += std::fabs(q[i]);
        s.k_max = std::max(s.k_max, std::fabs(k[i]));
        if (!(g[i] <= 0)) s.weight_cap = HUGE_VAL;
      }
    }
  }
};

/// As std::fmax, which is a call: of x and what is a number.
double larger(double x, double number) {
  return x > number ? x : number;
}

/// One task: up to kGroups * W value columns of one slice.
class Columns {
 public:
  Columns(const ForwardProblem& f, const Slice& slice, int64_t v0)
      : f_(f), slice_(slice), v0_(v0), width_(std::min<int64_t>(kGroups * W, f.V() - v0)) {
    const size_t states = static_cast<size_t>(kGroups * f.K() * W);
    S_.assign(states, 0), P_.assign(states, 0), E_.assign(states, 0);
    absolute_.assign(kGroups * W, 1), magnitude_.assign(kGroups * W, 0);
    wide_.assign(kGroups * W, false);
    value_max_.assign(kGroups * W, 0);
    decayed_.assign(static_cast<size_t>(f.K()), 0), apart_ = decayed_;
    if (f.model.stored() > 1) own_.assign(states, 0);
    read_value_maxima();
    bonus_ = f.x.read_bonus(slice.h);
    for (double u : bonus_)
      bonus_abs_.push_back(std::fabs(u)), bonus_max_ = std::fmax(bonus_max_, std::fabs(u));
    if (f.x.S0) read_initial_state();
  }

  std::vector<int64_t> run() {
    const int64_t chunk = f_.problem.arithmetic.chunk, stored = f_.model.stored();
    const auto ends = [&](int64_t every, int64_t t) {
      return every > 0 && (t % every == 0 || t == slice_.tokens);
    };
    for (int64_t t = 0; t < slice_.tokens;) {
      int64_t end = std::min(t + kTileTokens, slice_.tokens);
      for (const int64_t every : {chunk, stored > 1 ? stored : 0})
        if (every > 0) end = std::min(end, (t / every + 1) * every);
      if (t == 0 || (chunk > 0 && t % chunk == 0)) start_chunk(t);
      tile(t, end - t);
      t = end;
      if (ends(chunk, t)) end_chunk();
      if (stored > 1 && ends(stored, t)) store_state(stored, (t + stored - 1) / stored);
    }
    finish_states();
    std::vector<int64_t> wide;
    for (int64_t j = 0; j < width_; ++j)
      if (wide_[static_cast<size_t>(j)]) wide.push_back(j);
    return wide;
  }

 private:
  double* state(std::vector<double>& x, int64_t group) { return x.data() + group * f_.K() * W; }
  size_t state_index(int64_t c, int64_t column) const {
    return static_cast<size_t>((column / W) * f_.K() * W + c * W + column % W);
  }
  /// Over all tokens: a chunk's rows meet v of its later tokens, times zero.
  void read_value_maxima() {
    std::vector<double> row(static_cast<size_t>(width_));
    for (int64_t t = 0; t < slice_.tokens; ++t) {
      decode_run(f_.x.v, f_.output_row(slice_, t) + v0_, width_, row.data());
      for (size_t j = 0; j < row.size(); ++j) value_max_[j] = larger(std::fabs(row[j]), value_max_[j]);
    }
  }
  void read_initial_state() {
    std::vector<double> row(static_cast<size_t>(width_));
    for (int64_t c = 0; c < f_.K(); ++c) {
      decode_run(*f_.x.S0, f_.state_row(slice_, c) + v0_, width_, row.data());
      for (int64_t j = 0; j < width_; ++j) {
        const double x = row[static_cast<size_t>(j)];
        S_[state_index(c, j)] = x;
        P_[state_index(c, j)] = std::fabs(x);
        magnitude_[static_cast<size_t>(j)] = std::fmax(magnitude_[static_cast<size_t>(j)], std::fabs(x));
      }
    }
    for (int64_t j = 0; j < width_; ++j)
      absolute_[static_cast<size_t>(j)] += magnitude_[static_cast<size_t>(j)];
  }

  /// What rounding scaled operands costs in the chunk of tokens from `first` on.
  void start_chunk(int64_t first) {
    const int64_t chunk = f_.model.scaled_chunk(), tokens = std::min(chunk, slice_.tokens - first);
    double widest = chunk > 0 ? 0 : HUGE_VAL;
    if (chunk > 0 && f_.x.gated()) {
      std::vector<double> gates(static_cast<size_t>(tokens * f_.K())), sums(decayed_.size());
      f_.x.read_decays(slice_, first, tokens, gates.data(), nullptr);
      for_each_element(gates.size(), sums.size(),
                       [&](size_t i, size_t, size_t c) { sums[c] += std::fabs(gates[i]); });
      widest = *std::max_element(sums.begin(), sums.end()) * (1 + 0x1p-30);
    }
    written_ = f_.model.written(widest), readout_ = f_.model.read_out(widest);
    prefix_ = std::fmax(prefix_, f_.model.inflation_of_prefix(widest));
  }

  void end_chunk() {
    inflation_ *= f_.model.inflation_per_chunk();
    for (int64_t c = 0; c < f_.K(); ++c) {
      const double error = f_.model.chunk_error(decayed_[static_cast<size_t>(c)]);
      decayed_[static_cast<size_t>(c)] = 0;
      if (error == 0) continue;
      for (int64_t j = 0; j < width_; ++j) {
        const size_t i = state_index(c, j);
        E_[i] += error * (P_[i] + E_[i]);
      }
    }
  }

  /// The n-th state that is stored: Pm <- |S| (bound.h).
  void store_state(int64_t tokens, int64_t n) {
    for (int64_t c = 0; c < f_.K(); ++c) {
      double& decayed = apart_[static_cast<size_t>(c)];
      const StoredChannel channel(n, tokens, decayed);
      for (int64_t j = 0; j < width_; j += W) {
        const size_t i = state_index(c, j);
        channel.store(&S_[i], &P_[i], &own_[i], W);
      }
      decayed = 0;
    }
  }

  void tile(int64_t first, int64_t tokens) {
    inputs_.read(f_, slice_, first, tokens);
    for_each_element(inputs_.g.size(), decayed_.size(), [&](size_t i, size_t, size_t c) {
      const double nats = std::fabs(inputs_.g[i]);
      decayed_[c] += nats * (1 + 0x1p-40), apart_[c] += nats;
    });
    v_.assign(static_cast<size_t>(tokens * W), 0);
    for (auto* x : {&o_, &companion_, &excess_}) x->resize(static_cast<size_t>(tokens * W));
    const double inflation = inflation_, k_max = k_max_;
    for (int64_t group = 0; group * W < width_; ++group) {
      const int64_t columns = std::min<int64_t>(W, width_ - group * W);
      for (int64_t t = 0; t < tokens; ++t)
        decode_run(f_.x.v, f_.output_row(slice_, first + t) + v0_ + group * W, columns, v_.data() + t * W);
      const ForwardTile work{tokens,
                             f_.K(),
                             inputs_.coefficients.data(),
                             written_,
                             v_.data(),
                             state(S_, group),
                             state(P_, group),
                             state(E_, group),
                             o_.data(),
                             companion_.data(),
                             excess_.data(),
                             bonus_.data(),
                             bonus_abs_.data(),
                             f_.problem.arithmetic.bonus,
                             f_.model.own_of_excess()};
      (f_.x.exclusive() ? gated_kernels().forward_exclusive : gated_kernels().forward)(work);
      inflation_ = inflation, k_max_ = k_max;  // every group sees the tile's tokens from the start
      for (int64_t t = 0; t < tokens; ++t) finish_token(first, t, group, columns);
    }
  }

  /// Turns the sums of token first + t into mid, rad, bound for one group of columns.
  void finish_token(int64_t first, int64_t t, int64_t group, int64_t columns) {
    const Arithmetic& arithmetic = f_.problem.arithmetic;
    const TokenScalars& s = inputs_.scalars[static_cast<size_t>(t)];
    const double scale = std::fabs(f_.problem.scale);
    const double K = static_cast<double>(f_.K());
    inflation_ *= s.weight_cap;
    k_max_ = std::fmax(k_max_, s.k_max);
    const double factor = f_.model.own_error(first + t + 1, K + 8), own_of_excess = f_.model.own_of_excess();
    const double raise = 1 + 2 * gamma(excess_roundings(first + t + 1, f_.K()), kDoubleRoundoff);
    const double ends = f_.model.inflation_of_ends() * prefix_;
    const double spread =
        kUnderflowEvents * inflation_ * ends * (1 + scale) * (K + s.q_sum) * (1 + bonus_max_);
    const double reach =
        inflation_ * ends * std::fmax(1.0, scale) * std::fmax(1.0, s.q_sum) * std::fmax(1.0, bonus_max_);
    const bool exact_claimed = f_.exact_claimed;
    const double half_subnormal = arithmetic.output_roundoff == 0 ? 0 : min_subnormal(f_.x.v.dtype) / 2;
    const int64_t at = f_.output_row(slice_, first + t) + v0_ + group * W;
    for (int64_t j = 0; j < columns; ++j) {
      const size_t column = static_cast<size_t>(group * W + j), i = static_cast<size_t>(t * W + j);
      const double v_abs = std::fabs(v_[i]);
      absolute_[column] += (1 + s.k_max) * (1 + v_abs);
      magnitude_[column] += s.k_max * v_abs;
      const double mid = f_.problem.scale * o_[i];
      const double companion = scale * companion_[i] * raise;
      const bool exact = !f_.x.exclusive() && f_.grid.exact(magnitude_[column], s.q_sum);
      const double own = factor * companion + own_of_excess * scale * excess_[i] * raise;
      double rad = exact ? 0 : own + kOwnUnderflow * spread * absolute_[column];
      const double error = scale * (excess_[i] + readout_ * (companion_[i] + excess_[i])) * raise;
      const double flushed = (arithmetic.underflow + (exact_claimed ? 0 : kOwnUnderflow)) * spread *
                             absolute_[column] * (1 + 0x1p-20);
      double bound = error + flushed;
      bound += arithmetic.output_roundoff * (std::fabs(mid) + rad + bound) + half_subnormal;
      if (bound != 0) bound *= 1 + 0x1p-50;
      const double largest = larger(larger(magnitude_[column], k_max_), 1.0);
      if (!(reach * largest < kOverflow && value_max_[column] < kOverflow)) bound = HUGE_VAL;
      if (!std::isfinite(mid) || !std::isfinite(rad)) rad = HUGE_VAL;
      const size_t out = static_cast<size_t>(at + j);
      f_.o.mid[out] = mid, f_.o.rad[out] = rad, f_.o.bound[out] = bound, f_.o.companion[out] = companion;
      f_.o.underflow[out] = flushed + half_subnormal;
      note_width(column, mid, rad, bound);
    }
  }

  void note_width(size_t column, double mid, double rad, double bound) {
    if (too_wide(rad, bound) && std::isfinite(mid) && !out_of_reach(f_, mid, bound)) wide_[column] = true;
  }

  void finish_states() {
    const double scale_free = kUnderflowEvents * inflation_ * f_.model.inflation_of_ends() * prefix_;
    const double factor = f_.model.own_error(slice_.tokens, 8, true),
                 own_of_excess = f_.model.own_of_excess();
    const double raise = 1 + 2 * gamma(excess_roundings(slice_.tokens, f_.K()), kDoubleRoundoff);
    for (int64_t c = 0; c < f_.K(); ++c)
      for (int64_t j = 0; j < width_; ++j) {
        const size_t i = state_index(c, j), out = static_cast<size_t>(f_.state_row(slice_, c) + v0_ + j),
                     column = static_cast<size_t>(j);
        const bool untouched = slice_.tokens == 0;  // the final state is a copy of the initial one
        const double spread = untouched ? 0 : scale_free * absolute_[column] * (1 + 0x1p-20);
        const bool exact = untouched || f_.grid.exact(magnitude_[column], 0);
        const double own = (factor * P_[i] + own_of_excess * E_[i]) * raise;
        double rad = exact ? 0 : own + kOwnUnderflow * spread;
        const double flushed =
            (f_.problem.arithmetic.underflow + (f_.exact_claimed ? 0 : kOwnUnderflow)) * spread;
        double bound = E_[i] * raise + flushed;
        const double largest =
            std::fmax(inflation_ * prefix_ * magnitude_[column], std::fmax(k_max_, value_max_[column]));
        if (!untouched && !(largest < kOverflow)) bound = HUGE_VAL;
        if (!std::isfinite(S_[i]) || !std::isfinite(rad)) rad = HUGE_VAL;
        f_.state.mid[out] = S_[i], f_.state.rad[out] = rad, f_.state.bound[out] = bound;
        f_.state.companion[out] = P_[i] * raise, f_.state.underflow[out] = flushed;
        note_width(column, S_[i], rad, bound);
      }
  }

  const ForwardProblem& f_;
  const Slice slice_;
  const int64_t v0_, width_;
  double inflation_ = 1, prefix_ = 1, k_max_ = 0;
  double written_ = 0, readout_ = 0;  ///< errors of the chunk's terms when they enter and are read
  std::vector<double> S_, P_, E_, v_, o_, companion_, excess_;
  std::vector<double> bonus_, bonus_abs_;  ///< u and |u| per channel, or empty
  double bonus_max_ = 0;
  std::vector<double> absolute_;  ///< per column: 1 + max|S_0| + sum_j (1 + max|k_j|)(1 + |v_j|)
  std::vector<double>
      magnitude_;                ///< per column: max|S_0| + sum_j max|k_j| |v_j|, at least every |S_t| entry
  std::vector<double> decayed_;  ///< per channel: sum of |g| since the chunk's start
  std::vector<double> apart_;    ///< since the state was last stored, rounded down
  std::vector<double> own_;      ///< A of bound.h where the state is stored, but not after every token
  std::vector<double> value_max_;  ///< per column: max|v| over all tokens
  std::vector<bool> wide_;
  TileInputs inputs_;
};

}  // namespace

std::vector<int64_t> evaluate_columns(const ForwardProblem& f, const Slice& slice, int64_t v0) {
  return Columns(f, slice, v0).run();
}

}  // namespace assay
