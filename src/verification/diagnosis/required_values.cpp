#include "src/verification/diagnosis/required_values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace assay {
namespace {

/// Of a value, or of the pool's root mean square where that is larger.
constexpr double kSameValue = 0x1p-14;
/// Some hundred lines, each of a few operations, are asked.
constexpr double kMostByChance = 0x1p-20;
constexpr double kDependent = 1e-10;

}  // namespace

std::optional<std::vector<double>> changes_needed(const std::vector<const std::vector<double>*>& columns,
                                                  const std::vector<double>& lacking) {
  const size_t n = columns.size();
  std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));  // normal equations
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  std::vector<double> size(n);
  for (size_t i = 0; i < n; ++i) {
    size[i] = std::sqrt(product(*columns[i], *columns[i]));
    if (!(size[i] > 0) || !std::isfinite(size[i])) return std::nullopt;
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) rows[i][j] = product(*columns[i], *columns[j]) / (size[i] * size[j]);
    rows[i][n] = product(*columns[i], lacking) / size[i];
  }
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::fabs(rows[i][k]) > std::fabs(rows[pivot][k])) pivot = i;
    if (!(std::fabs(rows[pivot][k]) > kDependent)) return std::nullopt;
    std::swap(rows[k], rows[pivot]);
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double times = rows[i][k] / rows[k][k];
      for (size_t j = k; j <= n; ++j) rows[i][j] -= times * rows[k][j];
    }
  }
  std::vector<double> changes(n);
  for (size_t i = 0; i < n; ++i) changes[i] = rows[i][n] / rows[i][i] / size[i];
  return changes;
}

bool become_others(const std::vector<double>& values, const std::vector<double>& changes,
                   std::vector<double> pool) {
  std::sort(pool.begin(), pool.end());
  pool.erase(std::unique(pool.begin(), pool.end()), pool.end());
  double squares = 0;
  for (const double x : pool) squares += x * x;
  const double rms = std::sqrt(squares / static_cast<double>(std::max<size_t>(1, pool.size())));
  const double by_chance = 2 * kSameValue * static_cast<double>(pool.size());
  if (values.empty() || !(rms > 0) || std::pow(by_chance, static_cast<double>(values.size())) > kMostByChance)
    return false;
  for (size_t i = 0; i < values.size(); ++i) {
    const double needed = values[i] + changes[i], near = kSameValue * std::max(std::fabs(needed), rms);
    if (std::fabs(needed) <= near || std::fabs(changes[i]) <= 2 * near) return false;
    const auto found = std::lower_bound(pool.begin(), pool.end(), needed - near);
    if (found == pool.end() || *found > needed + near) return false;
  }
  return true;
}

}  // namespace assay
