// The plans of the delta rules' chunk kernels and the arithmetic they declare.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/delta/chunk_layout.h"
#include "kernels/delta/delta_layout.h"
#include "kernels/delta/rule_plan.h"
#include "kernels/device/format_sizes.h"
#include "kernels/device/product_arithmetic.h"

namespace assay::delta {
namespace {

using namespace gated;

/// A plan with the workspace of chunk_prepare.cuh.
class ChunkPlan : public RulePlan {
 public:
  ChunkPlan(const Member& member, const ResolvedCase& c, const TensorMap& inputs)
      : RulePlan(member, "chunk", chunk_tokens, c, inputs), chunks_(sequences.chunks * sizes.HV) {
    plan.constants.push_back(sequences.chunk_table);
    prepared_ = prepared("prepared");
  }

  void add_forward() {
    prepare("", {});
    scan("chunk_scan", "scan", 1,
         {input("v"), prepared_, input("initial_state"), output("o"), PointerArgument{"final_state", 0},
          PointerArgument{"sequences", 0}, scale()});
  }
  /// What is passed back is dv, but for fp16: there it is kept as the scans go on with it.
  void add_backward() {
    const int64_t kept = device::format_sizes(c.dtype).kept,
                  of_values = kept * sizes.B * sizes.T * sizes.HV * sizes.V,
                  of_states = kept * chunks_ * device::padded_state(sizes.K, sizes.V);
    const bool rates = !output("dbeta").buffer.empty(), apart = c.dtype == Dtype::fp16;
    const PointerArgument back = prepared("prepared_back"), updates = workspace("updates", of_values),
                          passed = apart ? workspace("updates_back", of_values) : PointerArgument{},
                          residuals = rates ? workspace("residuals", of_values) : PointerArgument{},
                          pulls = rates ? workspace("residuals_back", of_values) : PointerArgument{},
                          states = workspace("states", of_states),
                          adjoints = workspace("adjoints", of_states);
    prepare("_back", back);
    scan("chunk_backward", "scans", 2,
         {input("v"), input("do"), prepared_, back, input("initial_state"), input("dfinal_state"), updates,
          residuals, states, output("dv"), passed, pulls, adjoints, output("dinitial_state"),
          PointerArgument{"sequences", 0}});
    gradients({input("do"), updates, apart ? passed : output("dv"), states, adjoints});
    add_rate_sums(residuals, pulls);
    add_group_sums();
  }

 private:
  static Argument number(int64_t x) { return static_cast<int32_t>(x); }

  PointerArgument prepared(const char* name) {
    const PreparedLayout layout(device::format_sizes(c.dtype).operand_block,
                                static_cast<int>(device::blocks_of(sizes.K, 16)));
    return workspace(name, chunks_ * layout.bytes());
  }
  /// Channels' gates have products of their own: without g they are zeros, not none.
  void use_for_gates(const std::string& source) {
    if (member.gates == Gates::channel)
      use_for_own_gates(source);
    else
      use(source);
  }
  void prepare(const std::string& direction, const PointerArgument& back) {
    use_for_gates("chunk_prepare");
    launch("delta_chunk_prepare" + direction, chunks_,
           {input("q"), input("k"), input("beta"), gates, prepared_, back, PointerArgument{"chunks", 0},
            scale(), number(sizes.H), number(sizes.HV), number(sizes.K), number(sizes.K % 8 == 0)},
           {});
  }
  void scan(const std::string& source, const std::string& function, uint32_t directions,
            std::vector<Argument> arguments) {
    use_for_any_gates(source);
    const device::FormatSizes format = device::format_sizes(c.dtype);
    const int capacity = rule_capacity(sizes.K);
    const ScanLayout<PreparedLayout> layout(format, static_cast<int>(device::blocks_of(sizes.K, 16)),
                                            scans_whole_ahead<PreparedLayout>(format, capacity));
    launch(fmt::format("delta_chunk_{}_{}", function, capacity),
           sizes.N * sizes.HV * device::blocks_of(sizes.V, scan_values), std::move(arguments),
           {number(sizes.HV), number(sizes.K), number(sizes.V), number(sizes.V % 8 == 0)},
           scans_ahead<PreparedLayout>(format, capacity) ? layout.bytes() : 0, directions);
  }
  void gradients(const std::vector<Argument>& from) {
    use_for_gates("chunk_gradients");
    const device::FormatSizes format = device::format_sizes(c.dtype);
    const bool by_channel = member.gates == Gates::channel;
    const int shared = by_channel
                           ? ChannelGradientLayout(format, device::format_sizes(c.gate_dtype).element).bytes
                           : TokenGradientLayout(format).bytes;
    const KeyGradient dq = key_gradient("dq"), dk = key_gradient("dk");
    std::vector<Argument> arguments = {input("q"), input("k"), gates};
    arguments.insert(arguments.end(), from.begin(), from.end());
    for (const PointerArgument& to : {dq.stored, dq.of_value_heads, dk.stored, dk.of_value_heads,
                                      output("dg"), PointerArgument{"chunks", 0}})
      arguments.emplace_back(to);
    launch("delta_chunk_gradients", chunks_ * (by_channel ? device::blocks_of(sizes.K, 64) : 1),
           std::move(arguments),
           {scale(), number(sizes.H), number(sizes.HV), number(sizes.K), number(sizes.V),
            number(sizes.K % 8 == 0 && sizes.V % 8 == 0)},
           static_cast<uint32_t>(shared));
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
  a.solve = gamma(18), a.scores = e.score;
  a.solved = solved_error(c.dtype);
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

/// What token_gradients.cuh and channel_gradients.cuh make of u and dr as the scans go on with them, S and D
/// rounded to what operands keep. Per path, each factor with its largest number of roundings:
///   dq   across chunks: S rounded, contracted over V, scale (2), a weight; then, as the rest, the
///   contractions
///        over tokens that follow. Inside: do . u contracted over V, scale (2), rounded as operand,
///        contracted over tokens; of tokens' gates a weight of the pair; of channels' k e^.. rounded too
///        and a weight before and after, then one addition of each of six levels
///   dk   likewise of u and D, dr and S, u and q, u and dr; sums over the tokens of three matrices, one more
///        addition
///   dg   of tokens: two scores and a weight, scale, two products, one taken from the other, at most
///        9 additions over partners; or the products of q or k with what they get across chunks, K/2 fused
///        additions and 2 over lanes; after those 6 over tokens; or S (.) D, both rounded, K V/128 fused
///        additions, 7 over lanes and warps, a weight; then 4 more. Of channels: x z with a weight each, or
///        S (.) D, V/4 fused additions in a lane, 2 over lanes; then at most 32 additions.
/// r and du are made as what solves start from, one more tile after it, and rounded to what is kept.
struct GradientErrors {
  double across, inside, sums;

  GradientErrors(const ChunkErrors& e, const Sizes& s) {
    const double values = contraction(e.dtype, static_cast<double>(s.V)), one = operand_error(e.dtype, 1),
                 weighed = e.by_channel && e.gates ? 2 * e.weight * (1 + e.weight) : e.weight;
    across = compounded({one, values, e.weight, gamma(2)});
    inside = compounded({one, operand_error(e.dtype, 0), e.by_channel ? one : 0, values, weighed, gamma(2)});
    sums = compounded({contraction(e.dtype, 3 * chunk_tokens), gamma(16)});
  }
  double most() const { return std::max(across, inside); }
};

AdjointArithmetic chunk_adjoint_arithmetic(const Member& member, const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const ChunkErrors e(member, c);
  const GradientErrors of(e, s);
  AdjointArithmetic a;
  a.state = chunk_state_arithmetic(member, c, false);
  a.adjoint = chunk_state_arithmetic(member, c, true);
  a.state.readout = a.adjoint.readout = compounded({of.most(), of.sums});
  a.value_readout = u;
  const double states = compounded({operand_error(c.dtype, 1), operand_error(c.dtype, 1), e.weight}),
               pairs = compounded({e.by_channel ? e.weight : e.score, of.most()});
  a.gate_readout =
      e.by_channel
          ? compounded({std::max(states, pairs), of.sums, gamma(static_cast<double>(s.V) / 4 + 2 + 32 + 2)})
          : compounded(
                {std::max(states, pairs),
                 gamma(std::max(
                           {static_cast<double>(device::padded_state(s.K, s.V)) / device::block_threads + 7,
                            e.places / 2 + 2 + 6, 2.0 + 9 + 6}) +
                       4)});
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  const double of_pairs = compounded({a.adjoint.pairs, a.adjoint.pair_sums});
  a.inner = compounded({std::max({a.state.removal, a.adjoint.removal, of_pairs}), e.of_pair(),
                        contraction(c.dtype, 16), gamma(3 + roundings_over_channels(s.V)),
                        c.dtype == Dtype::bf16 ? unit_roundoff(c.dtype) : 0});
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
      "accumulation; inverse by substitution in fp32, applied as two bf16, else as fp32; keys, queries, "
      "scores and updates "
      "rounded as operands, states for gradients kept so";
  kernel.limits = rule_limits();
  kernel.resume_granularity = chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = [member](const ResolvedCase& c, const TensorMap& inputs) {
    return chunk_plan(member, c, inputs);
  };
  kernel.arithmetic = [member](const ResolvedCase& c) { return chunk_state_arithmetic(member, c, false); };
  kernel.adjoint_arithmetic = [member](const ResolvedCase& c) { return chunk_adjoint_arithmetic(member, c); };
  kernel.refuses = [](const ResolvedCase& c) -> std::string {
    return c.has("beta_v")
               ? "takes no beta_v, which stands in for an absent beta: --without beta,beta_v leaves "
                 "out both"
               : "";
  };
  return kernel;
}

}  // namespace assay::delta
