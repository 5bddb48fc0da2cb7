#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "reference/domain.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/layouts.h"
#include "src/case/names.h"
#include "src/case/parameters.h"
#include "src/case/resolved_case.h"

namespace assay {
namespace {

/// One tensor larger than this is refused before memory is asked for.
constexpr double kMaxTensorBytes = 0x1p40;
/// Heads, channels and slots reach kernels as 32-bit numbers, and are rounded up there.
constexpr int64_t kMostOfAnAxis = int64_t{1} << 30;

/// The message is made where it is needed.
template <class... Args>
void require(bool holds, fmt::format_string<Args...> message, Args&&... args) {
  if (!holds) throw BadInput(fmt::format(message, std::forward<Args>(args)...));
}

bool has_axis(const Operator& op, std::string_view axis) {
  const auto names = [&](const ArgumentSpec& a) {
    return std::find(a.axes.begin(), a.axes.end(), axis) != a.axes.end();
  };
  return std::any_of(op.inputs.begin(), op.inputs.end(), names);
}

void validate_sizes(const Case& c, const Operator& op) {
  const std::pair<const char*, int64_t> positive[] = {{"B", c.B}, {"H", c.H}, {"K", c.K}, {"V", c.V}};
  for (const auto& [axis, size] : positive) {
    require(size >= 1, "{} = {}: must be at least 1", axis, size);
  }
  require(c.T >= 0, "T = {}: must be at least 0", c.T);
  require(c.HV == 0 || has_axis(op, "HV"), "value heads: {} has no axis HV; leave --value-heads out",
          op.name);
  require(c.HV >= 0 && c.HV % c.H == 0, "HV = {}: must be a multiple of H = {}", c.HV, c.H);
  require(c.M == 0 || has_axis(op, "M"), "M: {} has no such axis; leave -M (--slots) out", op.name);
  require(c.M >= 1 || !has_axis(op, "M"), "M = {}: {} needs at least one {}", c.M, op.name,
          has_slots(op) ? "slot" : "write per token");
  const std::pair<const char*, int64_t> narrow[] = {
      {"H", c.H}, {"HV", c.HV}, {"K", c.K}, {"V", c.V}, {"M", c.M}};
  for (const auto& [axis, size] : narrow)
    require(size <= kMostOfAnAxis, "{} = {}: must be at most 2^30", axis, size);
  const Sizes sizes = sizes_of(c);
  for (const auto& arguments : {inputs_of(c, op), outputs_of(c, op)}) {
    for (const auto& argument : arguments) {
      double bytes = 4;
      for (const auto axis : argument.axes) bytes *= static_cast<double>(sizes.of(axis));
      require(bytes <= kMaxTensorBytes, "{} would take {:.3g} bytes: at most 2^40 are supported",
              argument.name, bytes);
    }
  }
}

void validate_packing(const Case& c) {
  const auto& cu = c.cu_seqlens;
  if (cu.empty()) return;
  const std::string text = fmt::format("cu_seqlens {}", fmt::join(cu, ","));
  require(c.B == 1, "{}: packed sequences need B = 1, got B = {}", text, c.B);
  require(cu.size() >= 2, "{}: needs at least two offsets, 0 and T", text);
  require(cu.front() == 0, "{}: must start at 0", text);
  require(std::is_sorted(cu.begin(), cu.end()), "{}: must not decrease", text);
  require(cu.back() == c.T, "{}: must end at T = {}", text, c.T);
}

void validate_dtype(const char* what, Dtype dtype) {
  const bool floating = dtype == Dtype::fp32 || dtype == Dtype::bf16 || dtype == Dtype::fp16;
  require(floating, "{} {}: must be bf16, fp16 or fp32", what, format(dtype).name);
}

void validate_without(const Case& c, const Operator& op) {
  std::vector<std::string> optional;
  for (const auto& argument : op.inputs) {
    if (argument.optional) optional.emplace_back(argument.name);
  }
  for (const auto& name : c.without) {
    if (std::find(optional.begin(), optional.end(), name) == optional.end()) {
      throw BadInput(unknown_name(fmt::format("optional input of {}", op.name), name, optional));
    }
  }
}

bool power_of_two(double x) {
  int exponent = 0;
  return std::frexp(std::fabs(x), &exponent) == 0.5;
}

void validate_values(const ResolvedCase& r) {
  const Case& c = r.case_;
  const Operator& op = *r.op;
  require(!c.scale || op.takes_scale, "scale: {} has none; leave --scale out", op.name);
  require(!c.scale || std::isnormal(static_cast<float>(*c.scale)),  // as kernels take it
          "scale {}: must be a normal number of fp32: 1.18e-38 to 3.4e38 in magnitude", c.scale.value_or(0));
  if (c.values != "exact") return;
  require(!op.inexact, "values exact: the arithmetic of {} always rounds; use other values", op.name);
  require(r.decay.profile->name == "none", "values exact: nothing may decay; use --decay none, not {}",
          c.decay);
  require(!c.scale || power_of_two(*c.scale), "values exact: scale {} must be a power of two",
          c.scale.value_or(0));
  require(c.overrides.empty(), "values exact: single elements cannot be changed, sums would round");
}

}  // namespace

Sizes sizes_of(const Case& c) {
  Sizes sizes{c.B, c.T, c.H, c.HV ? c.HV : c.H, c.K, c.V, c.M};
  sizes.N = c.cu_seqlens.empty() ? c.B : static_cast<int64_t>(c.cu_seqlens.size()) - 1;
  return sizes;
}

bool runs_forward(const Case& c) {
  return c.direction != Direction::backward;
}

bool runs_backward(const Case& c) {
  return c.direction != Direction::forward;
}

std::vector<ArgumentSpec> inputs_of(const Case& c, const Operator& op) {
  std::vector<ArgumentSpec> specs = op.inputs;
  if (!runs_backward(c)) return specs;
  for (const ArgumentSpec& spec : op.cotangents()) specs.push_back(spec);
  return specs;
}

std::vector<ArgumentSpec> outputs_of(const Case& c, const Operator& op) {
  std::vector<ArgumentSpec> specs;
  if (runs_forward(c)) specs = op.outputs;
  if (!runs_backward(c)) return specs;
  const std::vector<ArgumentSpec> gradients = op.gradients();
  for (size_t i = 0; i < gradients.size(); ++i)
    if (is_present(c, op.inputs[i])) specs.push_back(gradients[i]);
  return specs;
}

bool is_present(const Case& c, const ArgumentSpec& spec) {
  if (!spec.optional) return true;
  if (c.without.contains(std::string(spec.name))) return false;
  if (!spec.instead_of.empty() && !c.without.contains(std::string(spec.instead_of))) return false;
  if (spec.role != Role::state) return true;
  return spec.name.starts_with("d") ? c.final_state_gradient : c.initial_state;
}

Dtype dtype_of(const Case& c, const ArgumentSpec& spec) {
  if (spec.role == Role::state) return Dtype::fp32;
  return spec.role == Role::log_decay ? c.gate_dtype : c.dtype;
}

double scale_of(const Case& c, const Operator& op) {
  if (c.scale) return *c.scale;
  const double scale = op.default_scale(sizes_of(c));
  if (c.values != "exact") return scale;
  int exponent = 0;
  std::frexp(scale, &exponent);
  return std::ldexp(1.0, exponent - 1);  // the power of two at or below the default
}

SizedArgument sized(const ArgumentSpec& spec, const Case& c) {
  const Sizes sizes = sizes_of(c);
  SizedArgument argument{.spec = spec};
  argument.shape.name = spec.name;
  argument.shape.dtype = dtype_of(c, spec);
  argument.shape.axes.reserve(spec.axes.size());
  for (const auto axis : spec.axes) argument.shape.axes.push_back({std::string(axis), sizes.of(axis)});
  return argument;
}

bool has_slots(const Operator& op) {
  return std::any_of(op.outputs.begin(), op.outputs.end(), [](const ArgumentSpec& a) {
    return a.role == Role::state && std::find(a.axes.begin(), a.axes.end(), "M") != a.axes.end();
  });
}

int64_t usual_slots(const Operator& op) {
  if (has_slots(op)) return 64;
  return has_axis(op, "M") ? 2 : 0;
}

Direction direction_of(const std::string& name) {
  const auto found = value_named<Direction>(name);
  const auto all = names_of(Direction{});
  if (!found) throw BadInput(unknown_name("direction", name, {all.begin(), all.end()}));
  return *found;
}

namespace {

/// Without layouts.
ResolvedCase looked_up(const Case& c, const Operator& op) {
  ResolvedCase r{.case_ = c,
                 .op = &op,
                 .direction = c.direction,
                 .sizes = sizes_of(c),
                 .dtype = c.dtype,
                 .gate_dtype = c.gate_dtype,
                 .scale = scale_of(c, op)};
  r.decay = parse_decay(c.decay);
  r.values = &find_values(c.values);
  for (const std::string& text : c.overrides) r.overrides.push_back(parse_override(text));
  for (const ArgumentSpec& spec : inputs_of(c, op))
    if (is_present(c, spec)) r.inputs.push_back(sized(spec, c));
  for (const ArgumentSpec& spec : outputs_of(c, op)) r.outputs.push_back(sized(spec, c));
  return r;
}

}  // namespace

bool ResolvedCase::has(std::string_view input) const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const SizedArgument& argument) { return argument.spec.name == input; });
}

ResolvedCase resolve_unchecked(const Case& c, const Operator& op) {
  ResolvedCase r = looked_up(c, op);
  lay_out(r);
  return r;
}

ResolvedCase resolve(const Case& c, const Operator& op) {
  const auto legal = [](unsigned char ch) {
    return std::isalnum(ch) || std::string_view("._@%+-").find(ch) != std::string_view::npos;
  };
  require(!c.kernel.empty() && std::all_of(c.kernel.begin(), c.kernel.end(), legal),
          "kernel name '{}': only letters, digits and . _ @ % + - are allowed", c.kernel);
  validate_sizes(c, op);
  validate_packing(c);
  validate_dtype("dtype", c.dtype);
  validate_dtype("gate dtype", c.gate_dtype);
  ResolvedCase r = looked_up(c, op);
  validate_values(r);
  validate_without(c, op);
  validate_parameters(c, op);
  require(c.rates > 0 && c.rates <= kLargestRate, "rates lie in (0, 2]");
  require(c.rates == kLargestRate || removes_from_state(op), "rates: {} has none; leave --rates out",
          op.name);
  require(!c.final_state_gradient || r.backward(),
          "a gradient of the final state is an input of the backward direction: add --direction backward or "
          "both");
  lay_out(r);
  return r;
}

void validate(const Case& c, const Operator& op) {
  resolve(c, op);
}

}  // namespace assay
