#include "src/verification/compare/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reference/parallel.h"
#include "reference/slices.h"
#include "src/base/numerics/format_runs.h"
#include "src/verification/compare/alike_values.h"

namespace assay {
namespace {

constexpr double kUnbounded = HUGE_VAL;
/// A chunk's positions, each with its decay.
constexpr double kDecaysOfChunk = 64;

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

/// Of a row of elements: got and exact, the spacing there, what storing the exact value would give, and the
/// variance of storing it, by the program too where the tensor is coarser than its own format.
struct ElementRow {
  std::vector<double> got, exact, spacing, stored, variance;

  void read(const Tensor& tensor, const ReferenceOutput& reference, int64_t first, int64_t columns) {
    const auto count = static_cast<size_t>(columns);
    for (auto* row : {&got, &exact, &spacing, &stored, &variance}) row->resize(count);
    decode_run(tensor, first, columns, got.data());
    for (size_t i = 0; i < count; ++i) exact[i] = summed_value(reference.mid[static_cast<size_t>(first) + i]);
    ulp_run(tensor.dtype, exact.data(), columns, spacing.data());
    round_run(tensor.dtype, exact.data(), columns, stored.data());
    const double stored_before = unit_roundoff(tensor.dtype) > reference.roundoff ? reference.roundoff : 0;
    for (size_t i = 0; i < count; ++i) {
      const double before = 2 * stored_before * exact[i];
      variance[i] = (spacing[i] * spacing[i] + before * before) / 12;
    }
  }
};

/// Groups of blocks are looked at side by side.
constexpr size_t kBlocksOfGroup = 32;

/// Calls look(b, group's result) of every block in turn; the groups' results, in their order.
template <typename Result, typename Look>
std::vector<Result> by_groups(size_t blocks, int threads, const Look& look) {
  std::vector<Result> y((blocks + kBlocksOfGroup - 1) / kBlocksOfGroup);
  parallel_for(static_cast<int64_t>(y.size()), threads, [&](int64_t i) {
    const auto group = static_cast<size_t>(i);
    for (size_t b = group * kBlocksOfGroup, end = std::min(b + kBlocksOfGroup, blocks); b < end; ++b)
      look(b, y[group]);
  });
  return y;
}

SeenErrors seen_errors(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model,
                       const OutputBlock& block, AlikeValues& alike) {
  SeenErrors seen;
  const Format& f = format(got.dtype);
  ElementRow row;
  std::vector<double> judged, spacing;
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t first = model.blocks.row(block, r);
    row.read(got, reference, first, model.blocks.columns());
    judged.clear(), spacing.clear();
    for (size_t i = 0; i < row.got.size(); ++i) {
      if (model.rest[static_cast<size_t>(first) + i] < 0) continue;
      const double x = row.exact[i], e = row.got[i] - x, variance = row.variance[i];
      judged.push_back(x), spacing.push_back(row.spacing[i]);
      const double ideal = row.stored[i] - x;
      seen.squares += e * e, seen.along += e * x, seen.sum += e;
      if (std::isfinite(ideal))
        seen.ideal_squares += ideal * ideal, seen.ideal_along += ideal * x, seen.ideal_sum += ideal;
      seen.variance += variance, seen.fourth += variance * variance;
      seen.along_variance += x * x * variance, seen.largest = std::fmax(seen.largest, variance);
    }
    alike.add(f, judged, spacing.data());
  }
  return seen;
}

/// What is seen of every block, and how much of it is alike: of every block, and last of all.
struct Seen {
  std::vector<SeenErrors> errors;
  std::vector<Shares> shares;
};
Seen seen_of(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model) {
  const std::vector<OutputBlock>& blocks = model.blocks.blocks();
  Seen y{std::vector<SeenErrors>(blocks.size()), std::vector<Shares>(blocks.size())};
  const auto groups =
      by_groups<AlikeValues>(blocks.size(), model.threads, [&](size_t b, AlikeValues& values) {
        values.begin_part();
        y.errors[b] = seen_errors(got, reference, model, blocks[b], values);
        y.shares[b] = values.of_part();
      });
  AlikeValues values;
  for (const AlikeValues& group : groups) values.add(group);
  const Shares all = values.of_all();
  for (Shares& of_block : y.shares) of_block.raise(all);
  y.shares.push_back(all);
  return y;
}

/// Elements that are decoded at once, and of which a thread looks at so many runs.
constexpr int64_t kDecodedAtOnce = 256, kRunsOfPiece = 128;

/// Sum of look(first, count) over runs of elements.
template <typename Sum, typename Look>
Sum over_runs(int64_t elements, int threads, const Look& look) {
  constexpr int64_t kOfPiece = kDecodedAtOnce * kRunsOfPiece;
  std::vector<Sum> pieces(static_cast<size_t>((elements + kOfPiece - 1) / kOfPiece));
  parallel_for(std::ssize(pieces), threads, [&](int64_t piece) {
    for (int64_t first = piece * kOfPiece, end = std::min(first + kOfPiece, elements); first < end;
         first += kDecodedAtOnce)
      pieces[static_cast<size_t>(piece)].add(look(first, std::min(kDecodedAtOnce, end - first)));
  });
  Sum all;
  for (const Sum& piece : pieces) all.add(piece);
  return all;
}

struct Any {
  bool found = false;
  void add(const Any& o) { found |= o.found; }
};

/// What overflows is judged by its class.
bool may_overflow(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model) {
  const double most = max_finite(got.dtype);
  return over_runs<Any>(std::ssize(reference.mid), model.threads,
                        [&](int64_t first, int64_t count) {
                          double values[kDecodedAtOnce];
                          decode_run(got, first, count, values);
                          Any any;
                          for (int64_t j = 0; j < count; ++j) {
                            const auto i = static_cast<size_t>(first + j);
                            any.found |= model.rest[i] >= 0 &&
                                         (!std::isfinite(values[j]) ||
                                          std::fabs(reference.mid[i]) + reference.bound[i] >= most);
                          }
                          return any;
                        })
      .found;
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

namespace {

struct OnGrid {
  int64_t coarse = 0, all = 0;
  void add(const OnGrid& o) { coarse += o.coarse, all += o.all; }
};

bool is_whole(double x) {
  constexpr double kAllWhole = 0x1p52;
  const double size = std::fabs(x);
  return size >= kAllWhole || (size + kAllWhole) - kAllWhole == size;
}

}  // namespace

bool on_coarse_grid(const ReferenceOutput& reference, Dtype dtype, int threads) {
  const auto counted =
      over_runs<OnGrid>(std::ssize(reference.mid), threads, [&](int64_t first, int64_t count) {
        double spacing[kDecodedAtOnce];
        const double* const values = reference.mid.data() + first;
        ulp_run(dtype, values, count, spacing);
        OnGrid on;
        for (int64_t j = 0; j < count; ++j) {
          if (values[j] == 0 || !std::isfinite(values[j])) continue;
          ++on.all, on.coarse += is_whole(4 * values[j] / spacing[j]);
        }
        return on;
      });
  return counted.coarse * 8 > counted.all;
}

std::vector<PartStatistics> part_statistics(const Tensor& got, const ReferenceOutput& reference,
                                            const OutputModel& model, int64_t statistics) {
  std::vector<PartStatistics> y;
  if (!model.skipped.empty()) return y;
  const double t = exponent_of(statistics);
  const double kinds = kinds_of(model.operands);
  const Seen seen = seen_of(got, reference, model);
  for (OutputPart& part : model.blocks.parts()) {
    ExpectedErrors expected;
    SeenErrors errors;
    for (const size_t b : part.blocks) expected.add(model.expected[b]), errors.add(seen.errors[b]);
    errors.share(part.blocks.size() == 1 ? seen.shares[part.blocks[0]] : seen.shares.back(),
                 expected.elements);
    y.push_back(statistics_of(expected, errors, t, kinds));
    y.back().part.where = std::move(part.where);
    y.back().late = part.late;
  }
  return y;
}

namespace {

/// Errors and what else is allowed of a block's elements; 0 where they are not judged. And how many are.
struct BlockErrors {
  std::vector<double> errors, rest;
  int64_t judged = 0;
  double largest = 0;  ///< exact value
};
BlockErrors block_errors(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model,
                         const OutputBlock& block) {
  BlockErrors y;
  y.errors.reserve(static_cast<size_t>(block.rows * model.blocks.columns()));
  y.rest.reserve(y.errors.capacity());
  for (int64_t r = 0; r < block.rows; ++r)
    for (int64_t flat = model.blocks.row(block, r), end = flat + model.blocks.columns(); flat < end; ++flat) {
      const auto i = static_cast<size_t>(flat);
      const bool is_judged = model.rest[i] >= 0;
      y.errors.push_back(is_judged ? got.value(flat) - reference.mid[i] : 0);
      y.rest.push_back(is_judged ? model.rest[i] : 0), y.judged += is_judged;
      y.largest = std::fmax(y.largest, std::fabs(reference.mid[i]));
    }
  return y;
}

/// Along the direction in which a state kept in the operands' format would move the output.
struct SeenAlong {
  double seen = 0, ideal = 0, rest = 0, length = 0, fourth = 0;
  KindsAlong stored = {};

  void add(const SeenAlong& o) {
    seen += o.seen, ideal += o.ideal, rest += o.rest, length += o.length, fourth += o.fourth;
    stored.add(o.stored);
  }
};
void look_along(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model,
                const OutputBlock& block, const std::vector<float>& direction, SeenAlong& y) {
  const Format& f = format(got.dtype);
  size_t at = 0;
  ElementRow row;
  std::vector<KindsAlong::Rounding> roundings;
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t first = model.blocks.row(block, r);
    row.read(got, reference, first, model.blocks.columns());
    roundings.clear();
    for (size_t i = 0; i < row.got.size(); ++i) {
      const auto d = static_cast<double>(direction[at++]);
      if (d == 0) continue;
      const double x = row.exact[i], rounding = row.stored[i] - x;
      y.seen += d * (row.got[i] - x), y.length += d * d, y.fourth += d * d * d * d,
          y.rest += std::fabs(d) * model.rest[static_cast<size_t>(first) + i];
      if (std::isfinite(rounding)) y.ideal += d * rounding;
      roundings.push_back({x, row.spacing[i], d, row.variance[i]});
    }
    y.stored.add(f, roundings);
  }
}

/// Of its sources' sum, sub-Gaussian of that variance, more than sqrt(2 t V) with probability e^-t at most.
/// Nothing is looked for where such a state would be less than a standard deviation of it, or where few
/// elements are all of it.
CarriedStatistic kept_statistic(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model,
                                const CarriedErrors& expected, double t) {
  double noise = 0, elements = 0;
  for (const StateReads& reads : expected.blocks) {
    const ExpectedErrors& of_block = model.expected[reads.block];
    noise += of_block.noise_squares, elements += static_cast<double>(of_block.elements);
  }
  SeenAlong all;
  for (const SeenAlong& group :
       by_groups<SeenAlong>(expected.blocks.size(), model.threads, [&](size_t b, SeenAlong&of) {
         const OutputBlock& block = model.blocks.blocks()[expected.blocks[b].block];
         look_along(got, reference, model, block, expected.kept[b], of);
       }))
    all.add(group);
  CarriedStatistic y;
  const double alike = elements > 0 ? noise / kinds_of(model.operands) * all.length / elements : 0,
               variance = std::fmax(expected.kept_variance, alike) + all.stored.variance(),
               deviation = std::sqrt(variance),
               more = all.rest + std::fabs(expected.kept_common) + std::fabs(all.ideal);
  if (!(deviation > 0) || !std::isfinite(deviation + more + all.seen) || all.length < deviation ||
      all.length * all.length < all.fourth * static_cast<double>(kLeastElements))
    return y;
  y.deviations = all.seen / deviation, y.allowed = std::sqrt(2 * t) + more / deviation;
  const double over = std::fmax(0, (all.seen - more) / deviation);
  y.evidence = std::fmin(kMostEvidence, over * over / 2);
  return y;
}

/// What states carry is products of samples, sums of floats: below this they would underflow.
constexpr double kLeastCarried = 0x1p-30;

PartStatistics carried_part(const Tensor& got, const ReferenceOutput& reference, const OutputModel& model,
                            const CarriedErrors& expected, double t) {
  PartStatistics y;
  const size_t blocks = expected.blocks.size();
  std::vector<std::vector<double>> errors(blocks), rest(blocks);
  struct Group {
    int64_t judged = 0;
    double largest = 0;
  };
  double largest = 0;
  for (const Group& group : by_groups<Group>(blocks, model.threads, [&](size_t b, Group&of) {
         BlockErrors here =
             block_errors(got, reference, model, model.blocks.blocks()[expected.blocks[b].block]);
         of.judged += here.judged, of.largest = std::fmax(of.largest, here.largest);
         errors[b] = std::move(here.errors), rest[b] = std::move(here.rest);
       }))
    y.part.elements += group.judged, largest = std::fmax(largest, group.largest);
  if (largest < kLeastCarried) return {};
  const CarriedStatistic products = carried_statistic(expected, errors, rest, model.blocks.columns(), t,
                                                      model.threads),
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
  if (y.output.skipped.empty() && on_coarse_grid(reference, got.dtype, model.threads))
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
