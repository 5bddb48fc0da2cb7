// The plans of the delta rules' chunk kernels and the arithmetic they declare.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/delta/chunk_layout.h"
#include "kernels/delta/delta_layout.h"
#include "kernels/delta/rule_plan.h"
#include "kernels/device/format_sizes.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_capacity.h"

namespace assay::delta {
namespace {

using namespace gated;

/// A plan with the workspace of chunk_prepare.cuh.
class ChunkPlan : public RulePlan {
 public:
  ChunkPlan(const Member& member, const ResolvedCase& c, const TensorMap& inputs)
      : RulePlan(member, "chunk", chunk_tokens, c, inputs), chunks_(sequences.chunks * sizes.HV) {
    plan.constants.push_back(sequences.chunk_table);
    const PreparedLayout layout(device::format_sizes(c.dtype).operand_block,
                                static_cast<int>(device::blocks_of(sizes.K, 16)));
    prepared_ = workspace("prepared", chunks_ * layout.bytes());
  }

  void add_forward() {
    prepare("");
    scan("chunk_scan", "scan",
         {input("v"), prepared_, input("initial_state"), output("o"), PointerArgument{"final_state", 0},
          PointerArgument{"sequences", 0}, scale()});
  }
  void add_backward() {
    const int64_t of_values = 4 * sizes.B * sizes.T * sizes.HV * sizes.V,
                  of_chunks = 4 * chunks_ * sizes.K * sizes.V;
    RuleGradients from{workspace("updates", of_values), workspace("pulls", of_values),
                       workspace("states", of_chunks), workspace("adjoints", of_chunks)};
    const PointerArgument residuals = workspace("residuals", of_values),
                          products = output("dbeta").buffer.empty() ? PointerArgument{}
                                                                    : workspace("products", of_values);
    prepare("");
    scan("chunk_backward", "states",
         {input("v"), prepared_, input("initial_state"), residuals, from.updates, from.initial_state,
          PointerArgument{"sequences", 0}});
    prepare("_back");
    scan("chunk_backward", "adjoints",
         {input("do"), prepared_, input("dfinal_state"), residuals, output("dv"), from.pulls, products,
          from.dfinal_state, output("dinitial_state"), PointerArgument{"sequences", 0}});
    add_key_gradients(*this, add_chunks_as_sequences(), from);
    add_sums(products);
  }

 private:
  static Argument number(int64_t x) { return static_cast<int32_t>(x); }

  void prepare(const std::string& direction) {
    // Channels' gates have products of their own: without g they are zeros, not none.
    if (member.gates == Gates::channel)
      use_for_own_gates("chunk_prepare");
    else
      use("chunk_prepare");
    launch("delta_chunk_prepare" + direction, chunks_,
           {input("q"), input("k"), input("beta"), gates, prepared_, PointerArgument{"chunks", 0}, scale(),
            number(sizes.H), number(sizes.HV), number(sizes.K), number(sizes.K % 8 == 0)},
           {});
  }
  void scan(const std::string& source, const std::string& function, std::vector<Argument> arguments) {
    use_for_any_gates(source);
    const device::FormatSizes format = device::format_sizes(c.dtype);
    const int capacity = rule_capacity(sizes.K);
    const ScanLayout<PreparedLayout> layout(format, static_cast<int>(device::blocks_of(sizes.K, 16)));
    launch(fmt::format("delta_chunk_{}_{}", function, capacity),
           sizes.N * sizes.HV * device::blocks_of(sizes.V, scan_values), std::move(arguments),
           {number(sizes.HV), number(sizes.K), number(sizes.V), number(sizes.V % 8 == 0)},
           scans_ahead<PreparedLayout>(format, capacity) ? layout.bytes() : 0);
  }
  SequenceTable add_chunks_as_sequences() {
    constexpr int64_t each = chunk_tokens / kept_tokens;
    plan.constants.push_back(chunks_as_sequences(sequences, each));
    return {"chunk_sequences", sequences.chunks, each * sequences.chunks};
  }

  const int64_t chunks_;
  PointerArgument prepared_;
};

Program chunk_plan(const Member& member, const ResolvedCase& c, const TensorMap& inputs) {
  ChunkPlan p(member, c, inputs);
  if (c.forward()) p.add_forward();
  if (c.backward()) p.add_backward();
  return std::move(p.plan);
}

/// Errors that several of the declared numbers are made of.
struct ChunkErrors {
  Dtype dtype;
  bool gates, by_channel;
  double places;  ///< key channels
  /// A weight e^x beyond its error per nat, and the product with it.
  double weight;
  /// k . k or q . k with their decays: of gates per channel both operands are products with a weight,
  /// rounded, and up to two products with the totals of whole tiles follow; q_i . k_i is a chain of fused
  /// additions, four to a lane. Of gates per token the sum is weighed.
  double score;

  ChunkErrors(const Member& member, const ResolvedCase& c)
      : dtype(c.dtype),
        gates(c.has("g")),
        by_channel(member.gates == Gates::channel),
        places(static_cast<double>(device::blocks_of(c.sizes.K, 16) * 16)),
        weight(gates ? compounded({ex2_error, u}) : 0),
        score(compounded({operand_error(dtype, by_channel && gates ? 2 : 0),
                          std::max(contraction(dtype, places), by_channel ? gamma(places / 4 + 2) : 0),
                          by_channel ? 4 * weight * (1 + 4 * weight) : weight})) {}

  /// x e^.. S: rounded to the operand's format, x where anything decays; `scaled`: x times the scale first.
  double of_state(bool scaled = false) const {
    return compounded({operand_error(dtype, gates || scaled ? 2 : 1), weight, scaled ? 2 * u : 0});
  }
  /// A score as an operand; the other is one already.
  double of_pair(bool scaled = false) const {
    return compounded({score, operand_error(dtype, 1), scaled ? 2 * u : 0});
  }
};

/// By the numbers' own descriptions (reference/arithmetic.def), with the sums as contractions of the tensor
/// core: first the key channels, then the tokens of tile after tile. Substitution: a chain of up to 15 fused
/// additions and the product with beta, which pays for its own and for what it multiplies. Exponents are sums
/// of at most 11 roundings, log2 e's included; e^L has 2^-22 beyond a third of a nat, which is 12 u per nat.
/// `back`: of D, to which each token writes twice, scale q do and k dv.
Arithmetic chunk_state_arithmetic(const Member& member, const ResolvedCase& c, bool back) {
  const ChunkErrors e(member, c);
  Arithmetic a;
  a.chunk = chunk_tokens;
  a.solve_tokens = 16;
  a.decay_per_nat = 24 * u;
  const double sums = contraction(c.dtype, e.places + 48 + (back ? 64 : 0));
  a.removal = compounded({std::max(e.of_state(), e.of_pair(back)), sums, u});
  if (!e.by_channel) {
    a.removal = compounded({e.of_state(), sums, u});
    a.pairs = operand_error(c.dtype, 1);
    a.pair_sums = (1 + a.pairs) * compounded({e.score, sums, u, back ? 2 * u : 0});
  }
  // Of fp32 the halves that are left out depend on the keys' too.
  if (c.dtype != Dtype::fp32) a.held = operand_error(c.dtype, 1);
  a.solve = compounded({gamma(18), e.score});
  a.solved = compounded({operand_error(Dtype::fp32, 2), contraction(Dtype::fp32, 16)});
  a.update = operand_error(c.dtype, 1);
  a.write = compounded({operand_error(c.dtype, e.gates || back ? 1 : 0), e.weight, back ? 2 * u : 0,
                        contraction(c.dtype, back ? 128 : 64)});
  a.boundary = compounded({u, e.gates ? 0x1p-25 : 0});
  a.readout =
      compounded({std::max(e.of_state(), e.of_pair()), contraction(c.dtype, e.places + 64), gamma(2)});
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

/// dq, dk and dg are sums over value channels of a chunk's S' and G, which rule_rows.cuh makes token by token
/// in fp32: two roundings a token each and 2^-25 of its decay, from updates that are an operand's rounding
/// away from those of the scans. r and du are made as what solves start from, one more tile after it.
AdjointArithmetic chunk_adjoint_arithmetic(const Member& member, const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const ChunkErrors e(member, c);
  const device::Capacity lanes(s.V);
  AdjointArithmetic a;
  a.state = chunk_state_arithmetic(member, c, false);
  a.adjoint = chunk_state_arithmetic(member, c, true);
  const double paths = compounded({gamma(3.0 * chunk_tokens), a.state.update}),
               over_values = lanes.roundings();
  a.state.readout = compounded({paths, gamma(over_values + 2)});
  a.adjoint.readout = compounded({paths, gamma(over_values + lanes.per_lane + 2)});
  a.value_readout = u;
  a.gate_readout = compounded(
      {paths, paths,
       gamma(over_values + 1 + (member.gates == Gates::token ? roundings_over_channels(s.K) : 0))});
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  const double of_pairs = compounded({a.adjoint.pairs, a.adjoint.pair_sums});
  a.inner = compounded({std::max({a.state.removal, a.adjoint.removal, of_pairs}), e.of_pair(),
                        contraction(c.dtype, 16), gamma(3 + roundings_over_channels(s.V))});
  a.total = gamma(roundings_over_group(s.HV / s.H));
  return a;
}

}  // namespace

Kernel chunk(const Member& member) {
  Kernel kernel;
  kernel.name = member.name + ".chunk";
  kernel.operator_name = member.name;
  kernel.summary = "chunks of 64 tokens, the inverse of a unit lower triangle by tiles of 16";
  kernel.arithmetic_text =
      "tensor cores (bf16 operands as they are, fp16 as tf32, fp32 split into two tf32) with fp32 "
      "accumulation; inverse by substitution in fp32, applied as fp32; keys, queries, scores and updates "
      "rounded as operands";
  kernel.limits = rule_limits();
  kernel.resume_granularity = chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = [member](const ResolvedCase& c, const TensorMap& inputs) {
    return chunk_plan(member, c, inputs);
  };
  kernel.arithmetic = [member](const ResolvedCase& c) { return chunk_state_arithmetic(member, c, false); };
  kernel.adjoint_arithmetic = [member](const ResolvedCase& c) { return chunk_adjoint_arithmetic(member, c); };
  kernel.refuses = [](const ResolvedCase& c) -> std::string {
    return c.has("beta_v") ? "takes no beta of value channels" : "";
  };
  return kernel;
}

}  // namespace assay::delta
