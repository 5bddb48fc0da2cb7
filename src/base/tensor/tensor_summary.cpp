#include "src/base/tensor/tensor_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

void add(ValueClass& values, int64_t flat) {
  if (values.count++ == 0) values.first = flat;
}

}  // namespace

TensorSummary summary_of(const Tensor& tensor) {
  const Format& f = format(tensor.dtype);
  const double smallest_normal = std::ldexp(1.0, f.min_exponent);
  TensorSummary s;
  s.elements = tensor.size();
  for (int64_t flat = 0; flat < s.elements; ++flat) {
    const double x = tensor.value(flat);
    if (std::isnan(x)) {
      add(s.nan, flat);
    } else if (std::isinf(x)) {
      add(x > 0 ? s.plus_infinity : s.minus_infinity, flat);
    } else {
      s.min = std::min(s.min.value_or(x), x), s.max = std::max(s.max.value_or(x), x);
      s.zeros += x == 0;
      if (x == 0 || f.precision == 0) continue;
      s.subnormals += std::fabs(x) < smallest_normal;
      ++s.exponents[std::ilogb(x)];
    }
  }
  return s;
}

std::string exponents_text(const TensorSummary& s, int groups) {
  if (s.exponents.empty()) return "";
  const int low = s.exponents.begin()->first, high = s.exponents.rbegin()->first;
  const int width = (high - low + groups) / groups;
  int64_t all = 0;
  for (const auto& [e, n] : s.exponents) all += n;
  std::string text;
  for (int begin = low; begin <= high; begin += width) {
    const int end = std::min(begin + width - 1, high);
    int64_t count = 0;
    for (auto e = s.exponents.lower_bound(begin); e != s.exponents.end() && e->first <= end; ++e)
      count += e->second;
    if (count == 0) continue;
    text += fmt::format("{}2^{}{} {:.3g} %", text.empty() ? "" : ", ", begin,
                        end > begin ? fmt::format("..{}", end) : "",
                        100.0 * static_cast<double>(count) / static_cast<double>(all));
  }
  return text;
}

}  // namespace assay
