// The plan of gate_softplus.fused and the arithmetic it declares.
#include "kernels/device/product_arithmetic.h"
#include "kernels/device/tile_layout.h"
#include "kernels/elementwise/gate_plan.h"
#include "kernels/gate_softplus/softplus_layout.h"
#include "kernels/launch_tables.h"

namespace assay {
namespace {

using namespace gated;
using gate_softplus::threads, gate_softplus::tokens_per_block;

/// How softplus.cuh takes its columns: the fewest threads side by side that hold them.
struct SoftplusGrid {
  int64_t columns, column_blocks, token_blocks;
  int quads = 8;

  explicit SoftplusGrid(const Sizes& s) : columns(s.H * s.K) {
    while (4 * quads < columns && quads < threads) quads *= 2;
    column_blocks = device::blocks_of(columns, 4 * quads);
    token_blocks = device::blocks_of(s.B * s.T, tokens_per_block);
  }
  /// Additions on the longest path of a sum over all tokens and, for A, channels.
  double additions() const {
    const double rows = static_cast<double>(threads) / quads;
    return tokens_per_block / rows + rows + static_cast<double>(token_blocks) + 8;
  }
};

Program gate_softplus_plan(const ResolvedCase& c, const TensorMap& inputs) {
  const Sizes& s = c.sizes;
  const SoftplusGrid grid(s);
  Program plan = elementwise::gate_plan("gate_softplus", c);
  const PointerArgument x{"x", 0}, A = input_or_null(inputs, "A"), bias = input_or_null(inputs, "bias");
  const auto columns = static_cast<int32_t>(grid.columns), K = static_cast<int32_t>(s.K);
  const int64_t blocks = grid.token_blocks * grid.column_blocks;
  const auto add = [&](const char* function, std::vector<Argument> arguments) {
    for (const Argument& shape :
         {Argument(s.B * s.T), Argument(columns), Argument(K), Argument(static_cast<int32_t>(grid.quads)),
          Argument(static_cast<int32_t>(grid.column_blocks))})
      arguments.push_back(shape);
    elementwise::add_launch(plan, function, blocks, threads, std::move(arguments));
  };
  if (c.forward()) add("gate_softplus", {x, A, bias, PointerArgument{"g", 0}});
  if (!c.backward()) return plan;
  const PointerArgument dA = output_or_null(plan, "dA"), dbias = output_or_null(plan, "dbias");
  const bool totals = !dA.buffer.empty() || !dbias.buffer.empty();
  PointerArgument partial;
  if (totals && blocks > 0) {
    plan.workspaces.push_back({"partial", grid.token_blocks * grid.columns * gate_softplus::partial_bytes});
    partial = {"partial", 0};
  }
  add("gate_softplus_backward", {x, A, bias, PointerArgument{"dg", 0}, PointerArgument{"dx", 0}, partial});
  if (totals)
    elementwise::add_launch(plan, "gate_softplus_totals", s.H, threads,
                            {partial, dA, dbias, static_cast<int32_t>(grid.token_blocks), columns, K});
  return plan;
}

}  // namespace

Kernel gate_softplus_fused() {
  Kernel kernel = elementwise::gate_kernel("gate_softplus");
  kernel.arithmetic_text =
      "fp32: x + bias exactly, as two floats; softplus 9 u, e^A 2 u; compensated sums for dA, dbias";
  kernel.plan = gate_softplus_plan;
  // e^A 2 u, softplus 9 u, their product; with the cotangent one more. dx: e^A, sigmoid 5 u, two products, is
  // less. Sums over tokens: u, and (n u)^2 of the sum of absolute values (logistic.cuh).
  kernel.arithmetic = [](const ResolvedCase& c) { return elementwise::gate_arithmetic(c, gamma(12)); };
  kernel.adjoint_arithmetic = [](const ResolvedCase& c) {
    AdjointArithmetic a = elementwise::gate_adjoint_arithmetic(c, gamma(13));
    const double spread = gamma(SoftplusGrid(c.sizes).additions());
    a.total = u + 2 * spread * spread;
    return a;
  };
  return kernel;
}

}  // namespace assay
