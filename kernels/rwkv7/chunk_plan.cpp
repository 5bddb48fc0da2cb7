// The plan of rwkv7.chunk and the arithmetic it declares, forward and backward.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/delta/delta_layout.h"
#include "kernels/device/format_sizes.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_capacity.h"
#include "kernels/gla/plans.h"
#include "kernels/launch_tables.h"
#include "kernels/rwkv7/chunk_layout.h"
#include "kernels/rwkv7/launches.h"

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
    const PreparedLayout layout(device::format_sizes(c.dtype).operand_block, key_groups());
    prepared_ = workspace("prepared", chunks() * layout.bytes());
  }

  void add_forward() {
    prepare("");
    scan("chunk_scan", "scan",
         {input("v"), prepared_, input("initial_state"), output("o"), PointerArgument{"final_state", 0},
          PointerArgument{"sequences", 0}, Argument::rounded(c_.scale)});
  }
  void add_backward() {
    const int64_t of_values = 4 * sizes_.B * sizes_.T * sizes_.H * sizes_.V,
                  of_chunks = 4 * chunks() * sizes_.K * sizes_.V;
    const RowGradients from{workspace("reads", of_values), workspace("pulls", of_values),
                            workspace("states", of_chunks), workspace("adjoints", of_chunks)};
    prepare("");
    scan("chunk_backward", "states",
         {input("v"), prepared_, input("initial_state"), from.reads, from.initial_state,
          PointerArgument{"sequences", 0}});
    prepare("_back");
    scan("chunk_backward", "adjoints",
         {input("do"), prepared_, input("dfinal_state"), output("dv"), from.pulls, from.dfinal_state,
          output("dinitial_state"), PointerArgument{"sequences", 0}});
    if (sequences_.chunks == 0) return;
    plan.constants.push_back(chunks_as_sequences(sequences_, delta::chunk_tokens / delta::kept_tokens));
    Launches launches(plan, "fused_recurrent_backward", c_, {"chunk_sequences", sequences_.chunks});
    add_row_gradients(launches, plan, inputs_, from,
                      sequences_.chunks * (delta::chunk_tokens / delta::kept_tokens));
  }

  Program plan;

 private:
  static Argument number(int64_t x) { return static_cast<int32_t>(x); }
  PointerArgument input(const std::string& name) const { return input_or_null(inputs_, name); }
  PointerArgument output(const std::string& name) const { return output_or_null(plan, name); }
  int64_t chunks() const { return sequences_.chunks * sizes_.H; }
  int key_groups() const { return static_cast<int>(device::blocks_of(sizes_.K, 16)); }

  PointerArgument workspace(const char* name, int64_t bytes) { return workspace_of(plan, name, bytes); }
  void launch(const std::string& module, const std::string& function, int64_t blocks,
              std::vector<Argument> arguments, uint32_t shared_bytes) {
    if (blocks > 0)
      add_launch(plan, module_of(plan, "rwkv7/" + module), "rwkv7_chunk_" + function, blocks,
                 std::move(arguments), shared_bytes);
  }

  void prepare(const std::string& direction) {
    const std::string module =
        fmt::format("chunk_prepare.{}.{}", format(c_.dtype).name, format(c_.gate_dtype).name);
    for (const auto& [side, later] : {std::pair("readers", "a"), std::pair("queries", "r")})
      launch(module, side + direction, chunks(),
             {input(later), input("b"), input("k"), input("w"), prepared_, PointerArgument{"chunks", 0},
              Argument::rounded(c_.scale), number(sizes_.H), number(sizes_.K), number(sizes_.K % 8 == 0)},
             0);
  }
  void scan(const std::string& source, const std::string& function, std::vector<Argument> arguments) {
    const device::FormatSizes format = device::format_sizes(c_.dtype);
    const int capacity = delta::rule_capacity(sizes_.K);
    const delta::ScanLayout<PreparedLayout> layout(format, key_groups());
    for (const int64_t x : {sizes_.H, sizes_.K, sizes_.V, int64_t{sizes_.V % 8 == 0}})
      arguments.push_back(number(x));
    launch(fmt::format("{}.{}", source, assay::format(c_.dtype).name),
           fmt::format("{}_{}", function, capacity),
           sizes_.N * sizes_.H * device::blocks_of(sizes_.V, delta::scan_values), std::move(arguments),
           delta::scans_ahead<PreparedLayout>(format, capacity) ? static_cast<uint32_t>(layout.bytes()) : 0);
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
  a.solve = compounded({gamma(18), e.pair});
  a.solved = solved_error(c.dtype);
  a.update = operand_error(c.dtype, 1);
  a.write = compounded({operand_error(c.dtype, 1), e.weight, back ? 2 * u : 0, contraction(c.dtype, 128)});
  a.boundary = compounded({u, 0x1p-25});
  a.readout = compounded({e.of_chunk(false), gamma(2)});
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

/// dr, dk, dw, da and db are sums over value channels of a chunk's S and G, which delta/rows.cuh makes token
/// by token in fp32: at most three roundings a token, 2^-25 of its decay included, from what tokens read and
/// pull, an operand's rounding away from what the scans go on with. dw has its product with e^w, 2^-25 off.
AdjointArithmetic chunk_adjoint_arithmetic(const ResolvedCase& c) {
  const PairErrors e(c);
  AdjointArithmetic a;
  a.state = chunk_state_arithmetic(c, false);
  a.adjoint = chunk_state_arithmetic(c, true);
  const double paths = compounded({gamma(3.0 * delta::chunk_tokens), a.state.update}),
               over_values = device::Capacity(c.sizes.V).roundings();
  a.state.readout = compounded({paths, gamma(over_values + 2)});
  a.adjoint.readout = compounded({paths, gamma(over_values)});
  a.value_readout = e.of_chunk(true);
  a.gate_readout = compounded({paths, paths, gamma(over_values + 2)});
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.inner = compounded({paths, gamma(over_values)});
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
      "and what tokens read rounded as operands";
  kernel.limits = gla::channel_limits();
  kernel.resume_granularity = delta::chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = rwkv7::plan_of;
  kernel.arithmetic = [](const ResolvedCase& c) { return rwkv7::chunk_state_arithmetic(c, false); };
  kernel.adjoint_arithmetic = rwkv7::chunk_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
