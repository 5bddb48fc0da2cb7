#include "src/case/parameters.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"

namespace assay {
namespace {

const ParameterSpec& spec_of(const Operator& op, std::string_view name) {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : op.parameters) {
    if (spec.name == name) return spec;
    names.emplace_back(spec.name);
  }
  if (names.empty()) throw BadInput(fmt::format("parameter {}: {} has none; leave it out", name, op.name));
  throw BadInput(unknown_name(fmt::format("parameter of {}", op.name), std::string(name), names));
}

std::string range_text(const ParameterSpec& spec) {
  std::string text = spec.whole ? "a whole number" : "a number";
  if (std::isfinite(spec.most))
    text += fmt::format(" from {} to {}", spec.least, spec.most);
  else
    text += fmt::format(" of at least {}", spec.least);
  return text;
}

}  // namespace

std::string parameters_text(const std::map<std::string, double>& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text;
}

std::map<std::string, double> parse_parameters(std::string_view text) {
  std::map<std::string, double> parameters;
  for (size_t begin = 0; begin < text.size();) {
    const std::string_view part = text.substr(begin, text.find(',', begin) - begin);
    begin += part.size() + 1;
    const size_t equals = part.find('=');
    double value = 0;
    const std::string_view digits = equals == part.npos ? "" : part.substr(equals + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (equals == 0 || error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
      throw BadInput(fmt::format("parameter '{}': write it as layer_idx=3", part));
    if (!parameters.emplace(part.substr(0, equals), value).second)
      throw BadInput(fmt::format("parameter {}: given twice", part.substr(0, equals)));
  }
  return parameters;
}

double parameter_of(const Case& c, const Operator& op, std::string_view name) {
  const ParameterSpec& spec = spec_of(op, name);
  const auto given = c.parameters.find(std::string(name));
  return given == c.parameters.end() ? spec.value : given->second;
}

void validate_parameters(const Case& c, const Operator& op) {
  for (const auto& [name, value] : c.parameters) spec_of(op, name);
  for (const ParameterSpec& spec : op.parameters) {
    const double value = parameter_of(c, op, spec.name);
    if (!(value >= spec.least && value <= spec.most) || (spec.whole && value != std::floor(value)))
      throw BadInput(fmt::format("parameter {} = {}: must be {}", spec.name, value, range_text(spec)));
    if (spec.at_most.empty()) continue;
    const double limit = parameter_of(c, op, spec.at_most);
    if (value > limit)
      throw BadInput(
          fmt::format("parameter {} = {}: must be at most {} = {}", spec.name, value, spec.at_most, limit));
  }
}

}  // namespace assay
