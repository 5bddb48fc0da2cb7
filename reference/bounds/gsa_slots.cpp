#include "reference/bounds/gsa_slots.h"

#include <cmath>

namespace assay {
namespace {

/// The errors' own doubles are off by less.
constexpr double kRaise = 1 + 0x1p-20;
/// What doubles are off by per token, beside the kernel's: five roundings of 1 + |x| + l.
constexpr double kOwnSumOfDoubles = 5 * 0x1p-53;
constexpr double kLeastDecay = -1e4;

}  // namespace

GsaSlots::GsaSlots(const SliceMatrix& s, const SliceMatrix& given, const Arithmetic& a)
    : g(given.values),
      g_error(s.values.size(), 0),
      w(s.values),
      w_error(g_error),
      own(!given.present && s.rows > 0) {
  if (!own) return;
  g.assign(s.values.size(), 0);
  const auto M = static_cast<size_t>(s.columns);
  for (size_t m = 0; m < M; ++m) {
    double base = s.values[m], above = 0, d = 0;  // z = base + above, base some s
    w[m] = 1;
    for (size_t i = m + M; i < w.size(); i += M) {
      const double s_t = s.values[i], before = base + above, x = (s_t - base) - above,
                   least = std::exp(-std::fabs(x)), tail = std::log1p(least), moved = std::exp(d) * kRaise;
      base = x > 0 ? s_t : base, above = x > 0 ? tail : above + tail;
      g[i] = -(std::fmax(x, 0) + tail), w[i] = (x >= 0 ? 1 : least) / (1 + least);
      const double r = kRaise * (a.own_weights + a.own_weights_per_nat * (std::fabs(x) + d));
      const double e =
          kRaise * (a.own_sum * (1 + std::fabs(s_t) + std::fabs(base + above) + std::fabs(before)) +
                    kOwnSumOfDoubles * (1 + std::fmin(std::fabs(x), -kLeastDecay) + above));
      g_error[i] = kRaise * std::fmin(1, w[i] * moved) * d + moved * r * std::fabs(g[i]) + e;
      d = kRaise * std::fmin(1, std::exp(g[i]) * moved) * d + moved * r * tail + e;
      w_error[i] = kRaise * w[i] * std::expm1(d + r + e) + a.underflow;
      g[i] = std::fmax(g[i], kLeastDecay);
    }
  }
}

}  // namespace assay
