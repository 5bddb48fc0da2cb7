#include "src/case/unit_rows.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/domain.h"

namespace assay {
namespace {

/// Lanes of the stream, apart from those of other draws.
enum Lane : uint64_t {
  kSign = 40,
  kShift,
  kChannel,
  kChosen,
  kRateKind,
  kRate,
  kRatePerChannel,
  kBeta,
  kRun,
  kTurned,
  kLength,
  kAlong
};

/// Of keys whose lengths are not one.
constexpr double kLengths[] = {1.0 / 16, 0.5, 1.1, 2, 8};
/// Tokens that share a row, where rows repeat; 0: all of a sequence.
constexpr int64_t kRuns[] = {16, 64, 0};

}  // namespace

UnitRows::UnitRows(const Case& c, const RandomStream& stream, int64_t channels, bool rates)
    : exact_(c.values == "exact"),
      sparse_(c.values == "sparse"),
      ones_(c.values == "ones"),
      growing_(c.values == "growing"),
      collinear_(c.values == "collinear"),
      repeated_(c.values == "repeated"),
      reflected_(c.values == "reflected"),
      long_(c.values == "long-keys"),
      rates_(rates),
      decays_(c.decay != "none"),
      largest_(c.rates),
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

int64_t UnitRows::shared_token(const Coordinates& at) const {
  if (growing_ || reflected_) return 0;
  if (!collinear_ && !repeated_) return at.t;
  const int64_t run = kRuns[random_.below(std::size(kRuns), {at.b, 0, at.h, 0}, kRun)];
  return run == 0 ? 0 : at.t / run;
}

UnitRows::Row UnitRows::row(const Coordinates& at) const {
  Row row{{at.b, shared_token(at), at.h, 0}};
  if (exact_) {
    const int64_t stride = std::max<int64_t>(1, (tokens_ + kRemovingTokens - 1) / kRemovingTokens);
    row.removes = random_.below(stride, {at.b, at.t / stride, at.h, 0}, kChosen) == at.t % stride;
  }
  row.channel = random_.below(channels_, row.place, exact_ || sparse_ ? kChannel : kShift);
  return row;
}

double UnitRows::of_row(const Row& row, const Coordinates& at) const {
  if (!row.removes) return 0;
  if (exact_ || sparse_) {
    if (row.channel != at.c) return 0;
    return random_.bits(row.place, kSign) & 1 ? -1 : 1;
  }
  const double x = profile_[static_cast<size_t>((at.c + row.channel) % channels_)];
  bool minus = !ones_ && random_.bits({row.place.b, row.place.t, row.place.h, at.c}, kSign) & 1;
  if (collinear_) minus ^= random_.below(64, at, kTurned) == 0;
  return minus ? -x : x;
}

double UnitRows::unit(const Coordinates& at) const {
  return of_row(row(at), at);
}

void UnitRows::units(const Coordinates& first, int64_t count, double* out) const {
  const Row shared = row(first);
  Coordinates at = first;
  for (int64_t i = 0; i < count; ++i, ++at.c) out[i] = of_row(shared, at);
}

double UnitRows::rate(const Coordinates& at, uint64_t lane) const {
  const Coordinates row{at.b, at.t, at.h, 0};
  if (exact_ || ones_) return 1;
  if (reflected_) return 2;
  if (random_.below(64, row, kRatePerChannel) == 0) return random_.uniform(at, lane);
  switch (random_.below(8, row, kRateKind)) {
    case 0:
      return 0;
    case 1:
      return 1;
    default:
      return random_.uniform(row, lane);
  }
}

double UnitRows::growth(int64_t length) {
  const double nats = 40 * std::numbers::ln2 / static_cast<double>(std::max<int64_t>(length, 1));
  return std::fmin(1, portable_exp(nats) - 1);
}

double UnitRows::opposed(const Coordinates& at, int64_t length) const {
  if (growing_) return unit(at) * growth(length);
  // A decay beside it leaves no reflection of 2: diag(e^w) - 2 a a^T lengthens what it turns.
  if (reflected_ && decays_) return -unit(at);
  return -(unit(at) * rate(at, kRate));
}

/// 1 - 2 |k|^2 = -(1 + growth); 1 - |k|^2 where no rates are given.
double UnitRows::key_length(const Coordinates& at, int64_t length) const {
  if (long_) return length_of(at.b, at.t, at.h);
  if (!growing_ || largest_ < kLargestRate) return 1;
  return std::sqrt(rates_ ? 1 + growth(length) / 2 : 2 + growth(length));
}

double UnitRows::key(const Coordinates& at, int64_t length) const {
  return unit(at) * key_length(at, length);
}

void UnitRows::keys(const Coordinates& first, int64_t length, int64_t count, double* out) const {
  units(first, count, out);
  const double factor = key_length(first, length);
  for (int64_t i = 0; i < count; ++i) out[i] *= factor;
}

double UnitRows::along(const Coordinates& at, int64_t length) const {
  const double most = rates_ && !exact_ && !ones_ ? 0.5 : 1;
  if (growing_) return -(unit(at) * growth(length) * most);
  // No longer than the key's inverse where no rate shortens it.
  const double size = long_ && !rates_ ? std::fmax(1, length_of(at.b, at.t, at.h)) : 1;
  // Two vectors that are rounded apart reflect nothing exactly: a state would grow by what they differ.
  const double taken = reflected_ ? 1 : rate(at, kAlong);
  return key(at, length) * taken * most / (size * size);
}

double UnitRows::length_of(int64_t b, int64_t t, int64_t h) const {
  const double length = kLengths[random_.below(std::size(kLengths), {b, t, h, 0}, kLength)];
  // No rate takes less of what a longer key reads.
  return rates_ ? length : std::fmin(length, 1.4);
}

double UnitRows::replaced(const Coordinates& at, int64_t key_head) const {
  const double rate = any_rate(at, key_head);
  if (largest_ >= kLargestRate) return rate;
  const double length = long_ ? length_of(at.b, at.t, key_head) : 1;
  return std::fmin(rate, largest_ / std::fmax(1, length * length));
}

double UnitRows::any_rate(const Coordinates& at, int64_t key_head) const {
  if (exact_ || ones_) return 1;
  if (growing_ || reflected_) return 2;
  // Up to what leaves a state along the key as long as it is: 1 - beta |k|^2 = -1.
  if (long_) {
    const double length = length_of(at.b, at.t, key_head), most = std::fmin(2, 2 / (length * length));
    return random_.below(4, at, kBeta) ? most * random_.uniform(at, kRate) : most;
  }
  if (collinear_ || repeated_) {
    switch (random_.below(4, {at.b, 0, at.h, 0}, kBeta)) {
      case 0:
        return 1;
      case 1:
        return 2;
      case 2:
        return 1 - 0x1p-8;
      default:
        return 2 * random_.uniform(at, kRate);
    }
  }
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
