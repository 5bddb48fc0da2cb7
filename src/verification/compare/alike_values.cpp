#include "src/verification/compare/alike_values.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay {

uint64_t kind_of(const Format& f, double x, double spacing) {
  // Spacings are powers of two from 2^-1074 on. Of formats with more digits than fp32 a double is a whole
  // number of spacings.
  const uint64_t field = std::bit_cast<uint64_t>(spacing) >> 52,
                 exponent = field != 0 ? field + 52 : static_cast<uint64_t>(std::ilogb(spacing) + 1075);
  const double sixteenths = 16 * std::fabs(x) / spacing;
  const auto whole = static_cast<uint64_t>(sixteenths);
  const uint64_t nearest = whole + (sixteenths - static_cast<double>(whole) >= 0.5);
  return f.precision > 24 ? exponent << 53 | nearest >> 4 : exponent << 32 | nearest;
}

void Shares::raise(const Shares& o) {
  collision = std::fmax(collision, o.collision), largest = std::fmax(largest, o.largest);
}

void AlikeValues::begin_part() {
  ++part_, here_ = squares_ = most_ = 0;
}

namespace {

constexpr size_t kKindsAtOnce = 64;

/// visit(i) for each of the run's `kinds`, in their order, once what it reaches is near.
template <typename Entry, typename Visit>
void each_near(const ByKind<Entry>& table, std::span<const uint64_t> kinds, const Visit& visit) {
  for (const uint64_t kind : kinds) table.near_place(kind);
  for (const uint64_t kind : kinds) table.near_entry(kind);
  for (size_t i = 0; i < kinds.size(); ++i) visit(i);
}

}  // namespace

void AlikeValues::add(const Format& f, std::span<const double> x, const double* spacing) {
  for (size_t first = 0; first < x.size(); first += kKindsAtOnce) {
    uint64_t kinds[kKindsAtOnce];
    size_t count = 0;
    for (size_t i = first, end = std::min(first + kKindsAtOnce, x.size()); i < end; ++i)
      if (x[i] != 0) kinds[count++] = kind_of(f, x[i], spacing[i]);
    each_near(counts_, {kinds, count}, [&](size_t i) {
      Count& of_kind = counts_.at(kinds[i]);
      if (of_kind.part != part_) of_kind.part = part_, of_kind.here = 0;
      squares_ += 2 * of_kind.here + 1, most_ = std::max(most_, ++of_kind.here);
      ++of_kind.all, ++all_, ++here_;
    });
  }
}

void AlikeValues::add(const AlikeValues& o) {
  for (size_t i = 0; i < o.counts_.kinds().size(); ++i)
    counts_.at(o.counts_.kinds()[i]).all += o.counts_.entries()[i].all;
  all_ += o.all_;
}

namespace {
Shares shares_of(double squares, double most, double all) {
  return all == 0 ? Shares{} : Shares{squares / (all * all), most / all};
}
}  // namespace

Shares AlikeValues::of_part() const {
  return shares_of(static_cast<double>(squares_), static_cast<double>(most_), static_cast<double>(here_));
}

Shares AlikeValues::of_all() const {
  double squares = 0, most = 0;
  for (const Count& of_kind : counts_.entries()) {
    const auto count = static_cast<double>(of_kind.all);
    squares += count * count, most = std::fmax(most, count);
  }
  return shares_of(squares, most, static_cast<double>(all_));
}

void KindsAlong::add(const Format& f, std::span<const Rounding> roundings) {
  for (size_t first = 0; first < roundings.size(); first += kKindsAtOnce) {
    uint64_t kinds[kKindsAtOnce];
    const Rounding* of[kKindsAtOnce];
    size_t count = 0;
    for (const Rounding& r : roundings.subspan(first, std::min(kKindsAtOnce, roundings.size() - first)))
      if (r.along != 0) of[count] = &r, kinds[count++] = kind_of(f, r.x, r.spacing);
    each_near(sums_, {kinds, count}, [&](size_t i) {
      const Rounding& r = *of[i];
      Sum& sum = sums_.at(kinds[i]);
      sum.along += std::copysign(r.along, r.along * r.x), sum.variance = std::fmax(sum.variance, r.variance);
    });
  }
}

void KindsAlong::add(const KindsAlong& o) {
  for (size_t i = 0; i < o.sums_.kinds().size(); ++i) {
    Sum& sum = sums_.at(o.sums_.kinds()[i]);
    const Sum& from = o.sums_.entries()[i];
    sum.along += from.along, sum.variance = std::fmax(sum.variance, from.variance);
  }
}

double KindsAlong::variance() const {
  double all = 0;
  for (const Sum& sum : sums_.entries()) all += sum.along * sum.along * sum.variance;
  return all;
}

}  // namespace assay
