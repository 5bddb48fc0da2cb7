#include "src/verification/compare/carried_errors.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr double kSamples = kNoiseSamples, kFreedom = kNoiseSamples - 1;

/// Standard deviations that are passed with probability e^-t where n draws have told of them.
double student(double n, double t) {
  return std::sqrt(n * std::expm1(2 * t / n));
}

/// |x|^T rest.
std::vector<double> bounded(const StateReads& reads, const std::vector<double>& rest, int64_t columns) {
  StateReads sizes = reads;
  for (float& x : sizes.x) x = std::fabs(x);
  return projected(sizes, rest, columns);
}

}  // namespace

std::vector<double> projected(const StateReads& reads, const std::vector<double>& errors, int64_t columns) {
  const size_t states = reads.left.size(), width = static_cast<size_t>(columns);
  std::vector<double> y(states * width);
  for (size_t t = 0; t * states < reads.x.size(); ++t)
    for (size_t c = 0; c < states; ++c) {
      const double x = reads.x[t * states + c];
      for (size_t v = 0; v < width; ++v) y[c * width + v] += x * errors[t * width + v];
    }
  return y;
}

CarriedStatistic carried_statistic(const CarriedErrors& expected,
                                   const std::vector<std::vector<double>>& errors,
                                   const std::vector<std::vector<double>>& rest, int64_t columns, double t) {
  CarriedStatistic y;
  double mean = 0, squares = 0, seen = 0, more = 0, of_columns = 0;
  for (const double c : expected.sampled) mean += c / kSamples;
  for (const double c : expected.sampled) squares += (c - mean) * (c - mean) / kFreedom;
  std::vector<double> before, before_rest;
  for (size_t b = 0; b < expected.blocks.size(); ++b) {
    const StateReads& reads = expected.blocks[b];
    std::vector<double> here = projected(reads, errors[b], columns),
                        here_rest = bounded(reads, rest[b], columns);
    std::vector<double> mixed(static_cast<size_t>(columns));
    for (size_t i = 0; i < before.size(); ++i) {
      const double left = expected.blocks[b - 1].left[i / mixed.size()];
      seen += left * before[i] * here[i], more += left * before_rest[i] * here_rest[i];
      mixed[i % mixed.size()] +=
          left * (std::fabs(before[i]) * here_rest[i] + before_rest[i] * std::fabs(here[i]));
    }
    for (const double column : mixed) of_columns += column * column;
    before = std::move(here), before_rest = std::move(here_rest);
  }
  const auto pairs = kSamples * static_cast<double>(std::max<size_t>(expected.blocks.size(), 2) - 1);
  const double deviation = std::sqrt(expected.fresh + squares);
  if (!(deviation > 0)) return y;
  const auto allowed = [&](double at) {
    return student(pairs, at) * std::sqrt(expected.fresh) +
           student(kFreedom, at) * std::sqrt(squares * (1 + 1 / kSamples)) + more +
           std::sqrt(2 * (at + std::log(2.0)) * of_columns);
  };
  y.deviations = (seen - mean) / deviation, y.allowed = allowed(t) / deviation;
  double low = 0, high = 64;
  while (high - low > 0x1p-8) (seen - mean > allowed((low + high) / 2) ? low : high) = (low + high) / 2;
  y.evidence = low;
  return y;
}

}  // namespace assay
