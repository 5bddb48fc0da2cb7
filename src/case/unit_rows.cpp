#include "src/case/unit_rows.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace assay {
namespace {

/// Lanes of the stream, apart from those of other draws.
enum Lane : uint64_t { kSign = 40, kShift, kChannel, kChosen, kRateKind, kRate, kRatePerChannel, kBeta };

}  // namespace

UnitRows::UnitRows(const Case& c, const RandomStream& stream, int64_t channels)
    : exact_(c.values == "exact"),
      sparse_(c.values == "sparse"),
      ones_(c.values == "ones"),
      growing_(c.values == "growing"),
      tokens_(c.T),
      channels_(channels),
      random_(stream) {
  double sum = 0;
  for (int64_t i = 0; i < channels; ++i) {
    const double x =
        ones_ ? 1
              : normal_quantile(0.5 + (static_cast<double>(i) + 0.5) / (2 * static_cast<double>(channels)));
    profile_.push_back(x), sum += x * x;
  }
  for (double& x : profile_) x /= std::sqrt(sum);
}

double UnitRows::unit(const Coordinates& at) const {
  const Coordinates row{at.b, growing_ ? 0 : at.t, at.h, 0};
  if (exact_) {
    const int64_t stride = std::max<int64_t>(1, (tokens_ + kRemovingTokens - 1) / kRemovingTokens);
    if (random_.below(stride, {at.b, at.t / stride, at.h, 0}, kChosen) != at.t % stride) return 0;
  }
  if (exact_ || sparse_) {
    if (random_.below(channels_, row, kChannel) != at.c) return 0;
    return random_.bits(row, kSign) & 1 ? -1 : 1;
  }
  const int64_t shift = random_.below(channels_, row, kShift);
  const double x = profile_[static_cast<size_t>((at.c + shift) % channels_)];
  const bool minus = !ones_ && random_.bits({row.b, row.t, row.h, at.c}, kSign) & 1;
  return minus ? -x : x;
}

double UnitRows::rate(const Coordinates& at) const {
  const Coordinates row{at.b, at.t, at.h, 0};
  if (exact_ || ones_) return 1;
  if (random_.below(64, row, kRatePerChannel) == 0) return random_.uniform(at, kRate);
  switch (random_.below(8, row, kRateKind)) {
    case 0:
      return 0;
    case 1:
      return 1;
    default:
      return random_.uniform(row, kRate);
  }
}

double UnitRows::growth(int64_t length) {
  const double nats = 40 * std::numbers::ln2 / static_cast<double>(std::max<int64_t>(length, 1));
  return std::fmin(1, portable_exp(nats) - 1);
}

double UnitRows::opposed(const Coordinates& at, int64_t length) const {
  if (growing_) return unit(at) * growth(length);
  return -(unit(at) * rate(at));
}

/// 1 - 2 |k|^2 = -(1 + growth).
double UnitRows::key(const Coordinates& at, int64_t length) const {
  return growing_ ? unit(at) * std::sqrt(1 + growth(length) / 2) : unit(at);
}

double UnitRows::replaced(const Coordinates& at) const {
  if (exact_ || ones_) return 1;
  if (growing_) return 2;
  switch (random_.below(8, at, kBeta)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return random_.below(2, at, kRateKind) ? 2 : 1 + random_.uniform(at, kRate);
    default:
      return random_.uniform(at, kRate);
  }
}

}  // namespace assay
