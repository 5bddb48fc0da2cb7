// The launches of gla.chunk's gradients and the arithmetic they declare.
#include <fmt/format.h>

#include "kernels/gated/product_arithmetic.h"
#include "kernels/gla/chunk_layout.h"
#include "kernels/gla/plans.h"
#include "kernels/module_text.h"

namespace assay::gla {

void add_chunk_backward(Plan& plan, const Case& c, const Operator& op, const TensorMap& inputs,
                        const gated::Sequences& sequences) {
  const Sizes s = sizes_of(c);
  const ChunkLayout layout(c);
  plan.modules.push_back(gla_module("chunk_backward", c.dtype, c.gate_dtype));
  const int64_t blocks = sequences.chunks * s.H, wide = state_columns(c, s);
  const std::pair<const char*, int64_t> workspaces[] = {
      {"states_plain", blocks * layout.plain_bytes(s)},
      {"adjoints_plain", blocks * layout.plain_bytes(s)},
      {"adjoint_operands", blocks * layout.operand_bytes(s)}};
  for (const auto& [name, bytes] : workspaces)
    if (bytes > 0) plan.workspaces.push_back({name, bytes});
  const auto workspace = [&](const char* name) {
    return blocks > 0 ? PointerArgument{name, 0} : PointerArgument{};
  };
  const auto input = [&](const char* name) { return gated::input_or_null(inputs, name); };
  const auto output = [&](const char* name) { return gated::output_or_null(plan, name); };
  const auto scale = static_cast<float>(scale_of(c, op));
  const auto launch = [&](std::string function, int64_t grid, uint32_t shared,
                          std::vector<Argument> arguments) {
    Launch result{.module = plan.modules.back().name, .function = std::move(function)};
    result.grid = gated::grid_of(grid, "gla.chunk");
    result.block = {128, 1, 1};
    result.shared_bytes = shared;
    result.arguments = std::move(arguments);
    for (const int64_t size : {s.H, s.K, s.V, int64_t{s.K % 8 == 0 && s.V % 8 == 0}})
      result.arguments.push_back(static_cast<int32_t>(size));
    plan.launches.push_back(std::move(result));
  };
  const PointerArgument of_sequences{"sequences", 0}, of_chunks{"chunks", 0};
  if (blocks > 0)
    launch(fmt::format("gla_chunk_states_{}", wide), layout.scan_blocks(s, wide), layout.state_bytes(wide),
           {input("k"), input("v"), input("g"), input("initial_state"), workspace("states_plain"),
            of_sequences});
  launch(fmt::format("gla_chunk_adjoints_{}", wide), layout.scan_blocks(s, wide), layout.state_bytes(wide),
         {input("q"), input("do"), input("g"), input("dfinal_state"), output("dinitial_state"),
          workspace("adjoint_operands"), workspace("adjoints_plain"), of_sequences, scale});
  if (blocks == 0) return;
  launch("gla_chunk_values", blocks, layout.output_bytes(s),
         {input("q"), input("k"), input("do"), input("g"), workspace("adjoint_operands"), output("dv"),
          of_chunks, scale});
  launch("gla_chunk_keys", blocks * ceil_div(s.K, 64), layout.keys_bytes(),
         {input("q"), input("k"), input("v"), input("g"), input("do"), workspace("states_plain"),
          workspace("adjoints_plain"), output("dq"), output("dk"), output("dg"), of_chunks, scale});
}

/// Decays, boundaries and what a term pays when it enters S or G are those of the forward state scan
/// (chunk_plan.cpp), in G with the scale's own rounding and its product besides. Then, per path, each factor
/// counted with its largest number of roundings:
///   dq   across chunks: S's copy rounded, contraction over V, e^G (ex2, scaled: 2 products); inside: M
///        contracted over V, scaled, rounded to the operand format; x_j = k e^B pays in `write`; contraction
///        over at most 32 tokens, less than the 64 of `write`; e^F (ex2, fused); 8 additions at most
///   dk   the same with q for k and D for S
///   dv   the forward output kernel in reversed time: as its readout; scores are scaled before they are
///   rounded dg   x z: as dq or dk with a second ex2 (of x, unrounded) and no factor after z; S (.) D: both
///   copies
///        rounded, V/4 fused additions in a lane, 2 over lanes, e^L; then at most 24 additions
GatedAdjointArithmetic chunk_adjoint_arithmetic(const Case& c) {
  using namespace gated;
  const Sizes s = sizes_of(c);
  const bool split = c.dtype == Dtype::fp32;
  const double keys = contraction(c.dtype, static_cast<double>(s.K)),
               values = contraction(c.dtype, static_cast<double>(s.V)), tokens = contraction(c.dtype, 64);
  const double scaled = split ? 0 : operand_error(c.dtype, 1), product = operand_error(c.dtype, 1);
  GatedAdjointArithmetic a;
  for (GatedArithmetic* side : {&a.state, &a.adjoint}) {
    side->chunk = chunk_tokens;
    side->boundary = 1.01 * u;
    side->decay_per_nat = 9.3 * u;
    side->crossing = 3.4 * u;
    side->crossing_per_nat = 9.9 * u;
    side->write = compounded({split ? product : 0, gamma(side == &a.state ? 3 : 5), tokens});
    side->write_decayed = compounded({scaled, ex2_error});
    side->readout = compounded({product, values, gamma(13)});
    side->readout_decayed = ex2_error;
    side->underflow = 0x1p-126;
    side->output_roundoff = unit_roundoff(c.dtype);
  }
  a.value_readout = compounded({product, gamma(6), keys, tokens, gamma(2)});
  a.value_readout_decayed = compounded({scaled, ex2_error, ex2_error, ex2_error, ex2_error});
  a.gate_readout = compounded({product, product, values, gamma(static_cast<double>(s.V) / 4 + 32)});
  a.gate_readout_decayed = compounded({ex2_error, ex2_error});
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  return a;
}

}  // namespace assay::gla
