#include "src/verify/acceptance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "src/numerics/bad_input.h"

namespace assay {
namespace {

/// The domain of a log decay (reference/operator.h, Role::log_decay).
constexpr double kLeastDecay = -1e4, kLargestDecay = 0;

void require_dtype(const Kernel& kernel, const char* what, Dtype dtype, const std::vector<Dtype>& accepted) {
  if (std::find(accepted.begin(), accepted.end(), dtype) != accepted.end()) return;
  std::vector<std::string_view> names;
  for (Dtype d : accepted) names.push_back(format(d).name);
  throw BadInput(fmt::format("{}: no {} {}; it takes {}", kernel.name, what, format(dtype).name,
                             fmt::join(names, ", ")));
}

void require_size(const Kernel& kernel, const char* axis, int64_t size, int64_t limit) {
  if (size > limit)
    throw BadInput(fmt::format("{}: {} = {} is beyond its limit of {}", kernel.name, axis, size, limit));
}

struct Range {
  double least, largest;
  bool contains(double x) const { return x >= least && x <= largest; }  // false for NaN
};

std::string domain_text(const ArgumentSpec& spec, const Range& range) {
  if (spec.role == Role::log_decay)
    return fmt::format("a log decay must lie in [{}, {}]", range.least, range.largest);
  return "must be finite";
}

}  // namespace

void require_accepted(const Case& c, const Kernel& kernel, const Operator& op) {
  validate(c, op);
  if (c.direction != "forward") {
    throw BadInput(
        fmt::format("{}: no entry point for direction {}; it has forward", kernel.name, c.direction));
  }
  const bool has_gate = std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ArgumentSpec& spec) {
    return spec.role == Role::log_decay && !c.without.contains(std::string(spec.name));
  });
  require_dtype(kernel, "dtype", c.dtype, kernel.limits.dtypes);
  if (has_gate) require_dtype(kernel, "gate dtype", c.gate_dtype, kernel.limits.gate_dtypes);
  require_size(kernel, "K", c.K, kernel.limits.max_K);
  require_size(kernel, "V", c.V, kernel.limits.max_V);
}

std::vector<std::string> outside_domain(const TensorMap& inputs, const Kernel& kernel, const Operator& op) {
  std::vector<std::string> lines;
  for (const ArgumentSpec& spec : op.inputs) {
    const auto found = inputs.find(std::string(spec.name));
    if (found == inputs.end()) continue;
    const Tensor& tensor = found->second;
    Range range{-std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
    if (spec.role == Role::log_decay) {
      range = {std::max(kLeastDecay, kernel.limits.gate_min),
               std::min(kLargestDecay, kernel.limits.gate_max)};
    }
    int64_t count = 0, first = -1;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (!range.contains(tensor.value(i)) && count++ == 0) first = i;
    }
    if (count == 0) continue;
    lines.push_back(fmt::format("{} = {}: {} ({} element{})", tensor.element_name(first), tensor.value(first),
                                domain_text(spec, range), count, count == 1 ? "" : "s"));
  }
  return lines;
}

Plan plan_of(const Case& c, const Kernel& kernel, const Operator& op, const TensorMap& inputs) {
  Case resolved = c;
  resolved.scale = scale_of(c, op);
  Plan plan = kernel.plan(resolved, op, inputs);
  for (const PlanOutput& output : plan.outputs) {
    const auto named = [&](const ArgumentSpec& spec) { return spec.name == output.name; };
    if (std::none_of(op.outputs.begin(), op.outputs.end(), named)) {
      throw BadInput(
          fmt::format("{}: its plan writes '{}', which {} does not have", kernel.name, output.name, op.name));
    }
  }
  return plan;
}

}  // namespace assay
