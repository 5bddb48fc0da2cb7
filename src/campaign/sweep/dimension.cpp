#include "src/campaign/sweep/dimension.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"
#include "src/case/parameters.h"

namespace assay {
namespace {

/// A range of more values than this is a slip of the pen.
constexpr size_t kMostValues = 4096;

int64_t whole(std::string_view option, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw BadInput(fmt::format("{} = '{}': write a whole number", option, text));
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <int64_t Case::*Size>
void set_size(Case& c, const std::string& value) {
  c.*Size = whole("size", value);
}
template <std::string Case::*Text>
void set_text(Case& c, const std::string& value) {
  c.*Text = value;
}
template <Dtype Case::*Format>
void set_format(Case& c, const std::string& value) {
  c.*Format = format(value).dtype;
}
template <bool Case::*Flag>
void set_flag(Case& c, const std::string& value) {
  if (value != "yes" && value != "no") throw BadInput(fmt::format("'{}': write yes or no", value));
  c.*Flag = value == "yes";
}
void set_cu_seqlens(Case& c, const std::string& value) {
  c.cu_seqlens.clear();
  for (const std::string& offset : split(value, ',')) c.cu_seqlens.push_back(whole("cu-seqlens", offset));
  c.T = c.cu_seqlens.back();
}
void set_scale(Case& c, const std::string& value) {
  double scale = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), scale);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(scale))
    throw BadInput(fmt::format("scale = '{}': write a finite number", value));
  c.scale = scale;
}
void set_direction(Case& c, const std::string& value) {
  c.direction = direction_of(value);
}
void set_without(Case& c, const std::string& value) {
  c.without.clear();
  if (value == "nothing") return;
  for (const std::string& name : split(value, ',')) c.without.insert(name);
}
void set_parameters(Case& c, const std::string& value) {
  for (const auto& [name, number] : parse_parameters(value)) c.parameters[name] = number;
}

struct Option {
  std::string_view name;
  bool whole_numbers;  ///< may be a range
  void (*set)(Case&, const std::string&);
};

constexpr Option kOptions[] = {
    {"batch", true, set_size<&Case::B>},
    {"length", true, set_size<&Case::T>},
    {"heads", true, set_size<&Case::H>},
    {"value-heads", true, set_size<&Case::HV>},
    {"key-dim", true, set_size<&Case::K>},
    {"value-dim", true, set_size<&Case::V>},
    {"slots", true, set_size<&Case::M>},
    {"cu-seqlens", false, set_cu_seqlens},
    {"dtype", false, set_format<&Case::dtype>},
    {"gate-dtype", false, set_format<&Case::gate_dtype>},
    {"decay", false, set_text<&Case::decay>},
    {"values", false, set_text<&Case::values>},
    {"scale", false, set_scale},
    {"parameter", false, set_parameters},
    {"direction", false, set_direction},
    {"without", false, set_without},
    {"initial-state", false, set_flag<&Case::initial_state>},
    {"final-state-gradient", false, set_flag<&Case::final_state_gradient>},
};

const Option& find_option(std::string_view name) {
  for (const Option& option : kOptions)
    if (option.name == name) return option;
  throw BadInput(unknown_name("option to sweep over", std::string(name), swept_options()));
}

/// "64..4096", "64..4096*4", "64..1024+64".
std::vector<std::string> range(std::string_view option, std::string_view text) {
  const size_t dots = text.find(".."), step = text.find_first_of("*+", dots);
  const int64_t first = whole(option, text.substr(0, dots));
  const int64_t last = whole(option, text.substr(dots + 2, step == text.npos ? text.npos : step - dots - 2));
  const bool adds = step != text.npos && text[step] == '+';
  const int64_t by = step == text.npos ? 2 : whole(option, text.substr(step + 1));
  if (first > last || (adds ? by < 1 : by < 2 || first < 1))
    throw BadInput(fmt::format(
        "--over {}={}: write FIRST..LAST, FIRST..LAST*FACTOR or FIRST..LAST+STEP, ascending", option, text));
  std::vector<std::string> values;
  for (int64_t value = first; value <= last; value = adds ? value + by : value * by) {
    values.push_back(std::to_string(value));
    if (values.size() > kMostValues)
      throw BadInput(
          fmt::format("--over {}={}: more than {} values; take a larger step", option, text, kMostValues));
    if (value > last / (adds ? 1 : by) || (adds && value > last - by)) break;
  }
  return values;
}

}  // namespace

std::vector<std::string> swept_options() {
  std::vector<std::string> names;
  for (const Option& option : kOptions) names.emplace_back(option.name);
  return names;
}

Dimension parse_dimension(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals + 1 == text.size())
    throw BadInput(
        fmt::format("--over {}: write OPTION=VALUES, as in length=64..4096 or dtype=bf16,fp32", text));
  const Option& option = find_option(text.substr(0, equals));
  const std::string_view values = text.substr(equals + 1);
  Dimension dimension{std::string(option.name), {}};
  const char separator = values.find(';') != values.npos || option.name == "cu-seqlens" ? ';' : ',';
  for (const std::string& item : split(values, separator)) {
    if (option.whole_numbers && item.find("..") != item.npos) {
      for (std::string& value : range(option.name, item)) dimension.values.push_back(std::move(value));
    } else {
      dimension.values.push_back(item);
    }
  }
  std::set<std::string> seen;
  for (const std::string& value : dimension.values) {
    Case scratch;
    apply(scratch, option.name, value);
    if (!seen.insert(value).second) throw BadInput(fmt::format("--over {}: {} is there twice", text, value));
  }
  return dimension;
}

void apply(Case& c, std::string_view option, const std::string& value) {
  find_option(option).set(c, value);
}

}  // namespace assay
