#include "src/case/decay_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"
#include "src/case/row_draws.h"

namespace assay {
namespace {

constexpr uint64_t kChannelLane = 1, kTokenLane = 2, kEdgeLane = 3;

/// log(1 / (1 + e^-x)) without overflow for any x.
double log_sigmoid(double x) {
  return x < 0 ? x - portable_log(1 + portable_exp(x)) : -portable_log(1 + portable_exp(-x));
}

void draw_log_sigmoids(const DecayDraw& d, int64_t count, double* out) {
  d.random.normals(d.at, count, out);
  row_draws().log_sigmoids(count, out);
  for (int64_t i = 0; i < count; ++i) out[i] /= d.arguments[0];
}

/// Below any log sigmoid of a normal number that is drawn: none lies below -8.3.
constexpr double kLeastLogSigmoid = -9;

/// Between what exponent_limit lies.
constexpr double kSmallestLimit = 0x1.62e42fefa39efp+3 * 0.97, kLargestLimit = 128 * 1.3;

/// A limit of exp in nats, one per channel, times a factor that puts it just below or above.
double exponent_limit(const DecayDraw& d) {
  // fp32 overflow 128 ln 2, fp32 normal 126 ln 2, fp32 subnormal 150 ln 2, fp16 overflow 16 ln 2 and
  // subnormal 25 ln 2; and 128 itself, for exponents taken in base 2 already.
  static constexpr double kLimits[] = {0x1.62e42fefa39efp+6, 0x1.5d589f2fe5107p+6, 0x1.9fe3682cd3be4p+6,
                                       0x1.62e42fefa39efp+3, 0x1.1542457337d43p+4, 128};
  static constexpr double kFactors[] = {0.97, 0.999, 1.001, 1.03, 1.3};
  const Coordinates channel{0, 0, d.at.h, d.at.c};
  const double limit = kLimits[d.random.below(std::size(kLimits), channel, 1)];
  return limit * kFactors[d.random.below(std::size(kFactors), channel, 2)];
}

double parse_argument(std::string_view text, std::string_view whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw BadInput(fmt::format("decay '{}': '{}' is not a number", whole, text));
  }
  return value;
}

using Arguments = std::span<const double>;

}  // namespace

Extremes ParsedDecay::extremes(Dtype dtype) const {
  const Extremes exact = profile->extremes(arguments);
  return {decode(dtype, encode(dtype, exact.least)), decode(dtype, encode(dtype, exact.greatest))};
}

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
