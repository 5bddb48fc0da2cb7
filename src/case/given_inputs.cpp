#include "src/case/given_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/shape_contract.h"
#include "src/case/held_order.h"
#include "src/case/names.h"

namespace assay {
namespace {

std::vector<int64_t> shape_of(const Tensor& tensor) {
  std::vector<int64_t> shape;
  for (const Axis& axis : tensor.axes) shape.push_back(axis.size);
  return shape;
}

using Specs = std::vector<ArgumentSpec>;

void require_known(const Operator& op, const Specs& specs, const Specs& outputs, const TensorMap& raw,
                   const std::string& source) {
  std::vector<std::string> names;
  for (const Specs& known : {specs, outputs})
    for (const ArgumentSpec& spec : known) names.emplace_back(spec.name);
  for (const auto& [name, tensor] : raw) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw BadInput(fmt::format("{}: {}", source,
                                 unknown_name(fmt::format("input or output of {}", op.name), name, names)));
    }
  }
  for (const ArgumentSpec& spec : specs) {
    if (!spec.optional && !raw.contains(std::string(spec.name))) {
      throw BadInput(fmt::format("{}: no tensor '{}', which {} needs", source, spec.name, op.name));
    }
  }
}

/// Channels D have the size that the case calls V.
bool has_size_of(std::string_view axis, std::string_view of_argument) {
  return axis == of_argument || (axis == "V" && of_argument == "D");
}

/// Sizes that arguments of the right rank give to the axis: that of most first, among equals the earliest
/// argument's.
std::vector<int64_t> sizes_by_vote(const Specs& specs, const TensorMap& raw, std::string_view axis) {
  std::vector<std::pair<int64_t, int64_t>> votes;  // size, number
  for (const ArgumentSpec& spec : specs) {
    const auto found = raw.find(std::string(spec.name));
    if (found == raw.end() || found->second.axes.size() != spec.axes.size()) continue;
    for (size_t i = 0; i < spec.axes.size(); ++i) {
      if (!has_size_of(axis, spec.axes[i])) continue;
      const int64_t size = found->second.axes[i].size;
      const auto vote =
          std::find_if(votes.begin(), votes.end(), [&](const auto& v) { return v.first == size; });
      if (vote == votes.end())
        votes.emplace_back(size, 1);
      else
        ++vote->second;
    }
  }
  std::stable_sort(votes.begin(), votes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<int64_t> sizes;
  for (const auto& vote : votes) sizes.push_back(vote.first);
  return sizes;
}

ShapeContract contract_of(const Case& c, const ArgumentSpec& spec, const Specs& specs) {
  const Sizes sizes = sizes_of(c);
  ShapeContract contract{std::string(spec.name), {}, spec.role == Role::log_decay, {}};
  for (const auto axis : spec.axes) contract.axes.push_back({std::string(axis), sizes.of(axis)});
  for (const ArgumentSpec& other : specs) {
    if (other.axes == spec.axes) continue;
    std::vector<int64_t>& shape = contract.others[std::string(other.name)];
    for (const auto axis : other.axes) shape.push_back(sizes.of(axis));
  }
  return contract;
}

int misfit(const Case& c, const Specs& specs, const TensorMap& raw) {
  int sum = 0;
  for (const ArgumentSpec& spec : specs)
    if (const auto found = raw.find(std::string(spec.name)); found != raw.end())
      sum += shape_misfit(contract_of(c, spec, specs), shape_of(found->second));
  return sum;
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
  std::vector<std::pair<int64_t*, std::vector<int64_t>>> disputed;
  for (const auto& [axis, size] : sizes) {
    const std::vector<int64_t> voted = sizes_by_vote(specs, raw, axis);
    const bool used = std::any_of(specs.begin(), specs.end(), [&, letter = axis](const ArgumentSpec& spec) {
      return std::any_of(spec.axes.begin(), spec.axes.end(),
                         [&](std::string_view each) { return has_size_of(letter, each); });
    });
    if (used) *size = voted.empty() ? 0 : voted.front();
    if (used && voted.size() > 1) disputed.emplace_back(size, voted);
  }
  // Where arguments disagree: the sizes under which the fewest and simplest mistakes explain all of them.
  for (const auto& [size, candidates] : disputed) {
    std::pair<int, int64_t> best{misfit(c, specs, raw), *size};
    for (const int64_t candidate : candidates) {
      *size = candidate;
      if (const int here = misfit(c, specs, raw); here < best.first) best = {here, candidate};
    }
    *size = best.second;
  }
}

/// Where heads may be merged with the channels, and no tensor says how many there are.
std::string merged_hint(const ArgumentSpec& spec, const Tensor& tensor) {
  const bool heads =
      std::any_of(spec.axes.begin(), spec.axes.end(), [](std::string_view a) { return a == "H"; });
  return heads && tensor.axes.size() + 1 == spec.axes.size()
             ? "; if heads are merged with the channels, give their number with -H"
             : "";
}

/// Of an argument whose axes no other one shares, a wrong number of them leaves its sizes unknown.
void require_rank(const ArgumentSpec& spec, const Tensor& tensor, const Sizes& sizes) {
  if (tensor.axes.size() == spec.axes.size()) return;
  for (const auto axis : spec.axes)
    if (axis != "N" && sizes.of(axis) == 0)
      throw BadInput(fmt::format("{}: expected axes [{}], got [{}] ({} axes for {}){}", spec.name,
                                 fmt::join(spec.axes, ","), fmt::join(shape_of(tensor), ","),
                                 tensor.axes.size(), spec.axes.size(), merged_hint(spec, tensor)));
}

/// The format that most plain inputs have, among equals the earliest one's, and the input that has it first.
std::optional<std::pair<Dtype, std::string>> plain_format(const Specs& specs, const TensorMap& raw) {
  std::vector<std::tuple<Dtype, std::string, int>> votes;
  for (const ArgumentSpec& spec : specs) {
    const auto found = raw.find(std::string(spec.name));
    if (found == raw.end() || !is_plain(spec.role)) continue;
    const Dtype got = found->second.dtype;
    const auto vote =
        std::find_if(votes.begin(), votes.end(), [&](const auto& v) { return std::get<0>(v) == got; });
    if (vote == votes.end())
      votes.emplace_back(got, spec.name, 1);
    else
      ++std::get<2>(*vote);
  }
  const auto most = std::max_element(votes.begin(), votes.end(), [](const auto& x, const auto& y) {
    return std::get<2>(x) < std::get<2>(y);
  });
  if (most == votes.end()) return std::nullopt;
  return std::pair{std::get<0>(*most), std::get<1>(*most)};
}

bool is_floating(Dtype dtype) {
  return dtype == Dtype::fp32 || dtype == Dtype::bf16 || dtype == Dtype::fp16;
}

/// The one format of all plain inputs; gates have their own; states are fp32.
void take_formats(Case& c, const Specs& specs, const TensorMap& raw, const std::string& source) {
  const auto plain = plain_format(specs, raw);
  if (plain) c.dtype = plain->first;
  for (const ArgumentSpec& spec : specs) {
    const auto found = raw.find(std::string(spec.name));
    if (found == raw.end()) continue;
    const Dtype got = found->second.dtype;
    if (spec.role != Role::state && !is_floating(got))
      throw BadInput(
          fmt::format("{}: {}: expected bf16, fp16 or fp32, got {}{}", source, spec.name, format(got).name,
                      got == Dtype::fp64 ? "; NumPy makes that unless told: x.astype(numpy.float32)" : ""));
    if (spec.role == Role::log_decay) c.gate_dtype = got;
    const Dtype expected = dtype_of(c, spec);
    if (got == expected) continue;
    const std::string why =
        spec.role == Role::state ? "states are fp32" : fmt::format("as {}", plain->second);
    throw BadInput(fmt::format("{}: {}: expected {} ({}), got {}", source, spec.name, format(expected).name,
                               why, format(got).name));
  }
}

/// What the file says that the outputs are. States may have any floating-point format there.
TensorMap expected_outputs(const Case& c, const Operator& op, const Specs& outputs, TensorMap& raw,
                           const std::string& source) {
  TensorMap expected;
  const Specs given = outputs_of(c, op);
  for (const ArgumentSpec& spec : outputs) {
    const auto found = raw.find(std::string(spec.name));
    if (found == raw.end()) continue;
    Tensor& tensor = found->second;
    if (std::none_of(given.begin(), given.end(), [&](const auto& g) { return g.name == spec.name; }))
      throw BadInput(
          fmt::format("{}: {}: {} has no such output here, its input is absent", source, spec.name, op.name));
    if (tensor.dtype != Dtype::fp64 && !is_floating(tensor.dtype))
      throw BadInput(fmt::format("{}: {}: expected bf16, fp16, fp32 or fp64, got {}", source, spec.name,
                                 format(tensor.dtype).name));
    const ShapeContract contract = contract_of(c, spec, outputs);
    require_shape(contract, shape_of(tensor));
    tensor.name = spec.name;
    tensor.axes = contract.axes;
    expected.emplace(spec.name, std::move(tensor));
  }
  return expected;
}

}  // namespace

std::vector<ArgumentSpec> possible_outputs(const Case& c, const Operator& op) {
  Specs specs;
  if (runs_forward(c)) specs = op.outputs;
  if (!runs_backward(c)) return specs;
  for (const ArgumentSpec& gradient : op.gradients()) specs.push_back(gradient);
  return specs;
}

GivenInputs fit_inputs(const Case& base, const Operator& op, TensorMap raw, const std::string& source,
                       int64_t heads) {
  GivenInputs given{base, {}, {}, {}};
  Case& c = given.case_;
  take_offsets(c, raw, source);
  const Specs specs = inputs_of(c, op);
  const Specs outputs = possible_outputs(c, op);
  require_known(op, specs, outputs, raw, source);
  given.notes = take_order(c, specs, outputs, raw, heads, source);
  take_sizes(c, specs, raw);
  if (heads > 0 && c.H != heads) throw BadInput(fmt::format("-H {}: {} has H = {}", heads, source, c.H));
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
    require_rank(spec, found->second, sizes);
    const ShapeContract contract = contract_of(c, spec, specs);
    require_shape(contract, shape_of(found->second));
    if (spec.role == Role::state)
      (spec.name.starts_with("d") ? c.final_state_gradient : c.initial_state) = true;  // as is_present()
    Tensor tensor = std::move(found->second);
    tensor.name = spec.name;
    tensor.axes = contract.axes;
    given.inputs.emplace(spec.name, std::move(tensor));
  }
  validate(c, op);
  given.expected = expected_outputs(c, op, outputs, raw, source);
  return given;
}

}  // namespace assay
