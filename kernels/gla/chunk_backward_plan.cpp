// The launches of gla.chunk's gradients and the arithmetic they declare.
#include <fmt/format.h>

#include "kernels/channel/case_layout.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/gla/plans.h"
#include "kernels/module_text.h"

namespace assay::gla {

void add_chunk_backward(Program& plan, const ChannelChunk& kernel, const ResolvedCase& c,
                        const TensorMap& inputs, const gated::Sequences& sequences) {
  const Sizes& s = c.sizes;
  const channel::CaseLayout layout(c);
  plan.modules.push_back(kernel_module(fmt::format("{}/chunk_backward.{}.{}", kernel.folder,
                                                   format(c.dtype).name, format(c.gate_dtype).name)));
  const int64_t blocks = sequences.chunks * s.H, wide = channel::scan_columns(c, layout);
  const auto workspace = [&](const char* name, int64_t bytes) {
    return gated::workspace_of(plan, name, bytes);
  };
  const PointerArgument states = workspace("states_plain", blocks * layout.plain_bytes()),
                        adjoints = workspace("adjoints_plain", blocks * layout.plain_bytes()),
                        adjoint_operands = workspace("adjoint_operands", blocks * layout.operand_bytes());
  const auto input = [&](const std::string& name) { return gated::input_or_null(inputs, name); };
  const auto gradient = [&](const std::string& name) { return gated::output_or_null(plan, "d" + name); };
  std::vector<Argument> bonus, bonus_sums;
  if (!kernel.bonus.empty()) {
    bonus = {input(kernel.bonus)};
    bonus_sums = {workspace("bonus_sums", blocks * s.K * 4)};
  }
  const auto scale = Argument::rounded(c.scale);
  const auto launch = [&](const std::string& function, int64_t grid, uint32_t shared,
                          std::initializer_list<std::vector<Argument>> arguments) -> Launch& {
    std::vector<Argument> all = joined(arguments);
    for (const int64_t size : {s.H, s.K, s.V, int64_t{s.K % 8 == 0 && s.V % 8 == 0}})
      all.emplace_back(static_cast<int32_t>(size));
    return gated::add_launch(plan, plan.modules.back().name,
                             fmt::format("{}_chunk_{}", kernel.folder, function), grid, std::move(all),
                             shared);
  };
  const PointerArgument of_sequences{"sequences", 0}, of_chunks{"chunks", 0},
      q = input(kernel.query), k = input("k"), v = input("v"), g = input(kernel.gate), d_o = input("do");
  const auto scans = [&](int32_t first, uint32_t count) {
    Launch& added = launch(fmt::format("scans_{}", wide), layout.scan_blocks(wide), layout.state_shared(wide),
                           {{k, v, g, input("initial_state"), states, q, d_o, input("dfinal_state"),
                             gradient("initial_state"), adjoint_operands, adjoints, of_sequences, scale}});
    added.arguments.emplace_back(first);
    added.grid[1] = count;
  };
  // One alone leaves multiprocessors idle: side by side (where it does not, both together are slower).
  if (blocks > 0 && layout.scan_blocks(wide) <= channel::multiprocessors) {
    scans(0, 2);
  } else {
    if (blocks > 0) scans(0, 1);
    scans(1, 1);
  }
  if (blocks == 0) return;
  launch("values" + channel::output_suffix(c), blocks, layout.output_shared(),
         {{q, k, d_o, g}, bonus, {adjoint_operands, gradient("v"), of_chunks, scale}});
  launch("keys", blocks * layout.key_blocks(), layout.keys_shared(),
         {{q, k, v, g},
          bonus,
          {d_o, states, adjoints, gradient(kernel.query), gradient("k"), gradient(kernel.gate)},
          bonus_sums,
          {of_chunks, scale}})
      .block[0] = layout.key_threads(!kernel.bonus.empty());
}

/// Decays, boundaries and what a term pays when it enters S or G are those of the forward state scan
/// (chunk_plan.cpp), in G with the scale's own rounding and its product besides. Then, per path, each factor
/// counted with its largest number of roundings:
///   dq   across chunks: S's copy rounded, contraction over V, e^G (ex2, scaled: 2 products); inside: M
///        contracted over V, scaled, rounded to the operand format; x_j = k e^B pays in `write`; contraction
///        over at most 32 tokens, less than the 64 of `write`; e^F (ex2, fused); 8 additions at most
///   dk   the same with q for k and D for S
///   dv   the forward output kernel in reversed time: as its readout; scores are scaled before they
///        are rounded
///   dg   x z: as dq or dk with a second ex2 (of x, unrounded) and no factor after z; S (.) D: both copies
///        rounded, V/4 fused additions in a lane, 2 over lanes, e^L; then at most 24 additions
/// The bonus: M_ii = scale do_i . v_i is contracted over V and scaled, twice multiplied and added in dq and
/// dk: within their readout. In dv as in the forward pass (chunk_arithmetic). du: M_ii q, 16 fused additions
/// and 2 over lanes: `total` as far as a chunk goes.
AdjointArithmetic chunk_adjoint_arithmetic(const ResolvedCase& c) {
  using namespace gated;
  const Sizes& s = c.sizes;
  const bool split = c.dtype == Dtype::fp32;
  const double keys = contraction(c.dtype, static_cast<double>(s.K)),
               values = contraction(c.dtype, static_cast<double>(s.V)),
               tokens = contraction(c.dtype, channel::chunk_tokens);
  const double scaled = split ? 0 : operand_error(c.dtype, 1), product = operand_error(c.dtype, 1);
  AdjointArithmetic a;
  for (Arithmetic* side : {&a.state, &a.adjoint}) {
    side->chunk = side->stored = channel::chunk_tokens;
    side->boundary = 1.01 * u;
    side->decay_per_nat = 9.3 * u;
    side->crossing = 3.4 * u;
    side->crossing_per_nat = 9.9 * u;
    side->write = compounded({split ? product : 0, gamma(side == &a.state ? 3 : 5), tokens});
    side->write_decayed = compounded({ex2_error, gamma(1)});
    side->write_scaled = scaled;
    side->readout = compounded({product, values, gamma(13)});
    side->readout_decayed = ex2_error;
    // As the longest path of dv; dq and dk are contracted over values, then over tokens.
    if (split) side->truncated = 3 * split_truncation, side->single = split_single;
    side->underflow = 0x1p-126;
    side->output_roundoff = unit_roundoff(c.dtype);
  }
  a.value_readout = compounded({product, gamma(6), keys, tokens, gamma(2)});
  a.value_readout_decayed = compounded({ex2_error, ex2_error, ex2_error, ex2_error, gamma(4)});
  a.value_readout_scaled = scaled;
  a.gate_readout = compounded({product, product, values, gamma(static_cast<double>(s.V) / 4 + 32)});
  a.gate_readout_decayed = compounded({ex2_error, ex2_error});
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.bonus = bonus_error(s);
  a.total = compounded({split ? product : 0, values, gamma(2 + 1 + 16 + 2)});
  return a;
}

}  // namespace assay::gla
