// Starting a block, and its barriers.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/base/vm/engine.h"

namespace assay::vm {
namespace {

uint32_t special_value(const std::string& name, const Block& block, uint32_t thread) {
  const Launch& launch = *block.context->launch;
  const auto& size = launch.block;
  const uint32_t lane = thread % 32;
  const auto axis = [&name] { return static_cast<size_t>(name.back() - 'x'); };
  if (name.starts_with("%tid.") && name.back() != 'w') {
    const uint32_t tid[3] = {thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1]};
    return tid[axis()];
  }
  if (name.starts_with("%ntid.") && name.back() != 'w') return size[axis()];
  if (name.starts_with("%ctaid.") && name.back() != 'w') return block.index[axis()];
  if (name.starts_with("%nctaid.") && name.back() != 'w') return launch.grid[axis()];
  if (name == "%laneid") return lane;
  if (name == "%warpid") return thread / 32;
  if (name == "%nwarpid") return (block.threads + 31) / 32;
  if (name == "%lanemask_eq") return 1u << lane;
  if (name == "%lanemask_lt") return (1u << lane) - 1;
  if (name == "%lanemask_le") return (2u << lane) - 1;
  if (name == "%lanemask_gt") return ~((2u << lane) - 1);
  if (name == "%lanemask_ge") return ~((1u << lane) - 1);
  if (name == "%dynamic_smem_size") return launch.shared_bytes;
  if (name == "%total_smem_size") return static_cast<uint32_t>(block.shared.size());
  if (name.starts_with("%nclusterid.")) return launch.grid[std::min<size_t>(axis(), 2)];
  if (name.starts_with("%clusterid.")) return block.index[std::min<size_t>(axis(), 2)];
  if (name.starts_with("%cluster_nctaid.") || name == "%cluster_nctarank" || name == "%nsmid") return 1;
  return 0;  // clocks, timers, multiprocessor and grid numbers: no kernel result may depend on them
}

void fill_specials(Block& block) {
  for (const SpecialCell& special : block.context->code->specials)
    for (Warp& warp : block.warps)
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const uint32_t value = special_value(special.name, block, warp.index * 32 + lane);
        if (special.cell == Cell::wide)
          warp.wide(special.slot)[lane] = value;
        else if (special.cell == Cell::word)
          warp.word(special.slot)[lane] = value;
        else
          warp.mask(special.slot) = value ? ~0u : 0;
      }
}

/// Special registers that change from block to block; the others are filled once per launch.
bool depends_on_block(const std::string& name) {
  return name.starts_with("%ctaid") || name.starts_with("%clusterid");
}

}  // namespace

void prepare_worker(Worker& worker, const LaunchContext& context) {
  const Code& code = *context.code;
  Block& block = worker.block;
  block.context = &context;
  block.threads = context.launch->block[0] * context.launch->block[1] * context.launch->block[2];
  const uint32_t warps = (block.threads + 31) / 32;
  const size_t stride = (code.file_bytes + 127) / 64 * 64;
  worker.file_memory.assign(stride * warps + 64, std::byte{0});
  auto aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(worker.file_memory.data()) + 63) &
                                              ~uintptr_t{63});
  block.warps.assign(warps, Warp{});
  for (uint32_t w = 0; w < warps; ++w) {
    Warp& warp = block.warps[w];
    warp.block = &block;
    warp.index = w;
    warp.file = aligned + w * stride;
    warp.local.resize(size_t{32} * code.local_bytes);
    for (const Immediate& immediate : code.immediates) {
      if (immediate.cell == Cell::wide)
        std::fill_n(warp.wide(immediate.slot), 32, immediate.bits);
      else if (immediate.cell == Cell::word)
        std::fill_n(warp.word(immediate.slot), 32, static_cast<uint32_t>(immediate.bits));
      else
        warp.mask(immediate.slot) = static_cast<uint32_t>(immediate.bits);
    }
  }
  block.shared.resize(code.shared_bytes + context.launch->shared_bytes);
  block.hints.assign(code.ops.size(), -1);
  worker.ranges.assign(code.exponentials.size(), ArgumentRange{});
  fill_specials(block);
}

void start_block(Worker& worker, uint64_t linear_index) {
  Block& block = worker.block;
  const Code& code = *block.context->code;
  block.linear = linear_index;
  block.index = unfold(linear_index, block.context->launch->grid);
  block.trap.reset();
  block.barriers = {};
  block.warpgroups.assign((block.warps.size() + 3) / 4, {});
  // Uninitialised registers, shared and local memory hold the same in every run.
  const std::byte poison{block.context->poison};
  std::fill(block.shared.begin(), block.shared.end(), poison);
  for (Warp& warp : block.warps) {
    std::memset(warp.file, std::to_integer<int>(poison), code.register_bytes);
    std::fill(warp.local.begin(), warp.local.end(), poison);
    const uint32_t lanes = std::min(32u, block.threads - warp.index * 32);
    warp.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.state = WarpState::running;
    warp.current = {0, warp.live, -1};
    warp.stack.clear();
    warp.executed = 0;
    warp.carry = 0;
    warp.copies.clear();
    warp.products.clear();
    warp.products_fenced = false;
  }
  for (const SpecialCell& special : code.specials) {
    if (!depends_on_block(special.name)) continue;
    const uint32_t value = special_value(special.name, block, 0);
    for (Warp& warp : block.warps)
      if (special.cell == Cell::wide)
        std::fill_n(warp.wide(special.slot), 32, value);
      else
        std::fill_n(warp.word(special.slot), 32, value);
  }
}

bool arrive_at_barrier(Warp& warp, const Op& op, uint32_t mask) {
  Block& block = *warp.block;
  if (mask != warp.live)
    return raise(warp, op, std::countr_zero(mask), TrapKind::barrier,
                 fmt::format("only {} of the warp reach the barrier: {}", lanes_text(mask),
                             absent_text(warp, mask, warp.live)));
  const int lane = std::countr_zero(mask);
  const uint32_t number = warp.word(op.s[0])[lane];
  if (number >= block.barriers.size())
    return raise(warp, op, lane, TrapKind::barrier, fmt::format("there is no barrier {}", number));
  Barrier& barrier = block.barriers[number];
  const uint32_t expected = op.s[1] == no_slot ? 0 : warp.word(op.s[1])[lane];
  if (barrier.arrived_warps && barrier.expected_threads != expected)
    return raise(warp, op, lane, TrapKind::barrier,
                 fmt::format("barrier {} is awaited with {} threads by one warp and {} by another (0: all)",
                             number, barrier.expected_threads, expected));
  barrier.expected_threads = expected;
  barrier.arrived_threads += 32;
  ++barrier.arrived_warps;
  if (op.s[2] != no_slot) {
    const uint32_t vote = (op.third_negated ? ~warp.mask(op.s[2]) : warp.mask(op.s[2])) & mask;
    barrier.votes_true += static_cast<uint32_t>(std::popcount(vote));
    barrier.votes += static_cast<uint32_t>(std::popcount(mask));
  }
  if (op.immediate == barrier_arrive) return true;
  barrier.waiting.push_back(warp.index);
  warp.barrier_op = &op;
  warp.barrier_mask = mask;
  warp.state = WarpState::waiting;
  return true;
}

namespace {

/// Writes the result of bar.red and lets the waiting warps run.
void complete(Block& block, Barrier& barrier) {
  for (const uint32_t index : barrier.waiting) {
    Warp& warp = block.warps[index];
    const Op& op = *warp.barrier_op;
    const uint32_t mask = warp.barrier_mask;
    if (op.immediate == barrier_popc) {
      for (uint32_t lane = 0; lane < 32; ++lane)
        if ((mask >> lane) & 1) warp.word(op.d)[lane] = barrier.votes_true;
    } else if (op.immediate == barrier_and || op.immediate == barrier_or) {
      const bool result =
          op.immediate == barrier_and ? barrier.votes_true == barrier.votes : barrier.votes_true != 0;
      warp.mask(op.d) = (warp.mask(op.d) & ~mask) | (result ? mask : 0);
    }
    warp.state = WarpState::running;
  }
  barrier = {};
}

}  // namespace

bool release_barriers(Block& block) {
  uint32_t alive = 0, running = 0;
  for (const Warp& warp : block.warps) {
    alive += warp.state != WarpState::done;
    running += warp.state == WarpState::running;
  }
  bool released = false;
  for (Barrier& barrier : block.barriers) {
    if (barrier.waiting.empty()) continue;
    const bool full = barrier.expected_threads ? barrier.arrived_threads >= barrier.expected_threads
                                               : barrier.arrived_warps >= alive;
    if (!full) continue;
    complete(block, barrier);
    released = true;
  }
  if (released || running || !alive) return true;
  std::string waits;
  Warp* first = nullptr;
  for (size_t number = 0; number < block.barriers.size(); ++number) {
    const Barrier& barrier = block.barriers[number];
    for (const uint32_t index : barrier.waiting) {
      Warp& warp = block.warps[index];
      if (!first || index < first->index) first = &warp;
      const SourceLocation at = where(*block.context->code, *warp.barrier_op);
      waits += fmt::format("{} warp {} at barrier {} ({} of {} threads, line {})", waits.empty() ? ":" : ",",
                           index, number, barrier.arrived_threads,
                           barrier.expected_threads ? std::to_string(barrier.expected_threads) : "all",
                           at.line ? at.line : at.ptx_line);
    }
  }
  if (first)
    raise(*first, *first->barrier_op, std::countr_zero(first->barrier_mask), TrapKind::barrier,
          fmt::format("{} of {} warps wait at barriers that nobody will complete{}", alive,
                      block.warps.size(), waits));
  return false;
}

}  // namespace assay::vm
