#include "src/cli/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "src/base/numerics/bad_input.h"

namespace assay::cli {

double parse_duration(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || !(value * factor > 0) || std::isinf(value))
    throw BadInput(fmt::format("--time {}: write a duration like 60s, 5m or 2h", text));
  return value * factor;
}

}  // namespace assay::cli
