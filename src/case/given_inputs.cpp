#include "src/case/given_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "src/case/names.h"
#include "src/numerics/bad_input.h"
#include "src/tensor/shape_contract.h"

namespace assay {
namespace {

std::vector<int64_t> shape_of(const Tensor& tensor) {
  std::vector<int64_t> shape;
  for (const Axis& axis : tensor.axes) shape.push_back(axis.size);
  return shape;
}

using Specs = std::vector<ArgumentSpec>;

void require_known(const Operator& op, const Specs& specs, const TensorMap& raw, const std::string& source) {
  std::vector<std::string> names;
  for (const ArgumentSpec& spec : specs) names.emplace_back(spec.name);
  for (const auto& [name, tensor] : raw) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw BadInput(
          fmt::format("{}: {}", source, unknown_name(fmt::format("input of {}", op.name), name, names)));
    }
  }
  for (const ArgumentSpec& spec : specs) {
    if (!spec.optional && !raw.contains(std::string(spec.name))) {
      throw BadInput(fmt::format("{}: no tensor '{}', which {} needs", source, spec.name, op.name));
    }
  }
}

/// The size most arguments of the right rank give to the axis; among equals the earliest argument's.
int64_t size_by_vote(const Specs& specs, const TensorMap& raw, std::string_view axis) {
  std::vector<std::pair<int64_t, int64_t>> votes;  // size, number
  for (const ArgumentSpec& spec : specs) {
    const auto found = raw.find(std::string(spec.name));
    if (found == raw.end() || found->second.axes.size() != spec.axes.size()) continue;
    for (size_t i = 0; i < spec.axes.size(); ++i) {
      if (spec.axes[i] != axis) continue;
      const int64_t size = found->second.axes[i].size;
      const auto vote =
          std::find_if(votes.begin(), votes.end(), [&](const auto& v) { return v.first == size; });
      if (vote == votes.end())
        votes.emplace_back(size, 1);
      else
        ++vote->second;
    }
  }
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? 0 : most->first;
}

void take_offsets(Case& c, TensorMap& raw, const std::string& source) {
  const auto found = raw.find("cu_seqlens");
  if (found == raw.end()) return;
  const Tensor& offsets = found->second;
  if (offsets.axes.size() != 1 || (offsets.dtype != Dtype::i32 && offsets.dtype != Dtype::i64)) {
    throw BadInput(fmt::format("{}: cu_seqlens must be a list of i32 or i64 offsets", source));
  }
  c.cu_seqlens.clear();
  for (int64_t i = 0; i < offsets.size(); ++i) c.cu_seqlens.push_back(static_cast<int64_t>(offsets.value(i)));
  raw.erase(found);
}

void take_sizes(Case& c, const Specs& specs, const TensorMap& raw) {
  const std::pair<std::string_view, int64_t*> sizes[] = {{"B", &c.B}, {"T", &c.T}, {"H", &c.H}, {"HV", &c.HV},
                                                         {"K", &c.K}, {"V", &c.V}, {"M", &c.M}};
  for (const auto& [axis, size] : sizes) {
    const int64_t voted = size_by_vote(specs, raw, axis);
    const bool used = std::any_of(specs.begin(), specs.end(), [&, letter = axis](const ArgumentSpec& spec) {
      return std::find(spec.axes.begin(), spec.axes.end(), letter) != spec.axes.end();
    });
    if (used) *size = voted;
  }
}

/// The one format of all plain inputs; gates have their own; states are fp32.
void take_formats(Case& c, const Specs& specs, const TensorMap& raw, const std::string& source) {
  std::optional<std::string> first;
  for (const ArgumentSpec& spec : specs) {
    const auto found = raw.find(std::string(spec.name));
    if (found == raw.end()) continue;
    const Dtype got = found->second.dtype;
    if (spec.role == Role::log_decay) c.gate_dtype = got;
    if (is_plain(spec.role) && !first) {
      first = spec.name;
      c.dtype = got;
    }
    const Dtype expected = spec.role == Role::state       ? Dtype::fp32
                           : spec.role == Role::log_decay ? got
                                                          : c.dtype;
    if (got == expected) continue;
    const std::string why = spec.role == Role::state ? "states are fp32" : fmt::format("as {}", *first);
    throw BadInput(fmt::format("{}: {}: expected {} ({}), got {}", source, spec.name, format(expected).name,
                               why, format(got).name));
  }
}

}  // namespace

GivenInputs fit_inputs(const Case& base, const Operator& op, TensorMap raw, const std::string& source) {
  GivenInputs given{base, {}};
  Case& c = given.case_;
  take_offsets(c, raw, source);
  const Specs specs = inputs_of(c, op);
  require_known(op, specs, raw, source);
  take_sizes(c, specs, raw);
  take_formats(c, specs, raw, source);
  const Sizes sizes = sizes_of(c);
  c.without.clear();
  c.initial_state = c.final_state_gradient = false;
  for (const ArgumentSpec& spec : specs) {
    const auto found = raw.find(std::string(spec.name));
    if (found == raw.end()) {
      if (spec.role != Role::state) c.without.emplace(spec.name);
      continue;
    }
    ShapeContract contract{std::string(spec.name), {}, spec.role == Role::log_decay};
    for (const auto axis : spec.axes) contract.axes.push_back({std::string(axis), sizes.of(axis)});
    require_shape(contract, shape_of(found->second));
    if (spec.role == Role::state)
      (spec.name.starts_with("d") ? c.final_state_gradient : c.initial_state) = true;  // as is_present()
    Tensor tensor = std::move(found->second);
    tensor.name = spec.name;
    tensor.axes = contract.axes;
    given.inputs.emplace(spec.name, std::move(tensor));
  }
  validate(c, op);
  return given;
}

}  // namespace assay
