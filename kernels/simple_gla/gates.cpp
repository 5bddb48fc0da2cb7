#include "kernels/simple_gla/gates.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "kernels/module_text.h"

namespace assay::gated {
namespace {

/// Natural-log decay of head h; absent where the operator's heads have none of their own.
std::optional<double> head_decay(const Operator& op, int64_t h, int64_t heads) {
  if (op.name == "retention") return std::log1p(-std::ldexp(1.0, static_cast<int>(-5 - h)));
  if (op.name != "lightning_attn") return {};
  double layer = 0, layers = 1;
  for (const ParameterSpec& parameter : op.parameters) {
    if (parameter.name == "layer_idx") layer = parameter.value;
    if (parameter.name == "num_layers") layers = parameter.value;
  }
  return -(8.0 / static_cast<double>(heads)) * (1 - layer / layers) * static_cast<double>(h);
}

}  // namespace

ScalarGates scalar_gates(const Case& c, const Operator& op, const TensorMap& inputs) {
  if (inputs.count("g"))
    return {"token-" + std::string(format(c.gate_dtype).name), PointerArgument{"g", 0}, {}};
  const auto given = inputs.find("g_gamma");
  const int64_t heads = sizes_of(c).H;
  if (given == inputs.end() && !head_decay(op, 0, heads)) return {"none", PointerArgument{}, {}};

  Tensor gamma("gamma", Dtype::fp32, {{"H", heads}});
  for (int64_t h = 0; h < heads; ++h) {
    const double g = given != inputs.end() ? given->second.value(h) : *head_decay(op, h, heads);
    gamma.set(h, g * std::numbers::log2e);
  }
  return {"head", PointerArgument{"gamma", 0}, std::move(gamma)};
}

Module scalar_module(const std::string& mode, const Case& c, const ScalarGates& gates) {
  return embedded_module(fmt::format("simple_gla/{}.{}.{}", mode, format(c.dtype).name, gates.kind));
}

KernelLimits scalar_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

}  // namespace assay::gated
