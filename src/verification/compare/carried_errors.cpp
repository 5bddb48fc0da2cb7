#include "src/verification/compare/carried_errors.h"

#include <algorithm>
#include <cmath>

#include "reference/elements.h"
#include "reference/parallel.h"
#include "reference/sampled_loops.h"

namespace assay {
namespace {

constexpr double kSamples = kNoiseSamples, kPairs = kSamples * (kSamples - 1) / 2;

/// Products of samples are floats: below the least normal one, 2^-126, they lose their 24 digits, and the
/// statistic would be measured by what is left of them. A state that is left by 2^-117 carries nothing.
constexpr double kResolved = 0x1p-102;

/// Standard deviations that are passed with probability e^-t where the mean of kPairs products has told of
/// them, which share samples.
double told_by_pairs(double t) {
  return std::sqrt(2 * t * (1 + 2 * t / kPairs));
}

/// How a block's tokens read a state.
std::vector<double> doubles(const std::vector<float>& x) {
  return {x.begin(), x.end()};
}

/// States x columns: sum over t of x_tc errors_t.
std::vector<double> gathered(const std::vector<double>& x, size_t states, const std::vector<double>& errors,
                             int64_t columns) {
  const auto rows = static_cast<int64_t>(states);
  std::vector<double> y(states * static_cast<size_t>(columns));
  const int64_t tokens = rows > 0 ? static_cast<int64_t>(x.size()) / rows : 0;
  sampled_loops().doubles_times_doubles({rows, tokens, columns, x.data(), 1, rows, errors.data(), y.data()});
  return y;
}

/// |x|^T rest.
std::vector<double> bounded(const StateReads& reads, const std::vector<double>& rest, int64_t columns) {
  std::vector<double> x = doubles(reads.x);
  for (double& of : x) of = std::fabs(of);
  return gathered(x, reads.left.size(), rest, columns);
}

/// Of every column, sum over t of rest_t |x_t diag(left) A|.
void add_mixed(const StateReads& reads, const std::vector<double>& rest, const std::vector<float>& left,
               const std::vector<double>& A, std::vector<double>& y) {
  const size_t states = left.size(), width = y.size(), tokens = states > 0 ? reads.x.size() / states : 0;
  std::vector<double> x = doubles(reads.x), rows(tokens * width);
  for_each_element(x.size(), states,
                   [&](size_t i, size_t, size_t c) { x[i] *= static_cast<double>(left[c]); });
  sampled_loops().doubles_times_doubles({static_cast<int64_t>(tokens), static_cast<int64_t>(states),
                                         static_cast<int64_t>(width), x.data(), static_cast<int64_t>(states),
                                         1, A.data(), rows.data()});
  for (size_t t = 0; t < tokens; ++t)
    for (size_t v = 0; v < width; ++v) y[v] += rest[t * width + v] * std::fabs(rows[t * width + v]);
}

}  // namespace

std::vector<double> projected(const StateReads& reads, const std::vector<double>& errors, int64_t columns) {
  return gathered(doubles(reads.x), reads.left.size(), errors, columns);
}

namespace {

/// Sums over pairs of neighbouring blocks.
struct Pairs {
  double seen = 0, more = 0, of_columns = 0;
};
constexpr size_t kBlocksTogether = 32;

/// Of the blocks first .. end - 1 and the ones before them.
Pairs pairs_of(const CarriedErrors& expected, const std::vector<std::vector<double>>& errors,
               const std::vector<std::vector<double>>& rest, int64_t columns, size_t first, size_t end) {
  Pairs y;
  std::vector<double> before, before_rest;
  for (size_t b = first > 0 ? first - 1 : 0; b < end; ++b) {
    const StateReads& reads = expected.blocks[b];
    std::vector<double> here = projected(reads, errors[b], columns),
                        here_rest = bounded(reads, rest[b], columns);
    if (!before.empty()) {
      const StateReads& earlier = expected.blocks[b - 1];
      std::vector<double> mixed(static_cast<size_t>(columns));
      for_each_element(before.size(), mixed.size(), [&](size_t i, size_t row, size_t) {
        const double left = earlier.left[row];
        y.seen += left * before[i] * here[i], y.more += left * before_rest[i] * here_rest[i];
      });
      add_mixed(earlier, rest[b - 1], earlier.left, here, mixed);
      add_mixed(reads, rest[b], earlier.left, before, mixed);
      for (const double column : mixed) y.of_columns += column * column;
    }
    before = std::move(here), before_rest = std::move(here_rest);
  }
  return y;
}

}  // namespace

CarriedStatistic carried_statistic(const CarriedErrors& expected,
                                   const std::vector<std::vector<double>>& errors,
                                   const std::vector<std::vector<double>>& rest, int64_t columns, double t,
                                   int threads) {
  CarriedStatistic y;
  const size_t blocks = expected.blocks.size();
  std::vector<Pairs> groups((blocks + kBlocksTogether - 1) / kBlocksTogether);
  parallel_for(static_cast<int64_t>(groups.size()), threads, [&](int64_t i) {
    const size_t first = static_cast<size_t>(i) * kBlocksTogether;
    groups[static_cast<size_t>(i)] =
        pairs_of(expected, errors, rest, columns, first, std::min(first + kBlocksTogether, blocks));
  });
  double seen = 0, more = 0, of_columns = 0;
  for (const Pairs& of : groups) seen += of.seen, more += of.more, of_columns += of.of_columns;
  const double deviation = std::sqrt(expected.fresh + expected.old), mean = expected.mean;
  if (!(deviation > kResolved)) return y;
  const auto allowed = [&](double at) {
    const double variance = expected.fresh + expected.old * (1 + 1 / kSamples),
                 norm = std::sqrt(expected.largest) * expected.together;
    return told_by_pairs(at) * std::sqrt(variance) + 2 * at * norm + more +
           std::sqrt(2 * (at + std::log(2.0)) * of_columns);
  };
  y.deviations = (seen - mean) / deviation, y.allowed = allowed(t) / deviation;
  double low = 0, high = 64;
  while (high - low > 0x1p-8) (seen - mean > allowed((low + high) / 2) ? low : high) = (low + high) / 2;
  y.evidence = low;
  return y;
}

}  // namespace assay
