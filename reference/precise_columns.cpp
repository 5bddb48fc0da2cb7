#include "reference/precise_columns.h"

#include <algorithm>
#include <cmath>

#include "reference/bound.h"

namespace assay {
namespace {

constexpr int W = kForwardColumns;
/// Weights cut at e^-600 < 2^-865 and products below 2^-960, whose error term underflows.
constexpr double kPreciseUnderflow = 0x1p-860;

/// gamma_n of double-double after t tokens, times the roundings of the companion in double.
double factor(int64_t t, int64_t K) {
  constexpr double exponential = kDoubleDoubleExponentialError / kDoubleDoubleRoundoff;
  const double tokens = static_cast<double>(t), keys = static_cast<double>(K);
  return gamma((exponential + 2) * tokens + keys + 8, kDoubleDoubleRoundoff) *
         (1 + 2 * gamma(8 * tokens + keys + 64, kDoubleRoundoff));
}

struct PreciseStates {
  std::vector<double> hi, lo, P;
  double absolute[W];  ///< per column, R_t of bound.h

  PreciseStates(int64_t K, const std::vector<ColumnInputs>& columns)
      : hi(static_cast<size_t>(K * W)), lo(hi), P(hi) {
    std::fill(absolute, absolute + W, 1.0);
    for (size_t j = 0; j < columns.size(); ++j)
      for (int64_t c = 0; c < K; ++c) {
        const double x = columns[j].S0[static_cast<size_t>(c)];
        hi[static_cast<size_t>(c * W) + j] = x;
        P[static_cast<size_t>(c * W) + j] = std::fabs(x);
        absolute[j] = std::fmax(absolute[j], 1 + std::fabs(x));
      }
  }
};

}  // namespace

std::vector<ColumnOutputs> precise_columns(const KeyInputs& x, const std::vector<ColumnInputs>& columns) {
  const int64_t K = x.K;
  std::vector<PreciseCoefficient> coefficients(static_cast<size_t>(K));
  PreciseStates state(K, columns);
  double v[W] = {}, o_hi[W], o_lo[W], companion[W];
  std::vector<ColumnOutputs> outputs(columns.size());
  const double scale = std::fabs(x.scale);
  double bonus_max = 0;
  for (double u : x.bonus) bonus_max = std::fmax(bonus_max, std::fabs(u));
  for (int64_t t = 0; t < x.tokens; ++t) {
    double q_sum = 0, k_max = 0;
    for (int64_t c = 0; c < K; ++c) {
      const size_t i = static_cast<size_t>(t * K + c);
      const DoubleDouble a = x.weight ? *x.weight : x.g.empty() ? DoubleDouble(1) : exp(DoubleDouble(x.g[i]));
      coefficients[static_cast<size_t>(c)] = {a.hi, a.lo, x.k[i], x.q[i], std::fabs(x.q[i])};
      q_sum += std::fabs(x.q[i]), k_max = std::fmax(k_max, std::fabs(x.k[i]));
    }
    for (size_t j = 0; j < columns.size(); ++j) v[j] = columns[j].v[static_cast<size_t>(t)];
    (x.exclusive ? gated_kernels().precise_exclusive
                 : gated_kernels().precise)({1, K, coefficients.data(), v, state.hi.data(), state.lo.data(),
                                             state.P.data(), o_hi, o_lo, companion, x.bonus.data()});
    for (size_t j = 0; j < columns.size(); ++j) {
      state.absolute[j] += (1 + k_max) * (1 + std::fabs(v[j]));
      const double lost = kPreciseUnderflow * kUnderflowEvents * state.absolute[j] * (1 + bonus_max);
      const DoubleDouble o = DoubleDouble(o_hi[j], o_lo[j]) * DoubleDouble(x.scale);
      const double rad = std::fabs(o.lo) + factor(t + 1, K) * scale * companion[j] +
                         lost * (1 + scale) * (static_cast<double>(K) + q_sum);
      outputs[j].o.push_back({o.hi, Ball<double>::raised(rad)});
    }
  }
  for (size_t j = 0; j < columns.size(); ++j)
    for (int64_t c = 0; c < K; ++c) {
      const size_t i = static_cast<size_t>(c * W) + j;
      const double lost = kPreciseUnderflow * kUnderflowEvents * state.absolute[j];
      const double rad = std::fabs(state.lo[i]) + factor(x.tokens, K) * state.P[i] + lost;
      outputs[j].S.push_back({state.hi[i], Ball<double>::raised(rad)});
    }
  return outputs;
}

}  // namespace assay
