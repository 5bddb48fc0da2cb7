#include "reference/gated_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

#include "reference/bound.h"
#include "reference/exact_grid.h"
#include "reference/gated_kernels.h"
#include "reference/parallel.h"
#include "reference/slices.h"
#include "src/numerics/exponential.h"

namespace assay {
namespace {

constexpr int W = kForwardColumns;
constexpr int64_t kTileTokens = 32;
constexpr int64_t kGroups = 2;  // column groups of W that share a task's coefficients
/// Underflow of the evaluator's own arithmetic: doubles below 2^-1022, weights cut at e^-708, double-double
/// products.
constexpr double kOwnUnderflow = 0x1p-960;

struct Forward {
  const Problem& problem;
  const GatedRow& row;
  const Tensor &q, &k, &v;
  const Tensor *g, *S0;
  BoundModel model;
  ExactGrid grid;
  bool exact_claimed;
  ReferenceOutput &o, &state;
  std::mutex& mutex;

  int64_t K() const { return problem.sizes.K; }
  int64_t V() const { return problem.sizes.V; }
  int64_t H() const { return problem.sizes.H; }
};

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

  void read(const Forward& f, const Slice& slice, int64_t first, int64_t tokens) {
    const size_t n = static_cast<size_t>(tokens * f.K());
    q.resize(n), k.resize(n), a.resize(n), coefficients.resize(n), g.assign(n, 0.0);
    scalars.assign(static_cast<size_t>(tokens), {});
    const int64_t row = slice.first_row + first;
    decode_rows(f.q, row, tokens, f.H(), slice.h, f.K(), q.data());
    decode_rows(f.k, row, tokens, f.H(), slice.h, f.K(), k.data());
    if (f.g) decode_rows(*f.g, row, tokens, f.H(), slice.h, f.K(), g.data());
    for (size_t i = 0; i < n; ++i) a[i] = exponential(g[i]);
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

/// One task: up to kGroups * W value columns of one slice.
class Columns {
 public:
  Columns(const Forward& f, const Slice& slice, int64_t v0)
      : f_(f), slice_(slice), v0_(v0), width_(std::min<int64_t>(kGroups * W, f.V() - v0)) {
    const size_t states = static_cast<size_t>(kGroups * f.K() * W);
    S_.assign(states, 0), P_.assign(states, 0), E_.assign(states, 0);
    absolute_.assign(kGroups * W, 1), magnitude_.assign(kGroups * W, 0);
    wide_.assign(kGroups * W, false);
    if (f.S0) read_initial_state();
  }

  void run() {
    const int64_t chunk = f_.problem.arithmetic.chunk;
    for (int64_t t = 0; t < slice_.tokens;) {
      int64_t end = std::min(t + kTileTokens, slice_.tokens);
      if (chunk > 0) end = std::min(end, (t / chunk + 1) * chunk);
      tile(t, end - t);
      t = end;
      if (chunk > 0 && (t % chunk == 0 || t == slice_.tokens)) end_chunk();
    }
    finish_states();
    climb();
  }

 private:
  double* state(std::vector<double>& x, int64_t group) { return x.data() + group * f_.K() * W; }
  size_t state_index(int64_t c, int64_t column) const {
    return static_cast<size_t>((column / W) * f_.K() * W + c * W + column % W);
  }
  int64_t output_row(int64_t t) const { return ((slice_.first_row + t) * f_.H() + slice_.h) * f_.V(); }
  int64_t state_row(int64_t c) const { return ((slice_.n * f_.H() + slice_.h) * f_.K() + c) * f_.V(); }

  void read_initial_state() {
    std::vector<double> row(static_cast<size_t>(width_));
    for (int64_t c = 0; c < f_.K(); ++c) {
      decode_run(*f_.S0, state_row(c) + v0_, width_, row.data());
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

  void end_chunk() {
    const double boundary = f_.problem.arithmetic.boundary;
    inflation_ *= f_.model.inflation_per_chunk();
    if (boundary != 0)
      for (size_t i = 0; i < E_.size(); ++i) E_[i] += boundary * (P_[i] + E_[i]);
  }

  void tile(int64_t first, int64_t tokens) {
    inputs_.read(f_, slice_, first, tokens);
    v_.assign(static_cast<size_t>(tokens * W), 0);
    for (auto* x : {&o_, &companion_, &excess_}) x->resize(static_cast<size_t>(tokens * W));
    const double inflation = inflation_, k_max = k_max_;
    for (int64_t group = 0; group * W < width_; ++group) {
      const int64_t columns = std::min<int64_t>(W, width_ - group * W);
      for (int64_t t = 0; t < tokens; ++t)
        decode_run(f_.v, output_row(first + t) + v0_ + group * W, columns, v_.data() + t * W);
      gated_kernels().forward({tokens, f_.K(), inputs_.coefficients.data(), f_.model.written, v_.data(),
                               state(S_, group), state(P_, group), state(E_, group), o_.data(),
                               companion_.data(), excess_.data()});
      inflation_ = inflation, k_max_ = k_max;  // every group sees the tile's tokens from the start
      for (int64_t t = 0; t < tokens; ++t) finish_token(first, t, group, columns);
    }
  }

  /// Turns the sums of token first + t into mid, rad, bound for one group of columns.
  void finish_token(int64_t first, int64_t t, int64_t group, int64_t columns) {
    const GatedArithmetic& arithmetic = f_.problem.arithmetic;
    const TokenScalars& s = inputs_.scalars[static_cast<size_t>(t)];
    const double scale = std::fabs(f_.problem.scale), live = static_cast<double>(first + t + 1);
    const double K = static_cast<double>(f_.K());
    inflation_ *= s.weight_cap;
    k_max_ = std::fmax(k_max_, s.k_max);
    const double factor = gamma(6 * live + K + 8, kDoubleRoundoff) * (1 + 0x1p-20);
    const double raise = 1 + 2 * gamma(excess_roundings(first + t + 1, f_.K()), kDoubleRoundoff);
    const double ends = f_.model.inflation_of_ends();
    const double spread = kUnderflowEvents * inflation_ * ends * (1 + scale) * (K + s.q_sum);
    const double reach = inflation_ * ends * std::fmax(1.0, scale) * std::fmax(1.0, s.q_sum);
    const bool exact_claimed = f_.exact_claimed;
    const double half_subnormal = arithmetic.output_roundoff == 0 ? 0 : min_subnormal(f_.v.dtype) / 2;
    const int64_t at = output_row(first + t) + v0_ + group * W;
    for (int64_t j = 0; j < columns; ++j) {
      const size_t column = static_cast<size_t>(group * W + j), i = static_cast<size_t>(t * W + j);
      const double v_abs = std::fabs(v_[i]);
      absolute_[column] += (1 + s.k_max) * (1 + v_abs);
      magnitude_[column] += s.k_max * v_abs;
      const double mid = f_.problem.scale * o_[i];
      const double companion = scale * companion_[i] * raise;
      const bool exact = f_.grid.exact(magnitude_[column], s.q_sum);
      double rad = exact ? 0 : factor * companion + kOwnUnderflow * spread * absolute_[column];
      const double error = scale * (excess_[i] + arithmetic.readout * (companion_[i] + excess_[i])) * raise;
      const double flushed = (arithmetic.underflow + (exact_claimed ? 0 : kOwnUnderflow)) * spread *
                             absolute_[column] * (1 + 0x1p-20);
      double bound = error + flushed;
      bound += arithmetic.output_roundoff * (std::fabs(mid) + rad + bound) + half_subnormal;
      if (bound != 0) bound *= 1 + 0x1p-50;
      if (!(reach * std::fmax(std::fmax(magnitude_[column], k_max_), 1.0) < 0x1p127)) bound = HUGE_VAL;
      if (!std::isfinite(mid) || !std::isfinite(rad)) rad = HUGE_VAL;
      const size_t out = static_cast<size_t>(at + j);
      f_.o.mid[out] = mid, f_.o.rad[out] = rad, f_.o.bound[out] = bound, f_.o.companion[out] = companion;
      f_.o.underflow[out] = flushed + half_subnormal;
      if (too_wide(rad, bound) && std::isfinite(mid)) wide_[column] = true;
    }
  }

  static bool too_wide(double rad, double bound) { return !(rad <= kEnclosureShare * bound); }

  void finish_states() {
    const double scale_free = kUnderflowEvents * inflation_ * f_.model.inflation_of_ends();
    const double factor = gamma(6 * static_cast<double>(slice_.tokens) + 8, kDoubleRoundoff) * (1 + 0x1p-20);
    const double raise = 1 + 2 * gamma(excess_roundings(slice_.tokens, f_.K()), kDoubleRoundoff);
    for (int64_t c = 0; c < f_.K(); ++c)
      for (int64_t j = 0; j < width_; ++j) {
        const size_t i = state_index(c, j), out = static_cast<size_t>(state_row(c) + v0_ + j),
                     column = static_cast<size_t>(j);
        const bool untouched = slice_.tokens == 0;  // the final state is a copy of the initial one
        const double spread = untouched ? 0 : scale_free * absolute_[column] * (1 + 0x1p-20);
        const bool exact = untouched || f_.grid.exact(magnitude_[column], 0);
        double rad = exact ? 0 : factor * P_[i] * raise + kOwnUnderflow * spread;
        const double flushed =
            (f_.problem.arithmetic.underflow + (f_.exact_claimed ? 0 : kOwnUnderflow)) * spread;
        double bound = E_[i] * raise + flushed;
        if (!(inflation_ * magnitude_[column] < 0x1p127)) bound = HUGE_VAL;
        if (!std::isfinite(S_[i]) || !std::isfinite(rad)) rad = HUGE_VAL;
        f_.state.mid[out] = S_[i], f_.state.rad[out] = rad, f_.state.bound[out] = bound;
        f_.state.companion[out] = P_[i] * raise, f_.state.underflow[out] = flushed;
        if (too_wide(rad, bound) && std::isfinite(S_[i])) wide_[column] = true;
      }
  }

  /// Rungs 1 and 2 for the columns that need them.
  void climb() {
    for (int64_t j = 0; j < width_; ++j) {
      if (!wide_[static_cast<size_t>(j)]) continue;
      ColumnInputs x = column_inputs(j);
      if (!finite(x)) continue;  // no precision helps; the radius is infinite already
      ColumnOutputs y;
      int rung = 1;
      if (!f_.exact_claimed) {
        precise_column(x, y);
        if (accept(j, y, rung)) continue;
      } else if (f_.g && !all_zero(x.g)) {
        continue;  // a bound of zero and a transcendental value: no rung has radius zero
      }
      rung = 2;
      for (int level = 0; f_.row.literal_column(x, level, y); ++level)
        if (accept(j, y, rung)) break;
    }
  }

  static bool all_zero(const std::vector<double>& x) {
    return std::all_of(x.begin(), x.end(), [](double y) { return y == 0; });
  }
  static bool finite(const ColumnInputs& x) {
    for (const auto* values : {&x.q, &x.k, &x.g, &x.v, &x.S0})
      if (!std::all_of(values->begin(), values->end(), [](double y) { return std::isfinite(y); }))
        return false;
    return std::all_of(x.g.begin(), x.g.end(), [](double y) { return y <= 0; });
  }

  ColumnInputs column_inputs(int64_t j) const {
    const int64_t T = slice_.tokens, K = f_.K();
    ColumnInputs x{T, K, {}, {}, {}, {}, {}, f_.problem.scale};
    x.q.resize(static_cast<size_t>(T * K)), x.k = x.q, x.v.resize(static_cast<size_t>(T));
    decode_rows(f_.q, slice_.first_row, T, f_.H(), slice_.h, K, x.q.data());
    decode_rows(f_.k, slice_.first_row, T, f_.H(), slice_.h, K, x.k.data());
    if (f_.g) x.g = x.q, decode_rows(*f_.g, slice_.first_row, T, f_.H(), slice_.h, K, x.g.data());
    for (int64_t t = 0; t < T; ++t)
      decode_run(f_.v, output_row(t) + v0_ + j, 1, &x.v[static_cast<size_t>(t)]);
    x.S0.assign(static_cast<size_t>(K), 0);
    if (f_.S0)
      for (int64_t c = 0; c < K; ++c)
        decode_run(*f_.S0, state_row(c) + v0_ + j, 1, &x.S0[static_cast<size_t>(c)]);
    return x;
  }

  /// Takes over what is narrower; true where the whole column now is narrow enough.
  bool accept(int64_t j, const ColumnOutputs& y, int rung) {
    bool narrow = true;
    const auto take = [&](ReferenceOutput& out, size_t i, const Ball<double>& ball) {
      if (ball.rad < out.rad[i]) out.mid[i] = ball.mid, out.rad[i] = ball.rad;
      narrow = narrow && (!too_wide(out.rad[i], out.bound[i]) || !std::isfinite(out.mid[i]));
    };
    for (int64_t t = 0; t < slice_.tokens; ++t)
      take(f_.o, static_cast<size_t>(output_row(t) + v0_ + j), y.o[static_cast<size_t>(t)]);
    for (int64_t c = 0; c < f_.K(); ++c)
      take(f_.state, static_cast<size_t>(state_row(c) + v0_ + j), y.S[static_cast<size_t>(c)]);
    const std::lock_guard lock(f_.mutex);
    f_.o.rung = std::max(f_.o.rung, rung), f_.state.rung = std::max(f_.state.rung, rung);
    return narrow;
  }

  /// Rung 1. n paths' roundings as in rung 0, the exponential now counting error / roundoff = 128.
  void precise_column(const ColumnInputs& x, ColumnOutputs& y) const {
    const int64_t K = x.K;
    std::vector<PreciseCoefficient> coefficients(static_cast<size_t>(K));
    std::vector<double> S_hi(static_cast<size_t>(K * W)), S_lo = S_hi, P = S_hi;
    double v[W] = {}, o_hi[W], o_lo[W], companion[W], absolute = 1;
    for (int64_t c = 0; c < K; ++c) {
      S_hi[static_cast<size_t>(c * W)] = x.S0[static_cast<size_t>(c)];
      P[static_cast<size_t>(c * W)] = std::fabs(x.S0[static_cast<size_t>(c)]);
      absolute = std::fmax(absolute, 1 + std::fabs(x.S0[static_cast<size_t>(c)]));
    }
    constexpr double exponential_count = kDoubleDoubleExponentialError / kDoubleDoubleRoundoff;
    const auto factor = [&](int64_t t) {
      return gamma((exponential_count + 2) * static_cast<double>(t) + static_cast<double>(K) + 8,
                   kDoubleDoubleRoundoff) *
             (1 + 2 * gamma(8 * static_cast<double>(t) + static_cast<double>(K) + 64, kDoubleRoundoff));
    };
    y.o.resize(static_cast<size_t>(x.tokens)), y.S.resize(static_cast<size_t>(K));
    for (int64_t t = 0; t < x.tokens; ++t) {
      double q_sum = 0, k_max = 0;
      for (int64_t c = 0; c < K; ++c) {
        const size_t i = static_cast<size_t>(t * K + c);
        const DoubleDouble a = x.g.empty() ? DoubleDouble(1) : exp(DoubleDouble(x.g[i]));
        coefficients[static_cast<size_t>(c)] = {a.hi, a.lo, x.k[i], x.q[i], std::fabs(x.q[i])};
        q_sum += std::fabs(x.q[i]), k_max = std::fmax(k_max, std::fabs(x.k[i]));
      }
      v[0] = x.v[static_cast<size_t>(t)];
      absolute += (1 + k_max) * (1 + std::fabs(v[0]));
      gated_kernels().precise(
          {1, K, coefficients.data(), v, S_hi.data(), S_lo.data(), P.data(), o_hi, o_lo, companion});
      const DoubleDouble o = DoubleDouble(o_hi[0], o_lo[0]) * DoubleDouble(x.scale);
      const double scale = std::fabs(x.scale), own = kDoubleDoubleUnderflow * kUnderflowEvents * absolute;
      y.o[static_cast<size_t>(t)] =
          Ball<double>(o.hi, Ball<double>::raised(std::fabs(o.lo) + factor(t + 1) * scale * companion[0] +
                                                  own * (1 + scale) * (static_cast<double>(K) + q_sum)));
    }
    for (int64_t c = 0; c < K; ++c) {
      const size_t i = static_cast<size_t>(c * W);
      y.S[static_cast<size_t>(c)] =
          Ball<double>(S_hi[i], Ball<double>::raised(std::fabs(S_lo[i]) + factor(x.tokens) * P[i] +
                                                     kDoubleDoubleUnderflow * kUnderflowEvents * absolute));
    }
  }
  /// Weights cut at e^-600 and products below 2^-960 whose error term underflows.
  static constexpr double kDoubleDoubleUnderflow = 0x1p-860;

  const Forward& f_;
  const Slice slice_;
  const int64_t v0_, width_;
  double inflation_ = 1, k_max_ = 0;
  std::vector<double> S_, P_, E_, v_, o_, companion_, excess_;
  std::vector<double> absolute_;  ///< per column: 1 + max|S_0| + sum_j (1 + max|k_j|)(1 + |v_j|)
  std::vector<double>
      magnitude_;  ///< per column: max|S_0| + sum_j max|k_j| |v_j|, at least every |S_t| entry
  std::vector<bool> wide_;
  TileInputs inputs_;
};

ReferenceOutput make_output(std::string name, std::vector<Axis> axes) {
  ReferenceOutput out;
  out.name = std::move(name);
  size_t size = 1;
  for (const Axis& axis : axes) size *= static_cast<size_t>(axis.size);
  out.axes = std::move(axes);
  for (auto* field : {&out.mid, &out.rad, &out.bound, &out.companion, &out.underflow}) field->assign(size, 0);
  return out;
}

void explain(ReferenceOutput& out) {
  for (size_t i = 0; i < out.mid.size(); ++i)
    out.wide += !(out.rad[i] <= kEnclosureShare * out.bound[i]) || std::isinf(out.bound[i]);
  if (out.wide)
    out.undecided = fmt::format(
        "{}: {} of {} elements have no enclosure within 2^-10 of the bound (rung {} of the ladder was the "
        "last)",
        out.name, out.wide, out.mid.size(), out.rung);
}

}  // namespace

ReferenceResult gated_forward(const Problem& p, const GatedRow& row) {
  const auto start = std::chrono::steady_clock::now();
  const Sizes& s = p.sizes;
  const std::vector<Slice> slices = slices_of(p);
  const int64_t N = p.cu_seqlens.empty() ? s.B : static_cast<int64_t>(p.cu_seqlens.size()) - 1;
  ReferenceResult result;
  result.outputs.push_back(make_output("o", {{"B", s.B}, {"T", s.T}, {"H", s.H}, {"V", s.V}}));
  result.outputs.push_back(make_output("final_state", {{"N", N}, {"H", s.H}, {"K", s.K}, {"V", s.V}}));
  std::mutex mutex;
  const int64_t qk = s.B * s.T * s.H * s.K;
  Forward f{p,
            row,
            require_input(p, "q", qk),
            require_input(p, "k", qk),
            require_input(p, "v", s.B * s.T * s.H * s.V),
            find_input(p, "g", qk),
            find_input(p, "initial_state", N * s.H * s.K * s.V),
            BoundModel(p.arithmetic),
            {},
            claims_exact(p.arithmetic),
            result.outputs[0],
            result.outputs[1],
            mutex};
  f.grid = ExactGrid(f.q, f.k, f.v, f.g, f.S0, p.scale);
  const int64_t blocks = (s.V + kGroups * W - 1) / (kGroups * W);
  parallel_for(static_cast<int64_t>(slices.size()) * blocks, p.threads, [&](int64_t i) {
    Columns(f, slices[static_cast<size_t>(i / blocks)], i % blocks * kGroups * W).run();
  });
  for (ReferenceOutput& out : result.outputs) explain(out);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace assay
