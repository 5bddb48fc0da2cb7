// The plan of gated_delta_product.fused_recurrent: the gated delta rule's on the writes of all tokens
// (reference/bounds/gated_delta_product.cpp), whose arithmetic is declared.
#include <fmt/format.h>

#include "kernels/delta/rule_kernels.h"
#include "kernels/device/tile_layout.h"
#include "kernels/inner_plan.h"
#include "kernels/launch_tables.h"

namespace assay {
namespace gated_delta_product {
namespace {

const Kernel& rule() {
  static const Kernel kernel = delta::fused_recurrent({"gated_delta_rule", delta::Gates::token});
  return kernel;
}

KernelLimits product_limits() {
  KernelLimits limits = delta::rule_limits();
  limits.value_heads = false;
  limits.max_M = 8;
  return limits;
}

/// The case as the gated delta rule has it, a token for each write.
ResolvedCase of_rule(const ResolvedCase& c) {
  Case rows = c.case_;
  rows.T *= rows.M;
  for (int64_t& offset : rows.cu_seqlens) offset *= rows.M;
  rows.M = 0, rows.layout.clear(), rows.without.insert("beta_v");
  ResolvedCase y = resolve_unchecked(rows, find_operator("gated_delta_rule"));
  y.scale = c.scale;
  return y;
}

class ProductPlan {
 public:
  ProductPlan(const ResolvedCase& c, const TensorMap& inputs) : c_(c), inputs_(inputs) {
    plan.name = "gated_delta_product.fused_recurrent";
    gated::require_within(product_limits(), c, plan.name);
    plan.outputs = gated::plan_outputs(c);
  }

  void make() {
    const Sizes& s = c_.sizes;
    const int64_t last = s.M - 1, of_keys = s.H * s.K, of_values = s.H * s.V;
    spread("q", c_.dtype, of_keys, last), spread("g", c_.gate_dtype, s.H, 0);
    if (c_.backward()) spread("do", c_.dtype, of_values, last);
    for (const char* name : {"o", "dq", "dg"}) names_[name] = of_writes(name);
    gated::add_inner_plan(plan, rule().plan(of_rule(c_), inputs_), names_, "rule_");
    gather("o", c_.dtype, of_values, last), gather("dq", c_.dtype, of_keys, last);
    gather("dg", c_.gate_dtype, s.H, 0);
  }

  Program plan;

 private:
  static std::string of_writes(const std::string& name) { return name + "_of_writes"; }

  void copy(const char* function, Dtype dtype, const PointerArgument& from, const PointerArgument& to,
            int64_t elements, int64_t place, int64_t width) {
    const std::string module =
        gated::module_of(plan, fmt::format("gated_delta_product/fused_recurrent.{}", format(dtype).name));
    gated::add_launch(plan, module, fmt::format("gated_delta_product_{}", function),
                      device::blocks_of(elements, device::block_threads),
                      {from, to, Argument(elements), Argument(static_cast<int32_t>(c_.sizes.M)),
                       Argument(static_cast<int32_t>(place)), Argument(static_cast<int32_t>(width))});
  }
  /// An input of tokens, at one of each token's writes.
  void spread(const std::string& input, Dtype dtype, int64_t width, int64_t place) {
    const int64_t elements = c_.sizes.B * c_.sizes.T * c_.sizes.M * width;
    if (!inputs_.contains(input) || elements == 0) return;
    names_[input] = of_writes(input);
    copy("spread", dtype, {input, 0},
         gated::workspace_of(plan, of_writes(input), elements * format(dtype).bytes), elements, place, width);
  }
  /// An output of tokens, if the plan has it, from what was made of each token's writes.
  void gather(const std::string& output, Dtype dtype, int64_t width, int64_t place) {
    const PointerArgument to = gated::output_or_null(plan, output);
    if (!to.buffer.empty())
      copy("gather", dtype, {of_writes(output), 0}, to, c_.sizes.B * c_.sizes.T * width, place, width);
  }

  const ResolvedCase& c_;
  const TensorMap& inputs_;
  std::map<std::string, std::string> names_;
};

Program plan_of(const ResolvedCase& c, const TensorMap& inputs) {
  ProductPlan p(c, inputs);
  p.make();
  return std::move(p.plan);
}

}  // namespace
}  // namespace gated_delta_product

Kernel gated_delta_product_fused_recurrent() {
  using namespace gated_delta_product;
  Kernel kernel;
  kernel.name = "gated_delta_product.fused_recurrent";
  kernel.operator_name = "gated_delta_product";
  kernel.summary = "one write after the other, as the gated delta rule's tokens, the state in registers";
  kernel.arithmetic_text = rule().arithmetic_text;
  kernel.limits = product_limits();
  kernel.resume_granularity = 1;
  kernel.exponents_nonpositive = true;
  kernel.plan = plan_of;
  kernel.arithmetic = [](const ResolvedCase& c) { return rule().arithmetic(of_rule(c)); };
  kernel.adjoint_arithmetic = [](const ResolvedCase& c) { return rule().adjoint_arithmetic(of_rule(c)); };
  return kernel;
}

}  // namespace assay
