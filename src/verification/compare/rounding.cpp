#include "src/verification/compare/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr double kUnbounded = HUGE_VAL;
/// A chunk's positions, each with its decay.
constexpr double kDecaysOfChunk = 64;

/// Values of one kind are rounded alike, as they are nearer to each other than a sixteenth of the spacing.
using RoundedKind = std::pair<int, long long>;
RoundedKind kind_of(Dtype dtype, double x) {
  const double spacing = ulp(dtype, x);
  return {std::ilogb(spacing), std::llround(16 * std::fabs(x) / spacing)};
}

struct Shares {
  double collision = 0, largest = 0;

  void raise(const Shares& o) {
    collision = std::fmax(collision, o.collision), largest = std::fmax(largest, o.largest);
  }
};

/// Values that are rounded alike.
class Alike {
 public:
  void add(Dtype dtype, double x) {
    if (x != 0) kinds_.push_back(kind_of(dtype, x));
  }
  void add(const Alike& o) { kinds_.insert(kinds_.end(), o.kinds_.begin(), o.kinds_.end()); }
  /// Probability that two values are; share of the largest class.
  Shares shares() {
    std::sort(kinds_.begin(), kinds_.end());
    double squares = 0, most = 0;
    for (auto first = kinds_.begin(); first != kinds_.end();) {
      const auto end = std::upper_bound(first, kinds_.end(), *first);
      const auto count = static_cast<double>(end - first);
      squares += count * count, most = std::fmax(most, count);
      first = end;
    }
    const auto all = static_cast<double>(kinds_.size());
    return kinds_.empty() ? Shares{} : Shares{squares / (all * all), most / all};
  }

 private:
  std::vector<RoundedKind> kinds_;
};

/// Sums over a part's elements that depend on the values.
struct SeenErrors {
  double squares = 0, along = 0, sum = 0;  ///< e^2, e x, e
  /// The same of the exact values' own roundings: what storing does where nothing else errs.
  double ideal_squares = 0, ideal_along = 0, ideal_sum = 0;
  // Of storing: variance, its square, its largest, times x^2.
  double variance = 0, fourth = 0, largest = 0, along_variance = 0, sum_variance = 0;

  void add(const SeenErrors& o) {
    squares += o.squares, along += o.along, sum += o.sum;
    ideal_squares += o.ideal_squares, ideal_along += o.ideal_along, ideal_sum += o.ideal_sum;
    variance += o.variance, fourth += o.fourth, along_variance += o.along_variance;
    largest = std::fmax(largest, o.largest);
  }
  /// Values that are rounded alike are one source.
  void share(const Shares& shares, int64_t elements) {
    const auto n = static_cast<double>(elements);
    const double alike = std::fmax(1, n * shares.collision);
    fourth *= alike, along_variance *= alike, sum_variance = variance * alike;
    largest *= std::fmax(1, n * shares.largest);
  }
};

/// Of storing x, by the program too where the tensor is coarser than its own format.
double storing_variance(const Tensor& got, const ReferenceOutput& reference, double x) {
  const double stored_before = unit_roundoff(got.dtype) > reference.roundoff ? reference.roundoff : 0;
  const double spacing = ulp(got.dtype, x), before = 2 * stored_before * x;
  return (spacing * spacing + before * before) / 12;
}

SeenErrors seen_errors(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model,
                       const OutputBlock& block) {
  SeenErrors seen;
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t first = model.blocks.row(block, r);
    for (int64_t flat = first; flat < first + model.blocks.columns(); ++flat) {
      const auto i = static_cast<size_t>(flat);
      if (model.rest[i] < 0) continue;
      const double x = summed_value(reference.mid[i]), e = got.value(flat) - x,
                   variance = storing_variance(got, reference, x);
      const double ideal = round_to(got.dtype, x) - x;
      seen.squares += e * e, seen.along += e * x, seen.sum += e;
      if (std::isfinite(ideal))
        seen.ideal_squares += ideal * ideal, seen.ideal_along += ideal * x, seen.ideal_sum += ideal;
      seen.variance += variance, seen.fourth += variance * variance;
      seen.along_variance += x * x * variance, seen.largest = std::fmax(seen.largest, variance);
    }
  }
  return seen;
}

/// Of the whole output, and at least that of every block.
std::vector<Shares> shares_of(const ReferenceOutput& reference, const OutputModel& model, Dtype dtype) {
  Alike values;
  std::vector<Shares> shares;
  for (const OutputBlock& b : model.blocks.blocks()) {
    Alike here;
    for (int64_t r = 0; r < b.rows; ++r)
      for (int64_t flat = model.blocks.row(b, r), end = flat + model.blocks.columns(); flat < end; ++flat)
        if (const auto i = static_cast<size_t>(flat); model.rest[i] >= 0) here.add(dtype, reference.mid[i]);
    values.add(here);
    shares.push_back(here.shares());
  }
  const Shares all = values.shares();
  for (Shares& s : shares) s.raise(all);
  shares.push_back(all);
  return shares;
}

/// What overflows is judged by its class.
bool may_overflow(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model) {
  for (size_t i = 0; i < reference.mid.size(); ++i)
    if (model.rest[i] >= 0 && (!std::isfinite(got.value(static_cast<int64_t>(i))) ||
                               std::fabs(reference.mid[i]) + reference.bound[i] >= max_finite(got.dtype)))
      return true;
  return false;
}

/// Standard deviations that a direction with an estimated variance exceeds with probability e^-t.
double student(double t) {
  return std::sqrt(kNoiseSamples * std::expm1(2 * t / kNoiseSamples));
}

struct Norms {
  double trace, square, norm;  ///< tr Sigma, tr Sigma^2, |Sigma|
  double sampled;              ///< |Sigma_r|
};

Norms norms_of(const ExpectedErrors& x, const SeenErrors& seen, double t, double kinds) {
  const auto pairs = static_cast<double>(ExpectedErrors::kPairs);
  const double raise = 1 + 2 * t / pairs, alike = x.noise_squares / kinds;
  double far_square = 0;
  for (const double product : x.products) far_square += product * product / pairs;
  far_square *= raise;
  const double near_norm = std::sqrt(x.largest_near_square * raise),
               norm = std::fmax(near_norm + std::sqrt(far_square), alike);
  // tr (A + B)^2 = tr A^2 + tr B^2 + 2 tr A B; tr A B is at most |A| tr B, and sqrt(tr A^2 tr B^2)
  const double near_square = x.near_square * raise,
               both = std::fmin(near_norm * x.far_squares, std::sqrt(near_square * far_square)),
               square = std::fmax(near_square + far_square + 2 * both, alike * x.noise_squares);
  const double noise = x.noise_squares + 2 * std::sqrt(square * t / kNoiseSamples);
  const double stored = std::fmax(seen.variance, seen.ideal_squares);
  return {stored + noise, seen.fourth + 2 * seen.largest * noise + square, seen.largest + norm, norm};
}

/// Largest |x . (s + r)| for a direction of squared length `length` on which the samples are `along`.
double direction(const Norms& norms, const ExpectedErrors& x, const std::array<double, kNoiseSamples>& along,
                 double stored, double length, double t, double kinds) {
  const double two_sided = t + std::log(4.0);  // either estimate of the variance, either sign
  double squares = 0;
  for (const double y : along) squares += y * y / kNoiseSamples;
  squares =
      std::fmax(squares, x.noise_squares / kinds * length / std::fmax(1, static_cast<double>(x.elements)));
  const double by_samples = student(two_sided) * std::sqrt(squares),
               by_norm = std::sqrt(2 * two_sided * norms.sampled * length);
  return std::sqrt(2 * two_sided * stored) + std::fmin(by_samples, by_norm);
}

double kinds_of(Dtype operands) {
  return std::ldexp(kDecaysOfChunk, format(operands).precision - 1);
}

/// A part of fewer elements has too few terms: its samples may all round as the values do not.
constexpr int64_t kLeastElements = 16;

double exponent_of(int64_t statistics) {
  return std::log(static_cast<double>(std::max<int64_t>(statistics, 1)) / kFalseAlarms);
}

/// The largest t at which so much is more than is allowed.
template <typename Allowed>
double evidence(const Allowed& allowed, double seen) {
  double low = 0, high = kMostEvidence;
  if (!(seen > allowed(low))) return 0;
  if (seen > allowed(high)) return high;
  while (high - low > 0x1p-8) {
    const double middle = (low + high) / 2;
    (seen > allowed(middle) ? low : high) = middle;
  }
  return low;
}

PartStatistics statistics_of(const ExpectedErrors& x, const SeenErrors& seen, double t, double kinds) {
  PartStatistics y;
  RoundingPart& part = y.part;
  part.elements = x.elements;
  y.smallest = kUnbounded;
  if (x.elements < kLeastElements) return y;
  const double n = static_cast<double>(x.elements), size = std::sqrt(x.exact_squares);
  const Norms norms = norms_of(x, seen, t, kinds);
  const double rest = std::sqrt(x.rest_squares) + std::sqrt(x.common_squares),
               expected = std::sqrt(seen.variance + x.noise_squares + x.common_squares / 3);
  const auto squares_at = [&](double e) {
    return std::sqrt(norms.trace + 2 * std::sqrt(norms.square * e) + 2 * norms.norm * e) + rest;
  };
  const auto along_at = [&](double e) {
    return direction(norms, x, x.along, seen.along_variance, x.exact_squares, e, kinds) + x.rest_along +
           x.common_along + std::fabs(seen.ideal_along);
  };
  const auto sum_at = [&](double e) {
    return direction(norms, x, x.summed, seen.sum_variance, n, e, kinds) + x.rest + x.common_sum +
           std::fabs(seen.ideal_sum);
  };
  const double allowed = squares_at(t), along = along_at(t), sum = sum_at(t), got = std::sqrt(seen.squares);
  if (!std::isfinite(allowed + along + sum)) return y;
  y.evidence = {evidence(squares_at, got), evidence(along_at, std::fabs(seen.along)),
                evidence(sum_at, std::fabs(seen.sum))};
  part.ratio = expected > 0 ? got / expected : 0, part.allowed_ratio = expected > 0 ? allowed / expected : 0;
  const auto share = [](double part_of, double whole) {
    return whole > 0 ? part_of / whole : part_of > 0 ? kUnbounded : 0;
  };
  part.excess =
      std::max({share(got, allowed), share(std::fabs(seen.along), along), share(std::fabs(seen.sum), sum)});
  if (size == 0) return y;
  const double mean = size / std::sqrt(n);
  part.error = got / size, part.predicted = expected / size;
  part.slope = 1 + seen.along / x.exact_squares, part.allowed_slope = along / x.exact_squares;
  part.bias = seen.sum / n / mean, part.allowed_bias = sum / n / mean;
  y.smallest = std::fmin(allowed / size, along / x.exact_squares);
  return y;
}

}  // namespace

int64_t statistics_in(const std::map<std::string, OutputModel>& models, const TensorMap& outputs) {
  int64_t parts = 0;
  for (const auto& [name, model] : models)
    if (model.skipped.empty() && outputs.contains(name))
      parts += 3 * static_cast<int64_t>(model.blocks.parts().size()) +
               2 * static_cast<int64_t>(model.carried.size());
  return parts;
}

bool on_coarse_grid(const ReferenceOutput& reference, Dtype dtype) {
  int64_t coarse = 0, all = 0;
  for (const double x : reference.mid) {
    if (x == 0 || !std::isfinite(x)) continue;
    const double places = 4 * x / ulp(dtype, x);
    ++all, coarse += places == std::nearbyint(places);
  }
  return coarse * 8 > all;
}

std::vector<PartStatistics> part_statistics(const Tensor& got, const ReferenceOutput& reference,
                                            const OutputModel& model, int64_t statistics) {
  std::vector<PartStatistics> y;
  if (!model.skipped.empty()) return y;
  const double t = exponent_of(statistics);
  const double kinds = kinds_of(model.operands);
  std::vector<SeenErrors> seen;
  for (const OutputBlock& block : model.blocks.blocks())
    seen.push_back(seen_errors(got, reference, model, block));
  const std::vector<Shares> shares = shares_of(reference, model, got.dtype);
  for (OutputPart& part : model.blocks.parts()) {
    ExpectedErrors expected;
    SeenErrors errors;
    for (const size_t b : part.blocks) expected.add(model.expected[b]), errors.add(seen[b]);
    errors.share(part.blocks.size() == 1 ? shares[part.blocks[0]] : shares.back(), expected.elements);
    y.push_back(statistics_of(expected, errors, t, kinds));
    y.back().part.where = std::move(part.where);
    y.back().late = part.late;
  }
  return y;
}

namespace {

/// Errors and what else is allowed of a block's elements; 0 where they are not judged. Their number is added.
std::pair<std::vector<double>, std::vector<double>> block_errors(const Tensor& got,
                                                                 const ReferenceOutput& reference,
                                                                 const OutputModel& model,
                                                                 const OutputBlock& block, int64_t& judged) {
  std::vector<double> errors, rest;
  for (int64_t r = 0; r < block.rows; ++r)
    for (int64_t flat = model.blocks.row(block, r), end = flat + model.blocks.columns(); flat < end; ++flat) {
      const auto i = static_cast<size_t>(flat);
      const bool is_judged = model.rest[i] >= 0;
      errors.push_back(is_judged ? got.value(flat) - reference.mid[i] : 0);
      rest.push_back(is_judged ? model.rest[i] : 0), judged += is_judged;
    }
  return {errors, rest};
}

/// What roundings of the same kind make of a direction: one source each.
class KindsAlong {
 public:
  void add(Dtype dtype, double x, double along, double variance) {
    if (along != 0) values_.push_back({kind_of(dtype, x), std::copysign(along, along * x), variance});
  }
  double variance() {
    std::sort(values_.begin(), values_.end(), [](const Value& a, const Value& b) { return a.kind < b.kind; });
    double all = 0;
    for (auto first = values_.begin(); first != values_.end();) {
      double along = 0, most = 0;
      auto end = first;
      for (; end != values_.end() && end->kind == first->kind; ++end)
        along += end->along, most = std::fmax(most, end->variance);
      all += along * along * most, first = end;
    }
    return all;
  }

 private:
  struct Value {
    RoundedKind kind;
    double along, variance;
  };
  std::vector<Value> values_;
};

/// Along the direction in which a state kept in the operands' format would move the output: of its sources'
/// sum, sub-Gaussian of that variance, more than sqrt(2 t V) with probability e^-t at most. Nothing is looked
/// for where such a state would be less than a standard deviation of it, or where few elements are all of it.
CarriedStatistic kept_statistic(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model,
                                const CarriedErrors& expected, double t) {
  double seen = 0, ideal = 0, rest = 0, length = 0, fourth = 0, noise = 0, elements = 0;
  KindsAlong stored;
  for (size_t b = 0; b < expected.blocks.size(); ++b) {
    const OutputBlock& block = model.blocks.blocks()[expected.blocks[b].block];
    const ExpectedErrors& of_block = model.expected[expected.blocks[b].block];
    noise += of_block.noise_squares, elements += static_cast<double>(of_block.elements);
    size_t at = 0;
    for (int64_t r = 0; r < block.rows; ++r)
      for (int64_t flat = model.blocks.row(block, r), end = flat + model.blocks.columns(); flat < end;
           ++flat) {
        const double d = static_cast<double>(expected.kept[b][at++]);
        if (d == 0) continue;
        const auto i = static_cast<size_t>(flat);
        const double x = summed_value(reference.mid[i]), rounding = round_to(got.dtype, x) - x;
        seen += d * (got.value(flat) - x), length += d * d, fourth += d * d * d * d,
            rest += std::fabs(d) * model.rest[i];
        if (std::isfinite(rounding)) ideal += d * rounding;
        stored.add(got.dtype, x, d, storing_variance(got, reference, x));
      }
  }
  CarriedStatistic y;
  const double alike = elements > 0 ? noise / kinds_of(model.operands) * length / elements : 0,
               variance = std::fmax(expected.kept_variance, alike) + stored.variance(),
               deviation = std::sqrt(variance),
               more = rest + std::fabs(expected.kept_common) + std::fabs(ideal);
  if (!(deviation > 0) || !std::isfinite(deviation + more + seen) || length < deviation ||
      length * length < fourth * static_cast<double>(kLeastElements))
    return y;
  y.deviations = seen / deviation, y.allowed = std::sqrt(2 * t) + more / deviation;
  const double over = std::fmax(0, (seen - more) / deviation);
  y.evidence = std::fmin(kMostEvidence, over * over / 2);
  return y;
}

/// What states carry is products of samples, sums of floats: below this they would underflow.
constexpr double kLeastCarried = 0x1p-30;

PartStatistics carried_part(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model,
                            const CarriedErrors& expected, double t) {
  PartStatistics y;
  std::vector<std::vector<double>> errors, rest;
  double largest = 0;
  for (const StateReads& reads : expected.blocks) {
    const OutputBlock& block = model.blocks.blocks()[reads.block];
    for (int64_t r = 0; r < block.rows; ++r)
      for (int64_t flat = model.blocks.row(block, r), end = flat + model.blocks.columns(); flat < end; ++flat)
        largest = std::fmax(largest, std::fabs(reference.mid[static_cast<size_t>(flat)]));
  }
  if (largest < kLeastCarried) return y;
  for (const StateReads& reads : expected.blocks) {
    auto [here, here_rest] =
        block_errors(got, reference, model, model.blocks.blocks()[reads.block], y.part.elements);
    errors.push_back(std::move(here)), rest.push_back(std::move(here_rest));
  }
  const CarriedStatistic products = carried_statistic(expected, errors, rest, model.blocks.columns(), t),
                         kept = kept_statistic(got, reference, model, expected, t);
  const auto share = [](const CarriedStatistic& s) { return s.allowed > 0 ? s.deviations / s.allowed : 0; };
  const CarriedStatistic& s = share(kept) > share(products) ? kept : products;
  const OutputBlock& first = model.blocks.blocks()[expected.blocks.front().block];
  y.part.where = fmt::format("{} of head {}, sequence {}", reference.name, first.head, first.sequence);
  y.part.carried = s.deviations, y.part.allowed_carried = s.allowed;
  y.part.excess = std::fmax(0, share(s));
  y.evidence = {products.evidence, kept.evidence, 0}, y.smallest = kUnbounded;
  return y;
}

}  // namespace

RoundingJudgement judge_rounding(const Tensor& got, const ReferenceOutput& reference,
                                 const OutputModel& model, int64_t statistics) {
  RoundingJudgement y;
  y.output.name = reference.name;
  y.output.skipped = model.skipped;
  if (y.output.skipped.empty() && may_overflow(got, reference, model))
    y.output.skipped = "values that its format may not hold";
  if (y.output.skipped.empty() && on_coarse_grid(reference, got.dtype))
    y.output.skipped = "its exact values lie on a coarse grid";
  if (!y.output.skipped.empty()) return y;
  y.parts = part_statistics(got, reference, model, statistics);
  for (const CarriedErrors& expected : model.carried)
    y.carried.push_back(carried_part(got, reference, model, expected, exponent_of(statistics)));
  for (const auto* all : {&y.parts, &y.carried})
    for (const PartStatistics& p : *all) {
      if (p.part.elements < kLeastElements) continue;
      y.output.parts += all == &y.parts, y.output.unlikely += p.part.excess > 1;
      if (y.output.worst.elements == 0 || p.part.excess > y.output.worst.excess) y.output.worst = p.part;
    }
  if (!y.parts.empty()) y.output.all = y.parts.back().part;
  if (y.output.parts == 0) y.output.skipped = "too few elements";
  return y;
}

}  // namespace assay
