// The token: one line, no blanks, nothing a shell would touch. Fields after the kernel are recognised by
// their form, so that their order does not matter when read; they are always written in the same order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "reference/domain.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/block_choice.h"
#include "src/case/case.h"
#include "src/case/decay_profiles.h"
#include "src/case/layouts.h"
#include "src/case/override.h"
#include "src/case/parameters.h"
#include "src/case/values.h"

namespace assay {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text = text.substr(end + 1);
  }
}

template <typename Number>
Number token_number(std::string_view text, std::string_view field) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw BadInput(fmt::format("token field '{}': '{}' is not a number in range", field, text));
  }
  return value;
}

/// How one kind of field is read: `read` gets what follows the prefix. `exact`: the prefix is the whole
/// field.
struct Field {
  std::string_view prefix;
  bool exact;
  void (*read)(Case&, std::string_view rest, std::string_view field);
};

template <int64_t Case::*size>
void read_size(Case& c, std::string_view rest, std::string_view field) {
  c.*size = token_number<int64_t>(rest, field);
}

void read_list(std::vector<int64_t>& list, std::string_view rest, std::string_view field) {
  for (const auto& part : split(rest, ',')) list.push_back(token_number<int64_t>(part, field));
}

// Longer prefixes first.
const Field kFields[] = {
    {"backward", true, [](Case& c, auto, auto) { c.direction = Direction::backward; }},
    {"both", true, [](Case& c, auto, auto) { c.direction = Direction::both; }},
    {"h0", true, [](Case& c, auto, auto) { c.initial_state = true; }},
    {"dht", true, [](Case& c, auto, auto) { c.final_state_gradient = true; }},
    {"bf16", true, [](Case& c, auto, auto) { c.dtype = Dtype::bf16; }},
    {"fp16", true, [](Case& c, auto, auto) { c.dtype = Dtype::fp16; }},
    {"fp32", true, [](Case& c, auto, auto) { c.dtype = Dtype::fp32; }},
    {"g-", false, [](Case& c, auto rest, auto) { c.gate_dtype = format(rest).dtype; }},
    {"v-", false, [](Case& c, auto rest, auto) { c.values = find_values(rest).name; }},
    {"l-", false, [](Case& c, auto rest, auto) { c.layout = layout_text(parse_layout(rest)); }},
    {"p-", false, [](Case& c, auto rest, auto) { c.parameters = parse_parameters(rest); }},
    {"no-", false,
     [](Case& c, auto rest, auto) {
       for (const auto& name : split(rest, ',')) c.without.insert(name);
     }},
    {"blocks-", false,
     [](Case& c, auto rest, auto) {
       chosen_blocks(std::string(rest), 1);  // throws for what is none
       c.blocks = rest;
     }},
    {"rates-", false, [](Case& c, auto rest, auto field) { c.rates = token_number<double>(rest, field); }},
    {"scale-", false, [](Case& c, auto rest, auto field) { c.scale = token_number<double>(rest, field); }},
    {"cu", false, [](Case& c, auto rest, auto field) { read_list(c.cu_seqlens, rest, field); }},
    {"HV", false, read_size<&Case::HV>},
    {"B", false, read_size<&Case::B>},
    {"T", false, read_size<&Case::T>},
    {"H", false, read_size<&Case::H>},
    {"K", false, read_size<&Case::K>},
    {"V", false, read_size<&Case::V>},
    {"M", false, read_size<&Case::M>},
};

bool is_decay(std::string_view field) {
  const auto name = field.substr(0, field.find(':'));
  for (const auto& profile : decay_profiles()) {
    if (profile.name == name) return true;
  }
  return false;
}

/// Reads one field and returns its kind, for the check against repetition.
std::string_view read_field(Case& c, const std::string& field) {
  if (is_decay(field)) {
    parse_decay(field);
    c.decay = field;
    return "decay";
  }
  if (const size_t at = field.find('@'); at != std::string::npos) {
    const size_t equals = field.find('=', at);
    if (equals == std::string::npos)
      throw BadInput(fmt::format("token field '{}': write it as g@0,16,0,3=-90", field));
    const std::string text =
        field.substr(0, at) + "[" + field.substr(at + 1, equals - at - 1) + "]" + field.substr(equals);
    parse_override(text);
    c.overrides.push_back(text);
    return "";
  }
  for (const auto& row : kFields) {
    if (row.exact ? field != row.prefix : !field.starts_with(row.prefix)) continue;
    row.read(c, std::string_view(field).substr(row.prefix.size()), field);
    return row.prefix;
  }
  if (field.size() > 1 && field[0] == 's') {
    c.seed = token_number<uint64_t>(std::string_view(field).substr(1), field);
    return "s";
  }
  throw BadInput(
      fmt::format("token field '{}' is not known; a token reads like "
                  "gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0",
                  field));
}

std::string override_field(const std::string& text) {
  const size_t open = text.find('['), close = text.find("]=");
  return text.substr(0, open) + "@" + text.substr(open + 1, close - open - 1) + text.substr(close + 1);
}

}  // namespace

std::string token_of(const Case& c) {
  std::string token = fmt::format("{}/B{}/T{}/H{}", c.kernel, c.B, c.T, c.H);
  if (c.HV) token += fmt::format("/HV{}", c.HV);
  token += fmt::format("/K{}/V{}", c.K, c.V);
  if (c.M) token += fmt::format("/M{}", c.M);
  if (!c.cu_seqlens.empty()) token += fmt::format("/cu{}", fmt::join(c.cu_seqlens, ","));
  token += fmt::format("/{}/g-{}/{}", format(c.dtype).name, format(c.gate_dtype).name, c.decay);
  if (c.values != "normal") token += fmt::format("/v-{}", c.values);
  if (c.rates != kLargestRate) token += fmt::format("/rates-{}", c.rates);
  token += fmt::format("/s{}", c.seed);
  if (c.scale) token += fmt::format("/scale-{}", *c.scale);
  if (!c.parameters.empty()) token += fmt::format("/p-{}", parameters_text(c.parameters));
  if (c.direction != Direction::forward) token += fmt::format("/{}", name_of(c.direction));
  if (!c.without.empty()) token += fmt::format("/no-{}", fmt::join(c.without, ","));
  if (c.initial_state) token += "/h0";
  if (c.final_state_gradient) token += "/dht";
  if (!c.layout.empty()) token += fmt::format("/l-{}", c.layout);
  if (!c.blocks.empty()) token += fmt::format("/blocks-{}", c.blocks);
  for (const auto& text : c.overrides) token += fmt::format("/{}", override_field(text));
  return token;
}

Case parse_token(const std::string& token) {
  const std::vector<std::string> fields = split(token, '/');
  Case c;
  c.kernel = fields[0];
  if (c.kernel.empty())
    throw BadInput(
        "empty token: it starts with the kernel, as in gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/none/s42");
  std::set<std::string_view> seen;
  for (size_t i = 1; i < fields.size(); ++i) {
    std::string_view kind = read_field(c, fields[i]);
    if (kind == "bf16" || kind == "fp16" || kind == "fp32") kind = "dtype";
    if (kind == "both") kind = "backward";
    if (!kind.empty() && !seen.insert(kind).second) {
      throw BadInput(fmt::format("token field '{}': given twice", fields[i]));
    }
  }
  return c;
}

}  // namespace assay
