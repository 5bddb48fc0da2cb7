#include "fuzz/feature_classes.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "fuzz/choice.h"
#include "fuzz/generator.h"
#include "src/case/decay_profiles.h"
#include "src/case/layouts.h"

namespace assay {
namespace {

using Names = std::vector<std::string>;

int64_t limit_of(const KernelLimits& limits, char axis) {
  return axis == 'K' ? limits.max_K : axis == 'V' ? limits.max_V : axis == 'M' ? limits.max_M : INT64_MAX;
}

template <char axis>
Names size_names(const Kernel& kernel, const Operator& op) {
  static constexpr char kAxis[] = {axis, 0};
  Names names;
  if (axis != 'T' && !uses_axis(op, kAxis)) return names;
  for (const SizeClass& row : size_classes())
    if (row.axes.find(axis) != row.axes.npos && row.least <= limit_of(kernel.limits, axis))
      names.emplace_back(row.name);
  return names;
}

template <char axis, int64_t Case::*size>
std::string size_name(const Case& c, const Operator&) {
  const SizeClass* row = size_class(axis, axis == 'T' ? longest_sequence(c) : c.*size);
  return row ? std::string(row->name) : "";
}

/// Two in five are the least of their class, just above a limit; one the largest, one whole tiles or chunks:
/// some kernels take no others.
template <char axis, int64_t Case::*size>
void draw_size(Case& c, const Target& target, const std::string& name) {
  for (const SizeClass& row : size_classes()) {
    if (row.axes.find(axis) == row.axes.npos || row.name != name) continue;
    const int64_t most = std::min(row.most, limit_of(target.kernel.limits, axis));
    const int64_t any = between(row.least, most), tile = axis == 'T' ? 64 : axis == 'H' ? 1 : 16;
    const int64_t whole = any / tile * tile;
    c.*size = pick<int64_t>({{2, row.least}, {1, most}, {1, any}, {1, std::max(whole, row.least)}});
    c.*size -= ((c.*size - row.rest) % row.modulus + row.modulus) % row.modulus;
    if (size_class(axis, c.*size) != &row) c.*size = row.least;  // an earlier class's, as 48 of 17 to 63
  }
  if (axis == 'H') c.HV = uses_axis(target.op, "HV") ? c.H * pick<int64_t>({{4, 1}, {1, 2}, {1, 3}}) : 0;
  if (axis == 'T') c.cu_seqlens.clear();
}

Names packing_names(const Kernel&, const Operator&) {
  return {"no", "yes"};
}

std::string packing_name(const Case& c, const Operator&) {
  return c.cu_seqlens.empty() ? "no" : "yes";
}

/// The sequence of T tokens keeps its length; up to three others, none of them longer, lie before and after
/// it, empty ones and ones of a single token among them.
void draw_packing(Case& c, const Target&, const std::string& name) {
  c.cu_seqlens.clear();
  c.B = name == "yes" ? 1 : pick<int64_t>({{8, 1}, {1, 2}, {1, 3}});
  if (name != "yes") return;
  std::vector<int64_t> lengths{c.T};
  for (int64_t n = between(0, 3); n > 0; --n) {
    const int64_t most = std::min<int64_t>(c.T, 70);
    const int64_t length = std::min(pick<int64_t>({{1, 0}, {1, 1}, {2, between(0, most)}}), most);
    lengths.insert(chance(50) ? lengths.begin() : lengths.end(), length);
  }
  c.cu_seqlens = {0};
  for (const int64_t length : lengths) c.cu_seqlens.push_back(c.cu_seqlens.back() + length);
  c.T = c.cu_seqlens.back();
}

bool has_gates(const Operator& op) {
  const auto is_gate = [](const ArgumentSpec& spec) { return spec.role == Role::log_decay; };
  return std::any_of(op.inputs.begin(), op.inputs.end(), is_gate) ||
         std::any_of(op.outputs.begin(), op.outputs.end(), is_gate);
}

/// Of an operator without gates the second format is nobody's.
std::string format_name(const Case& c, const Operator& op) {
  const std::string first(format(c.dtype).name);
  return has_gates(op) ? first + " " + std::string(format(c.gate_dtype).name) : first;
}

template <typename Take>
void for_each_format(const KernelLimits& limits, Take&& take) {
  for (const Dtype dtype : limits.dtypes) {
    if (limits.gate_dtypes.empty()) take(dtype, Case{}.gate_dtype);
    for (const Dtype gate : limits.gate_dtypes) take(dtype, gate);
  }
}

Names format_names(const Kernel& kernel, const Operator& op) {
  Names names;
  for_each_format(kernel.limits, [&](Dtype dtype, Dtype gate) {
    Case c;
    c.dtype = dtype, c.gate_dtype = gate;
    const std::string name = format_name(c, op);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  });
  return names;
}

void draw_format(Case& c, const Target& target, const std::string& name) {
  Weighted<std::pair<Dtype, Dtype>> members;
  for_each_format(target.kernel.limits, [&](Dtype dtype, Dtype gate) {
    Case at;
    at.dtype = dtype, at.gate_dtype = gate;
    if (format_name(at, target.op) == name) members.push_back({1, {dtype, gate}});
  });
  if (!members.empty()) std::tie(c.dtype, c.gate_dtype) = pick(members);
}

Names direction_names(const Kernel& kernel, const Operator&) {
  Names names;
  for (const Direction direction : directions_of(kernel)) names.emplace_back(name_of(direction));
  return names;
}

std::string direction_name(const Case& c, const Operator&) {
  return std::string(name_of(c.direction));
}

void draw_named_direction(Case& c, const Target&, const std::string& name) {
  c.direction = direction_of(name);
  c.final_state_gradient = runs_backward(c) && chance(50);
}

/// "g dfinal_state": of inputs_of(c) the optional ones that are there.
std::string presence_name(const Case& c, const std::vector<ArgumentSpec>& inputs) {
  std::string names;
  for (const ArgumentSpec& spec : inputs)
    if (spec.optional && is_present(c, spec)) (names += names.empty() ? "" : " ") += spec.name;
  return names.empty() ? "none" : names;
}

std::string presence_name(const Case& c, const Operator& op) {
  return presence_name(c, inputs_of(c, op));
}

/// Gives the case each choice of optional inputs and of the final state's gradient, until visit() is false.
void each_presence(Case& c, const Operator& op, const std::function<bool()>& visit) {
  bool goes_on = true;
  const auto choose = [&] { each_choice_of_inputs(c, op, [&] { return goes_on = visit(); }); };
  c.final_state_gradient = false;
  choose();
  if (!goes_on || !runs_backward(c)) return;
  c.final_state_gradient = true;
  choose();
}

Names presence_names(const Kernel& kernel, const Operator& op) {
  Names names;
  for (const Direction direction : directions_of(kernel)) {
    Case c;
    c.direction = direction;
    each_presence(c, op, [&] {
      const std::string name = presence_name(c, op);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      return true;
    });
  }
  return names;
}

void draw_named_presence(Case& c, const Target& target, const std::string& name) {
  const std::vector<ArgumentSpec> inputs = inputs_of(c, target.op);
  Case at;
  at.direction = c.direction;
  each_presence(at, target.op, [&] {
    if (presence_name(at, inputs) != name) return true;
    c.without = at.without, c.initial_state = at.initial_state;
    c.final_state_gradient = at.final_state_gradient;
    return false;
  });
}

Names decay_names(const Kernel&, const Operator& op) {
  Names names;
  const auto is_gate = [](const ArgumentSpec& spec) { return spec.role == Role::log_decay; };
  if (std::none_of(op.inputs.begin(), op.inputs.end(), is_gate)) return names;
  for (const DecayProfile& profile : decay_profiles())
    if (profile.in_domain) names.emplace_back(profile.name);
  return names;
}

std::string decay_name(const Case& c, const Operator&) {
  const std::string name = c.decay.substr(0, c.decay.find(':'));
  return parse_decay(c.decay).profile->in_domain ? name : "";
}

void draw_profile(Case& c, const Target&, const std::string& name) {
  c.decay = with_variant(*parse_decay(name).profile);
}

Names value_names(const Kernel&, const Operator& op) {
  Names names;
  for (const auto& [weight, name] : drawn_values(op))
    if (name != "exact" || !op.inexact) names.push_back(name);
  return names;
}

std::string value_name(const Case& c, const Operator&) {
  return c.values;
}

void draw_values_of(Case& c, const Target&, const std::string& name) {
  c.values = name;
}

constexpr const char* kDense = "dense";
constexpr const char* kStrides = "any strides";

Names layout_names(const Kernel&, const Operator&) {
  Names names;
  for (const LayoutRow& row : layouts()) names.emplace_back(row.name);
  names.emplace_back(kStrides);
  return names;
}

/// Of the first input that does not lie row by row.
std::string layout_name(const Case& c, const Operator& op) {
  if (c.layout.empty()) return kDense;
  const ResolvedCase resolved = resolve_unchecked(c, op);
  const std::vector<LayoutEntry> entries = parse_layout(c.layout);
  for (const SizedArgument& input : resolved.inputs) {
    if (!input.layout) continue;
    const LayoutEntry* own = nullptr;
    for (const LayoutEntry& entry : entries)
      if (entry.input == input.spec.name || (entry.input.empty() && !own)) own = &entry;
    return own && own->row ? std::string(own->row->name) : kStrides;
  }
  return kDense;
}

void draw_layout_of(Case& c, const Target& target, const std::string& name) {
  if (name != kStrides)
    c.layout = name == kDense ? "" : name;
  else
    for (int attempt = 0; attempt < 8 && layout_name(c, target.op) != kStrides; ++attempt)
      c.layout = drawn_strides(c, target.op);
}

}  // namespace

const std::vector<SizeClass>& size_classes() {
  static const std::vector<SizeClass> table = {
#include "fuzz/size_classes.def"
  };
  return table;
}

const SizeClass* size_class(char axis, int64_t size) {
  const SizeClass* last = nullptr;
  for (const SizeClass& row : size_classes()) {
    if (row.axes.find(axis) == row.axes.npos) continue;
    last = &row;
    if (size >= row.least && size <= row.most && size % row.modulus == row.rest) return &row;
  }
  return last && size > last->most ? last : nullptr;
}

const std::vector<Feature>& features() {
  static const std::vector<Feature> table = {
      {"T", 'T', &size_names<'T'>, &size_name<'T', &Case::T>, &draw_size<'T', &Case::T>},
      {"packed", 0, &packing_names, &packing_name, &draw_packing},
      {"H", 'H', &size_names<'H'>, &size_name<'H', &Case::H>, &draw_size<'H', &Case::H>},
      {"K", 'K', &size_names<'K'>, &size_name<'K', &Case::K>, &draw_size<'K', &Case::K>},
      {"V", 'V', &size_names<'V'>, &size_name<'V', &Case::V>, &draw_size<'V', &Case::V>},
      {"M", 'M', &size_names<'M'>, &size_name<'M', &Case::M>, &draw_size<'M', &Case::M>},
      {"formats", 0, &format_names, &format_name, &draw_format},
      {"direction", 0, &direction_names, &direction_name, &draw_named_direction},
      {"present", 0, &presence_names, &presence_name, &draw_named_presence},
      {"decay", 0, &decay_names, &decay_name, &draw_profile},
      {"values", 0, &value_names, &value_name, &draw_values_of},
      {"layout", 0, &layout_names, &layout_name, &draw_layout_of},
  };
  return table;
}

}  // namespace assay
