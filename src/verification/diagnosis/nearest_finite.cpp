#include "src/verification/diagnosis/nearest_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr int64_t kPerDecade = 900;  // three-digit magnitudes m * 10^e, m = 100 .. 999, in ascending order
constexpr int kSmallerDecades = 12;
constexpr double kTiny = 1e-6;  // small enough beside any operand of a real kernel, however large the start

double magnitude_at(int64_t index) {
  const int64_t decade = index >= 0 ? index / kPerDecade : -((kPerDecade - 1 - index) / kPerDecade);
  return static_cast<double>(100 + (index - decade * kPerDecade)) *
         std::pow(10.0, static_cast<double>(decade));
}

/// Largest index whose magnitude is at most `magnitude`.
int64_t index_of(double magnitude) {
  const auto decade = static_cast<int64_t>(std::floor(std::log10(magnitude))) - 2;
  int64_t index = decade * kPerDecade;
  index += static_cast<int64_t>(magnitude / std::pow(10.0, static_cast<double>(decade))) - 100;
  while (magnitude_at(index) > magnitude) index--;
  while (magnitude_at(index + 1) <= magnitude) index++;
  return index;
}

}  // namespace

std::string nearest_finite(TensorMap inputs, const std::string& input, int64_t flat, const Replay& replay) {
  Tensor& tensor = inputs.at(input);
  const double start = tensor.value(flat);
  if (start == 0 || std::isnan(start)) return "";
  const double sign = start < 0 ? -1 : 1;
  const double magnitude = std::min(std::fabs(start), max_finite(tensor.dtype));
  auto finite_at = [&](int64_t index) -> std::optional<bool> {
    tensor.set(flat, sign * magnitude_at(index));
    return replay(inputs);
  };
  // Bisects between an index that helps and one that does not.
  auto bisect = [&](int64_t good, int64_t bad) -> std::string {
    while (std::abs(good - bad) > 1) {
      const int64_t middle = good + (bad - good) / 2;
      const std::optional<bool> finite = finite_at(middle);
      if (!finite) break;  // the good end still stands
      (*finite ? good : bad) = middle;
    }
    return fmt::format("{:.3g}", sign * magnitude_at(good));
  };
  const int64_t here = index_of(magnitude),
                tiny = std::min(here - kSmallerDecades * kPerDecade, index_of(kTiny));
  const std::optional<bool> smaller = finite_at(tiny);
  if (!smaller) return "";
  if (*smaller)
    return bisect(tiny, std::isinf(start) ? here + 1 : magnitude_at(here) == magnitude ? here : here + 1);
  int64_t bad = here;
  for (double factor = 2; factor <= 1024 && magnitude * factor <= max_finite(tensor.dtype); factor *= 4) {
    const int64_t larger = index_of(magnitude * factor);
    const std::optional<bool> finite = finite_at(larger);
    if (!finite) return "";
    if (*finite) return bisect(larger, bad);
    bad = larger;
  }
  return "";
}

}  // namespace assay
