#include "kernels/plan_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/base/document/json_node.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/unambiguous_json.h"

namespace assay {
namespace {

using nlohmann::json;

std::vector<Dtype> read_dtypes(const JsonNode& node) {
  std::vector<Dtype> dtypes;
  for (const JsonNode& item : node.items(1)) {
    const std::string name = item.text();
    const bool known = name == "bf16" || name == "fp16" || name == "fp32";
    if (!known)
      item.fail(fmt::format("\"{}\" is no tensor format of a kernel; write bf16, fp16 or fp32", name));
    dtypes.push_back(format(name).dtype);
  }
  return dtypes;
}

/// "grid" and "block": one expression, or one to three of them.
std::array<std::string, 3> read_extent(const JsonNode& node, bool is_array) {
  std::array<std::string, 3> extent{"1", "1", "1"};
  if (!is_array) {
    extent[0] = node.expression();
    return extent;
  }
  const auto items = node.items(1);
  if (items.size() > 3) node.fail(fmt::format("expected at most 3 entries, got {}", items.size()));
  for (size_t i = 0; i < items.size(); ++i) extent[i] = items[i].expression();
  return extent;
}

/// "absent": whether zeros stand for what is absent.
bool zeros_said(const JsonNode& node) {
  const JsonNode absent = node.get("absent", "");
  const std::string choice = absent.text();
  if (choice != "null" && choice != "zeros")
    absent.fail(fmt::format("\"{}\"; write \"null\" or \"zeros\"", choice));
  return choice == "zeros";
}

constexpr const char* kArgumentForms =
    "an argument is a tensor name, null, {\"pointer\": name, \"offset\": bytes, \"absent\": \"null\" or "
    "\"zeros\"} or a "
    "scalar {\"i8\"|\"i16\"|\"i32\"|\"i64\"|\"f32\"|\"f64\": expression}, {\"struct\": [members]}, "
    "{\"bytes\": "
    "hexadecimal digits} or {\"tensor_map\": tensor, \"box\": [..]}";

/// Notes the tensors that a composed argument names, and which of them are zeros where they are absent.
void note_tensors(const JsonNode& node, ArgumentEntry& argument) {
  if (node.is_string()) argument.tensors.push_back(node.text());
  if (!node.is_object()) return;
  for (const char* key : {"pointer", "tensor_map"}) {
    if (!node.has(key) || node.get(key, "").is_null()) continue;
    const std::string name = node.get(key, "").text();
    argument.tensors.push_back(name);
    if (node.has("absent") && zeros_said(node)) argument.given_zeros.push_back(name);
  }
  if (node.has("struct"))
    for (const JsonNode& member : node.get("struct", "").items(1)) note_tensors(member, argument);
}

ArgumentEntry read_argument(const JsonNode& node) {
  using Kind = ArgumentEntry::Kind;
  ArgumentEntry argument{.expression = "0", .where = node.pointer()};
  if (node.is_null()) return argument;
  if (node.is_string()) {
    argument.kind = Kind::pointer;
    argument.name = node.text();
    return argument;
  }
  if (node.is_object() && (node.has("struct") || node.has("bytes") || node.has("tensor_map"))) {
    argument.kind = Kind::composed, argument.expression = node.written();
    note_tensors(node, argument);
    return argument;
  }
  node.keys({"pointer", "offset", "absent", "i8", "i16", "i32", "i64", "f32", "f64"});
  static constexpr std::pair<const char*, Kind> kScalars[] = {{"i8", Kind::i8},   {"i16", Kind::i16},
                                                              {"i32", Kind::i32}, {"i64", Kind::i64},
                                                              {"f32", Kind::f32}, {"f64", Kind::f64}};
  const size_t members = node.members().size();
  for (const auto& [key, kind] : kScalars) {
    if (!node.has(key)) continue;
    if (members != 1) node.fail(fmt::format("\"{}\" stands alone; {}", key, kArgumentForms));
    argument.kind = kind;
    argument.expression = node.get(key, "").expression();
    return argument;
  }
  argument.kind = Kind::pointer;
  argument.name = node.get("pointer", kArgumentForms).text();
  if (node.has("offset")) argument.expression = node.get("offset", "").expression();
  if (node.has("absent")) argument.zeros_when_absent = zeros_said(node);
  return argument;
}

LaunchEntry read_launch(const JsonNode& node, const json& raw) {
  LaunchEntry launch{.where = node.pointer()};
  if (node.has("fill")) {
    node.keys({"fill"});
    launch.fill = node.get("fill", "").text();
    return launch;
  }
  node.keys({"function", "ptx", "grid", "block", "shared", "arguments"});
  launch.function = node.get("function", "the entry of the PTX; may hold {dtype} and {gate_dtype}").text();
  if (node.has("ptx")) launch.ptx = node.get("ptx", "").text();
  launch.grid = read_extent(node.get("grid", "blocks in x, y, z, as expressions"), raw.at("grid").is_array());
  launch.block =
      read_extent(node.get("block", "threads in x, y, z, as expressions"), raw.at("block").is_array());
  if (node.has("shared")) launch.shared = node.get("shared", "").expression();
  for (const JsonNode& item : node.get("arguments", "one per parameter of the entry, in order").items())
    launch.arguments.push_back(read_argument(item));
  return launch;
}

/// The launches of a direction, in order.
std::vector<LaunchEntry> read_launches(const JsonNode& root, const json& raw, const char* key) {
  std::vector<LaunchEntry> launches;
  const auto items = root.get(key, "at least one").items(1);
  for (size_t i = 0; i < items.size(); ++i) launches.push_back(read_launch(items[i], raw[key][i]));
  return launches;
}

void read_limits(const JsonNode& node, PlanDocument& plan) {
  node.keys({"K", "V", "gate_min", "gate_max", "rate_max"});
  if (node.has("K")) plan.max_K = node.get("K", "").whole(1, 1 << 20);
  if (node.has("V")) plan.max_V = node.get("V", "").whole(1, 1 << 20);
  if (node.has("gate_min")) plan.gate_min = node.get("gate_min", "").number();
  if (node.has("gate_max")) plan.gate_max = node.get("gate_max", "").number();
  if (node.has("rate_max")) plan.rate_max = node.get("rate_max", "").number();
  if (!(plan.rate_max > 0 && plan.rate_max <= kLargestRate))
    node.get("rate_max", "").fail(fmt::format("a rate above 0 and at most {:.0f}", kLargestRate));
}

void read_numbers(const JsonNode& node, std::map<std::string, std::string>& numbers) {
  for (const auto& [name, value] : node.members()) numbers[name] = value.expression();
}

void read_backward_arithmetic(const JsonNode& node, PlanDocument& plan) {
  for (const auto& [key, value] : node.members()) {
    if (key == "state")
      read_numbers(value, plan.backward_state);
    else if (key == "adjoint")
      read_numbers(value, plan.backward_adjoint);
    else
      plan.backward[key] = value.expression();
  }
}

void read_arithmetic(const JsonNode& node, PlanDocument& plan) {
  if (node.is_string()) {
    plan.arithmetic_preset = node.text();
    return;
  }
  for (const auto& [key, value] : node.members()) {
    if (key == "preset")
      plan.arithmetic_preset = value.text();
    else if (key == "backward")
      read_backward_arithmetic(value, plan);
    else
      plan.arithmetic[key] = value.expression();
  }
}

PlanDocument read_document(const json& raw, const std::string& path) {
  const JsonNode root(raw, "", path);
  root.keys({"$schema", "operator", "name", "summary", "dtypes", "gate_dtypes", "limits", "accepts",
             "arithmetic", "resume_granularity", "exponents_nonpositive", "formula", "omits", "reads_views",
             "layouts", "workspaces", "launches", "backward_launches"});
  PlanDocument plan{.path = path};
  plan.operator_name =
      root.get("operator", "which operator the kernel claims to compute, such as \"gla\"").text();
  if (root.has("name")) plan.name = root.get("name", "").text();
  if (root.has("summary")) plan.summary = root.get("summary", "").text();
  plan.dtypes = read_dtypes(root.get("dtypes", "formats of q, k, v and o, such as [\"bf16\"]"));
  plan.gate_dtypes =
      root.has("gate_dtypes") ? read_dtypes(root.get("gate_dtypes", "")) : std::vector{Dtype::fp32};
  if (root.has("limits")) read_limits(root.get("limits", ""), plan);
  if (root.has("accepts")) plan.accepts = root.get("accepts", "").expression();
  read_arithmetic(root.get("arithmetic",
                           "without a declared arithmetic there is no error bound; name a preset "
                           "(\"fp32-recurrent\") or the numbers of `assay list arithmetic`"),
                  plan);
  if (root.has("resume_granularity"))
    plan.resume_granularity = root.get("resume_granularity", "").whole(1, int64_t{1} << 40);
  if (root.has("exponents_nonpositive"))
    plan.exponents_nonpositive = root.get("exponents_nonpositive", "").boolean();
  if (root.has("formula")) plan.formula = root.get("formula", "").boolean();
  if (root.has("omits"))
    for (const JsonNode& item : root.get("omits", "").items()) plan.omits.push_back(item.text());
  if (root.has("reads_views"))
    for (const JsonNode& item : root.get("reads_views", "").items()) plan.reads_views.push_back(item.text());
  if (root.has("layouts"))
    for (const auto& [tensor, axes] : root.get("layouts", "").members())
      for (const JsonNode& axis : axes.items(1)) plan.layouts[tensor].push_back(axis.text());
  if (root.has("workspaces"))
    for (const JsonNode& item : root.get("workspaces", "").items()) {
      item.keys({"name", "bytes"});
      plan.workspaces.push_back({item.get("name", "what arguments call it").text(),
                                 item.get("bytes", "its size, as an expression").expression(),
                                 item.pointer()});
    }
  if (root.has("backward_launches")) plan.backward_launches = read_launches(root, raw, "backward_launches");
  if (root.has("launches") || plan.backward_launches.empty())
    plan.launches = read_launches(root, raw, "launches");
  return plan;
}

}  // namespace

bool ArgumentEntry::names(std::string_view tensor) const {
  return kind == Kind::composed ? std::find(tensors.begin(), tensors.end(), tensor) != tensors.end()
                                : kind == Kind::pointer && name == tensor;
}

bool ArgumentEntry::wants_zeros(std::string_view tensor) const {
  if (kind == Kind::composed)
    return std::find(given_zeros.begin(), given_zeros.end(), tensor) != given_zeros.end();
  return zeros_when_absent && names(tensor);
}

PlanDocument parse_plan_document(const std::string& text, const std::string& path) {
  const json raw = parse_unambiguous(text, path, "not JSON");
  return read_document(raw, path);
}

PlanDocument read_plan_document(const std::string& path) {
  if (std::filesystem::is_directory(path))
    throw BadInput(fmt::format("{}: a folder; give the plan's file with --plan", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw BadInput(fmt::format("{}: cannot be read; give the plan of the kernel with --plan", path));
  std::ostringstream text;
  text << file.rdbuf();
  if (text.view().empty())
    throw BadInput(fmt::format("{}: is empty; docs/own_kernels.md says what a plan holds", path));
  return parse_plan_document(text.str(), path);
}

}  // namespace assay
