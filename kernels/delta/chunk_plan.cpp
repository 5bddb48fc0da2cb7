// The plans of the delta rules' chunk kernels and the arithmetic they declare.
#include <fmt/format.h>

#include "kernels/delta/chunk_layout.h"
#include "kernels/delta/rule_plan.h"
#include "kernels/device/format_sizes.h"
#include "kernels/device/product_arithmetic.h"

namespace assay::delta {
namespace {

using namespace gated;

Program chunk_plan(const Member& member, const ResolvedCase& c, const TensorMap& inputs) {
  RulePlan p(member, "chunk", chunk_tokens, c, inputs);
  const Sizes& s = p.sizes;
  p.plan.constants.push_back(p.sequences.chunk_table);
  const PreparedLayout layout(device::format_sizes(c.dtype).operand_block,
                              static_cast<int>(device::blocks_of(s.K, 16)));
  const int64_t chunks = p.sequences.chunks * s.HV;
  const PointerArgument prepared = p.workspace("prepared", chunks * layout.bytes());
  const auto number = [](int64_t x) { return Argument(static_cast<int32_t>(x)); };

  p.use("chunk_prepare");
  p.launch("delta_chunk_prepare", chunks,
           {p.input("q"), p.input("k"), p.input("beta"), p.gates, prepared, PointerArgument{"chunks", 0},
            number(s.H), number(s.HV), number(s.K), number(s.K % 8 == 0)},
           {});
  p.use_for_any_gates("chunk_scan");
  p.launch(fmt::format("delta_chunk_scan_{}", rule_capacity(s.K)),
           s.N * s.HV * device::blocks_of(s.V, scan_values),
           {p.input("v"), prepared, p.input("initial_state"), p.output("o"),
            PointerArgument{"final_state", 0}, PointerArgument{"sequences", 0}, p.scale(), number(s.HV),
            number(s.K), number(s.V)},
           {});
  return std::move(p.plan);
}

Arithmetic chunk_arithmetic(const ResolvedCase& c) {
  Arithmetic a;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

}  // namespace

Kernel chunk(const Member& member) {
  Kernel kernel;
  kernel.name = member.name + ".chunk";
  kernel.operator_name = member.name;
  kernel.summary = "chunks of 64 tokens, inverse of the unit lower triangle by blocks of 16";
  kernel.arithmetic_text =
      "products of the input's operands on tensor cores (fp16: tf32, fp32: three tf32), fp32 accumulation; "
      "inverse by forward substitution in fp32; keys, queries and updates rounded once as operands";
  kernel.limits = rule_limits();
  kernel.resume_granularity = chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = [member](const ResolvedCase& c, const TensorMap& inputs) { return chunk_plan(member, c, inputs); };
  kernel.arithmetic = chunk_arithmetic;
  kernel.refuses = [](const ResolvedCase& c) -> std::string {
    return c.has("beta_v") ? "takes no beta of value channels" : "";
  };
  return kernel;
}

}  // namespace assay::delta
