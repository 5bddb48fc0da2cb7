// The plans of simple_gla.chunk_hopper and of other operators of the family.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/device/box_map.h"
#include "kernels/scalar/chunk_plan.h"
#include "kernels/scalar/hopper_layout.h"

namespace assay::scalar {
namespace {

/// Whether launches for Hopper take the case: tensor maps want rows at multiples of 16 bytes, and a block so
/// many channels of what it contracts over.
bool hopper_takes(const ScalarPlan& p, int64_t contracted) {
  return p.c.dtype == Dtype::bf16 && contracted <= hopper_most_keys && p.sizes.K % 8 == 0 &&
         p.sizes.V % 8 == 0 && p.sequences.chunks > 0;
}

/// A result's channels of a block: 32 where blocks of 64 would leave half of an H200's 132 multiprocessors
/// without work.
int hopper_columns(const ScalarPlan& p, int64_t channels) {
  return channels <= 32 || p.sequences.count * p.sizes.H * blocks_of(channels, 64) <= 66 ? 32 : 64;
}

/// A launch of simple_gla_<name>_<capacity>_<columns>, whose blocks contract over `contracted` channels and
/// own `columns` of at most `channels`.
void hopper_launch(ScalarPlan& p, const std::string& name, int64_t contracted, int64_t channels, int columns,
                   uint32_t results, std::vector<Argument> arguments) {
  const int key_tiles = contracted <= 64 ? 1 : 2;
  p.use(name);
  arguments.insert(arguments.end(),
                   {PointerArgument{"sequences", 0}, static_cast<int32_t>(p.sequences.count), p.scale()});
  Launch& launch =
      p.launch(fmt::format("simple_gla_{}_{}_{}", name, 64 * key_tiles, columns),
               p.sequences.count * p.sizes.H * blocks_of(channels, columns), std::move(arguments));
  launch.grid[1] = results;
  launch.block = {hopper_threads, 1, 1};
  launch.shared_bytes = static_cast<uint32_t>(HopperLayout(key_tiles, columns).bytes);
}

/// Boxes of `width` channels of an input.
Argument boxes(const ScalarPlan& p, const char* name, int64_t channels, int width) {
  return Argument::of(p.input(name), device::box_map(channels, p.sizes.H, p.sizes.B * p.sizes.T, width));
}

void add_hopper_forward(ScalarPlan& p) {
  const Sizes& s = p.sizes;
  if (!hopper_takes(p, s.K)) return add_chunk_forward(p);
  const int columns = hopper_columns(p, s.V);
  hopper_launch(p, "chunk_hopper", s.K, s.V, columns, 1,
                {boxes(p, "q", s.K, 64), boxes(p, "k", s.K, 64), boxes(p, "v", s.V, columns), p.gates.pointer,
                 p.input("initial_state"), p.output("o"), PointerArgument{"final_state", 0}});
}

void add_hopper_gradients(ScalarPlan& p) {
  const Sizes& s = p.sizes;
  const int64_t channels = std::max(s.K, s.V), tokens = s.B * s.T, blocks = p.sequences.chunks * s.H;
  if (!hopper_takes(p, channels)) return add_chunk_gradients(p);
  const bool learned = p.gates.kind != "none" && p.gates.kind != "fixed";
  const auto term = [&](const char* name, int64_t bytes) { return p.workspace(name, learned ? bytes : 0); };
  const int64_t state_bytes = blocks * blocks_of(s.K, 64) * blocks_of(s.V, 64) * KeptState::bytes,
                dot_bytes = s.H * blocks_of(s.K, 64) * tokens * 4;
  const PointerArgument states = term("start_states", state_bytes),
                        adjoints = term("end_adjoints", state_bytes),
                        query_dots = term("query_dots", dot_bytes), key_dots = term("key_dots", dot_bytes);
  hopper_launch(p, "chunk_backward_hopper", channels, channels, 64, 3,
                {boxes(p, "q", s.K, 64), boxes(p, "k", s.K, 64), boxes(p, "v", s.V, 64),
                 boxes(p, "do", s.V, 64), p.gates.pointer, p.input("initial_state"), p.input("dfinal_state"),
                 p.output("dinitial_state"), p.output("dq"), p.output("dk"), p.output("dv"), p.input("q"),
                 p.input("k"), states, adjoints, query_dots, key_dots, tokens});
  if (!learned) return;
  p.use("chunk_gates");
  p.tile_launch("simple_gla_chunk_gates", blocks, GradientLayout(p.format()).states_offset,
                {p.input("q"), p.input("k"), p.input("v"), p.gates.pointer, p.input("do"), states, adjoints,
                 query_dots, key_dots, p.gates.gradients, PointerArgument{"chunks", 0}, tokens, p.scale()});
  add_head_gate_gradients(p.plan, p.c, p.gates);
}

}  // namespace

/// What these launches do not take (hopper_takes) is left to those of chunk: the kernel has the same limits,
/// the same arithmetic and the same bits.
Kernel chunk_hopper_kernel(const Member& member) {
  return chunked_kernel(
      member, "chunk_hopper",
      "chunk for GPUs of sm_90a: bf16 with up to 128 channels in one launch, by wgmma from tiles "
      "that tensor maps load, states in registers; the rest by the launches of chunk",
      add_hopper_forward, add_hopper_gradients);
}

}  // namespace assay::scalar
