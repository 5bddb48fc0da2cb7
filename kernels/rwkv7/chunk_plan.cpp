// The plan of rwkv7.chunk and the arithmetic it declares, forward and backward.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/device/format_sizes.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/gla/plans.h"
#include "kernels/launch_tables.h"
#include "kernels/rwkv7/chunk_layout.h"

namespace assay::rwkv7 {
namespace {

using namespace gated;

/// A plan with the workspace of chunk_prepare.cuh.
class ChunkPlan {
 public:
  ChunkPlan(const ResolvedCase& c, const TensorMap& inputs)
      : c_(c), inputs_(inputs), sizes_(c.sizes), sequences_(sequences_of(c, delta::chunk_tokens)) {
    plan.name = "rwkv7.chunk";
    require_within(gla::channel_limits(), c, plan.name);
    plan.outputs = plan_outputs(c);
    plan.constants = {sequences_.table, sequences_.chunk_table};
    prepared_ = prepared("prepared");
  }

  void add_forward() {
    prepare("", {});
    scan("chunk_scan", "scan", 1,
         {input("v"), prepared_, input("initial_state"), output("o"), PointerArgument{"final_state", 0},
          PointerArgument{"sequences", 0}, Argument::rounded(c_.scale)});
  }
  void add_backward() {
    const int64_t kept = device::format_sizes(c_.dtype).kept,
                  of_values = kept * sizes_.B * sizes_.T * sizes_.H * sizes_.V,
                  of_states = kept * chunks() * device::padded_state(sizes_.K, sizes_.V);
    const PointerArgument back = prepared("prepared_back"), reads = workspace("reads", of_values),
                          pulls = workspace("pulls", of_values), states = workspace("states", of_states),
                          adjoints = workspace("adjoints", of_states);
    prepare("_back", back);
    scan("chunk_backward", "scans", 2,
         {input("v"), input("do"), prepared_, back, input("initial_state"), input("dfinal_state"), reads,
          states, output("dv"), pulls, adjoints, output("dinitial_state"), PointerArgument{"sequences", 0}});
    gradients(reads, pulls, states, adjoints);
  }

  Program plan;

 private:
  static Argument number(int64_t x) { return static_cast<int32_t>(x); }
  PointerArgument input(const std::string& name) const { return input_or_null(inputs_, name); }
  PointerArgument output(const std::string& name) const { return output_or_null(plan, name); }
  int64_t chunks() const { return sequences_.chunks * sizes_.H; }
  int key_groups() const { return static_cast<int>(device::blocks_of(sizes_.K, 16)); }

  PointerArgument workspace(const char* name, int64_t bytes) { return workspace_of(plan, name, bytes); }
  PointerArgument prepared(const char* name) {
    const PreparedLayout layout(device::format_sizes(c_.dtype).operand_block, key_groups());
    return workspace(name, chunks() * layout.bytes());
  }
  std::string module_of_formats(const char* source) const {
    return fmt::format("{}.{}.{}", source, format(c_.dtype).name, format(c_.gate_dtype).name);
  }
  /// Of `directions` in y.
  void launch(const std::string& module, const std::string& function, int64_t blocks,
              std::vector<Argument> arguments, uint32_t shared_bytes, uint32_t directions = 1,
              uint32_t threads = device::block_threads) {
    if (blocks == 0) return;
    Launch& launch = add_launch(plan, module_of(plan, "rwkv7/" + module), "rwkv7_chunk_" + function, blocks,
                                std::move(arguments), shared_bytes);
    launch.grid[1] = directions, launch.block = {threads, 1, 1};
  }

  void prepare(const std::string& direction, const PointerArgument& back) {
    for (const auto& [side, later] : {std::pair("readers", "a"), std::pair("queries", "r")})
      launch(module_of_formats("chunk_prepare"), side + direction, chunks(),
             {input(later), input("b"), input("k"), input("w"), prepared_, back, PointerArgument{"chunks", 0},
              Argument::rounded(c_.scale), number(sizes_.H), number(sizes_.K), number(sizes_.K % 8 == 0)},
             0);
  }
  void scan(const std::string& source, const std::string& function, uint32_t directions,
            std::vector<Argument> arguments) {
    const device::FormatSizes format = device::format_sizes(c_.dtype);
    const int capacity = delta::rule_capacity(sizes_.K);
    const delta::ScanLayout<PreparedLayout> layout(
        format, key_groups(), delta::scans_whole_ahead<PreparedLayout>(format, capacity));
    for (const int64_t x : {sizes_.H, sizes_.K, sizes_.V, int64_t{sizes_.V % 8 == 0}})
      arguments.push_back(number(x));
    launch(fmt::format("{}.{}", source, assay::format(c_.dtype).name),
           fmt::format("{}_{}", function, capacity),
           sizes_.N * sizes_.H * device::blocks_of(sizes_.V, delta::scan_values), std::move(arguments),
           delta::scans_ahead<PreparedLayout>(format, capacity) ? static_cast<uint32_t>(layout.bytes()) : 0,
           directions);
  }
  void gradients(const PointerArgument& reads, const PointerArgument& pulls, const PointerArgument& states,
                 const PointerArgument& adjoints) {
    const GradientLayout layout(device::format_sizes(c_.dtype), device::format_sizes(c_.gate_dtype).element);
    launch(module_of_formats("chunk_gradients"), "gradients",
           chunks() * device::blocks_of(sizes_.K, layout.keys),
           {input("r"),
            input("w"),
            input("k"),
            input("v"),
            input("a"),
            input("b"),
            input("do"),
            reads,
            pulls,
            states,
            adjoints,
            output("dr"),
            output("dw"),
            output("dk"),
            output("da"),
            output("db"),
            PointerArgument{"chunks", 0},
            Argument::rounded(c_.scale),
            number(sizes_.H),
            number(sizes_.K),
            number(sizes_.V),
            number(sizes_.K % 8 == 0 && sizes_.V % 8 == 0)},
           static_cast<uint32_t>(layout.bytes), 1, static_cast<uint32_t>(layout.threads()));
  }

  const ResolvedCase& c_;
  const TensorMap& inputs_;
  const Sizes sizes_;
  const Sequences sequences_;
  PointerArgument prepared_;
};

Program plan_of(const ResolvedCase& c, const TensorMap& inputs) {
  ChunkPlan p(c, inputs);
  if (c.forward()) p.add_forward();
  if (c.backward()) p.add_backward();
  return std::move(p.plan);
}

/// Errors that several of the declared numbers are made of.
struct PairErrors {
  Dtype dtype;
  double places;                               ///< key channels
  double weight = compounded({ex2_error, u});  ///< e^x beyond its error per nat, and the product with it
  /// A pair of tokens: both operands are products with a weight, rounded, and up to two products with the
  /// totals of whole tiles follow; a token with itself is a chain of fused additions, four to a lane.
  double pair;

  explicit PairErrors(const ResolvedCase& c)
      : dtype(c.dtype),
        places(static_cast<double>(device::blocks_of(c.sizes.K, 16) * 16)),
        pair(compounded({operand_error(c.dtype, 2),
                         std::max(contraction(c.dtype, places), gamma(places / 4 + 2)),
                         4 * weight * (1 + 4 * weight)})) {}

  /// x e^.. S: both rounded to the operand's format.
  double of_state() const { return compounded({operand_error(dtype, 2), weight}); }
  /// A pair as an operand, `scaled` before; the other is one already.
  double of_pair(bool scaled) const {
    return compounded({pair, operand_error(dtype, 1), scaled ? 2 * u : 0});
  }
  /// What is read of a chunk: its state, and updates and values of 64 tokens each.
  double of_chunk(bool scaled) const {
    return compounded({std::max(of_state(), of_pair(scaled)), contraction(dtype, places + 128)});
  }
};

/// By the numbers' own descriptions (reference/arithmetic.def), with the sums as contractions of the tensor
/// core. Substitution: a chain of up to 15 fused additions and a product with 1. Exponents and e^L as in
/// delta/chunk_plan.cpp. `back`: of D, which is fed scale r do.
Arithmetic chunk_state_arithmetic(const ResolvedCase& c, bool back) {
  const PairErrors e(c);
  Arithmetic a;
  a.chunk = delta::chunk_tokens;
  a.solve_tokens = 16;
  a.decay_per_nat = 24 * u;
  a.removal = e.of_chunk(back);
  a.solve = gamma(18), a.scores = e.pair;
  a.solved = solved_error(c.dtype);
  a.update = operand_error(c.dtype, 1);
  a.write = compounded({operand_error(c.dtype, 1), e.weight, back ? 2 * u : 0, contraction(c.dtype, 128)});
  a.boundary = compounded({u, 0x1p-25});
  a.readout = compounded({e.of_chunk(false), gamma(2)});
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

/// What chunk_gradients.cuh makes of what the scans go on with, S and D rounded to what operands keep. Per
/// path, each factor with its largest number of roundings, w of a row's own decay beside the one it has:
///   dr, dk, da, db   across chunks: a state rounded, contracted over V, scale (2), two weights; then, as the
///   rest, the contractions over tokens that follow. Inside: two numbers of tokens contracted over V, scale
///        (2), rounded as operand, contracted over tokens; what is at the other end with its two weights,
///        rounded too, and two weights after; then one addition of each of six levels, of the tokens of two
///        matrices, and of two more for a token with itself
///   dw   x z + y z' with two weights each, or S (.) D, both rounded, V fused additions in a lane, 2 over
///        lanes, a weight; then at most 40 additions
/// dv as o.
AdjointArithmetic chunk_adjoint_arithmetic(const ResolvedCase& c) {
  const PairErrors e(c);
  AdjointArithmetic a;
  a.state = chunk_state_arithmetic(c, false);
  a.adjoint = chunk_state_arithmetic(c, true);
  const double values = contraction(c.dtype, static_cast<double>(c.sizes.V)), one = operand_error(c.dtype, 1),
               two_weights = compounded({e.weight, e.weight}),
               across = compounded({one, values, two_weights, gamma(2)}),
               inside = compounded(
                   {one, operand_error(c.dtype, 0), one, values, two_weights, two_weights, gamma(2)}),
               most = std::max(across, inside),
               sums = compounded({contraction(c.dtype, 4 * delta::chunk_tokens), gamma(16)});
  a.state.readout = a.adjoint.readout = compounded({most, sums});
  a.value_readout = e.of_chunk(true);
  a.gate_readout = compounded({std::max(compounded({one, one, e.weight}), compounded({two_weights, most})),
                               sums, gamma(static_cast<double>(c.sizes.V) + 2 + 40)});
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.inner = compounded({most, sums, a.state.update});
  return a;
}

}  // namespace
}  // namespace assay::rwkv7

namespace assay {

Kernel rwkv7_chunk() {
  Kernel kernel;
  kernel.name = "rwkv7.chunk";
  kernel.operator_name = "rwkv7";
  kernel.summary = "chunks of 64 tokens, the inverse of a unit lower triangle by tiles of 16";
  kernel.arithmetic_text =
      "tensor cores (bf16 operands as they are, fp16 as tf32, fp32 split into two tf32) with fp32 "
      "accumulation; inverse by substitution in fp32, applied as two bf16, else as fp32; factors with "
      "decays, pairs of tokens "
      "and what tokens read rounded as operands, states for gradients kept so";
  kernel.limits = gla::channel_limits();
  kernel.resume_granularity = delta::chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = rwkv7::plan_of;
  kernel.arithmetic = [](const ResolvedCase& c) { return rwkv7::chunk_state_arithmetic(c, false); };
  kernel.adjoint_arithmetic = rwkv7::chunk_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
