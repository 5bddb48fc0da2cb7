#include "src/case/decay_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "src/case/names.h"
#include "src/numerics/bad_input.h"

namespace assay {
namespace {

constexpr uint64_t kChannelLane = 1, kTokenLane = 2;

/// log(1 / (1 + e^-x)) without overflow for any x.
double log_sigmoid(double x) {
  return x < 0 ? x - portable_log(1 + portable_exp(x)) : -portable_log(1 + portable_exp(-x));
}

double parse_argument(std::string_view text, std::string_view whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw BadInput(fmt::format("decay '{}': '{}' is not a number", whole, text));
  }
  return value;
}

}  // namespace

const std::vector<DecayProfile>& decay_profiles() {
  static const std::vector<DecayProfile> table = {
#include "src/case/decay_profiles.def"
  };
  return table;
}

ParsedDecay parse_decay(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto& table = decay_profiles();
  const auto row = std::find_if(table.begin(), table.end(), [&](const auto& p) { return p.name == name; });
  if (row == table.end()) {
    std::vector<std::string> names;
    for (const auto& profile : table) names.emplace_back(profile.name);
    throw BadInput(unknown_name("decay profile", name, names));
  }
  ParsedDecay parsed{&*row, row->defaults};
  if (colon == std::string_view::npos) return parsed;
  std::string_view rest = text.substr(colon + 1);
  for (size_t i = 0;; ++i) {
    const size_t comma = rest.find(',');
    if (i >= parsed.arguments.size()) {
      throw BadInput(fmt::format("decay '{}': {} takes {} argument{}{}", text, name, parsed.arguments.size(),
                                 parsed.arguments.size() == 1 ? "" : "s",
                                 row->arguments.empty() ? "" : fmt::format(" ({})", row->arguments)));
    }
    parsed.arguments[i] = parse_argument(rest.substr(0, comma), text);
    if (comma == std::string_view::npos) return parsed;
    rest = rest.substr(comma + 1);
  }
}

}  // namespace assay
