// Starting a block, and its barriers.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/vm/engine.h"

namespace assay::vm {
namespace {

std::array<uint32_t, 3> member_of(const Warp& warp) {
  const LaunchContext& context = *warp.block->context;
  return member_index(*context.launch, context.cluster, warp.block->linear, warp.rank);
}

uint32_t special_value(const std::string& name, const Warp& warp, uint32_t lane) {
  const Block& block = *warp.block;
  const LaunchContext& context = *block.context;
  const Launch& launch = *context.launch;
  const auto& size = launch.block;
  const auto cluster = context.together ? std::array<uint32_t, 3>{1, 1, 1} : context.cluster;
  const uint32_t rank = context.together ? 0 : warp.rank;
  const uint32_t thread = 32 * warp.number + lane;
  const auto axis = [&name] { return static_cast<size_t>(name.back() - 'x'); };
  const bool whole = name.back() != 'w';
  if (name.starts_with("%tid.") && whole) return unfold(thread, size)[axis()];
  if (name.starts_with("%ntid.") && whole) return size[axis()];
  if (name.starts_with("%ctaid.") && whole) return member_of(warp)[axis()];
  if (name.starts_with("%nctaid.") && whole) return launch.grid[axis()];
  if (name == "%laneid") return lane;
  if (name == "%warpid") return warp.number;
  if (name == "%nwarpid") return (block.threads + 31) / 32;
  if (name == "%lanemask_eq") return 1u << lane;
  if (name == "%lanemask_lt") return (1u << lane) - 1;
  if (name == "%lanemask_le") return (2u << lane) - 1;
  if (name == "%lanemask_gt") return ~((2u << lane) - 1);
  if (name == "%lanemask_ge") return ~((1u << lane) - 1);
  if (name == "%dynamic_smem_size") return launch.shared_bytes;
  if (name == "%total_smem_size") return block.shared_bytes;
  if (name == "%is_explicit_cluster") return context.explicit_cluster;
  if (name == "%cluster_ctarank") return rank;
  if (name == "%cluster_nctarank") return count_of(cluster);
  if (name.starts_with("%nclusterid.") && whole) return launch.grid[axis()] / cluster[axis()];
  if (name.starts_with("%clusterid.") && whole) return member_of(warp)[axis()] / cluster[axis()];
  if (name.starts_with("%cluster_ctaid.") && whole) return unfold(rank, cluster)[axis()];
  if (name.starts_with("%cluster_nctaid.") && whole) return cluster[axis()];
  if (name == "%envreg1") return static_cast<uint32_t>(context.grid_workspace >> 32);
  if (name == "%envreg2") return static_cast<uint32_t>(context.grid_workspace);
  if (name == "%nsmid") return 1;
  return 0;  // clocks, timers, multiprocessor and grid numbers: no kernel result may depend on them
}

void fill_specials(Block& block) {
  for (const SpecialCell& special : block.context->code->specials)
    for (Warp& warp : block.warps)
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const uint32_t value = special_value(special.name, warp, lane);
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

void lay_out(Block& block) {
  const LaunchContext& context = *block.context;
  block.members = count_of(context.cluster);
  block.threads = count_of(context.launch->block);
  block.warp_stride = warps_of(*context.launch, context.cluster);
  block.shared_bytes = context.code->shared_bytes + context.launch->shared_bytes;
  // Swizzles and matrix descriptors repeat after 1024 bytes.
  block.shared_stride = block.members > 1 ? (block.shared_bytes + 1023) / 1024 * 1024 : block.shared_bytes;
  block.shared.resize(size_t{block.shared_stride} * block.members);
}

}  // namespace

namespace {

struct LeftFile {
  std::unique_ptr<std::byte[]> bytes;
  size_t size = 0;
};
thread_local LeftFile left_file;

}  // namespace

std::byte* FileMemory::of(size_t bytes) {
  if (size_ < bytes && left_file.size > size_)
    bytes_ = std::move(left_file.bytes), size_ = std::exchange(left_file.size, 0);
  if (size_ < bytes) bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes), size_ = bytes;
  return bytes_.get();
}

FileMemory::~FileMemory() {
  constexpr size_t kMostLeft = size_t{1} << 26;
  if (size_ > left_file.size && size_ <= kMostLeft) left_file = {std::move(bytes_), size_};
}

void prepare_worker(Worker& worker, const LaunchContext& context) {
  const Code& code = *context.code;
  Block& block = worker.block;
  block.context = &context;
  lay_out(block);
  const uint32_t warps = block.warp_stride * block.members;
  const size_t stride = (code.file_bytes + 127) / 64 * 64;
  std::byte* const file = worker.file_memory.of(stride * warps + 64);
  auto aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(file) + 63) & ~uintptr_t{63});
  block.warps.assign(warps, Warp{});
  for (uint32_t w = 0; w < warps; ++w) {
    Warp& warp = block.warps[w];
    warp.block = &block;
    warp.index = w, warp.rank = w / block.warp_stride, warp.number = w % block.warp_stride;
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
  block.barriers.assign(block.members, {});
  block.changes = block.issued = 0;
  block.loads.clear();
  block.landed.clear();
  block.warpgroups.assign((block.warps.size() + 3) / 4, {});
  // Uninitialised registers, shared and local memory hold the same in every run.
  const std::byte poison{block.context->poison};
  std::fill(block.shared.begin(), block.shared.end(), poison);
  for (Warp& warp : block.warps) {
    const auto fill = [&](Slot begin, Slot end) {
      std::memset(warp.file + begin, std::to_integer<int>(poison), end - begin);
    };
    if (block.context->poisons_all)
      fill(0, code.register_bytes);
    else
      for (const SlotRange& range : code.unsure) fill(range.begin, range.end);
    std::fill(warp.local.begin(), warp.local.end(), poison);
    const uint32_t first = warp.number * 32,
                   lanes = first < block.threads ? std::min(32u, block.threads - first) : 0;
    warp.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.state = lanes ? WarpState::running : WarpState::done;
    warp.current = {0, warp.live, -1};
    warp.stack.clear();
    warp.executed = 0;
    warp.carry = 0;
    warp.at_cluster = warp.awaits_cluster = warp.yields = warp.stalls = false;
    warp.idle_polls = warp.polled_at = 0;
    warp.copies.clear();
    warp.products.clear();
    warp.bulk.clear();
    warp.products_fenced = false;
  }
  for (const SpecialCell& special : code.specials) {
    if (!depends_on_block(special.name)) continue;
    for (Warp& warp : block.warps) {
      const uint32_t value = special_value(special.name, warp, 0);
      if (special.cell == Cell::wide)
        std::fill_n(warp.wide(special.slot), 32, value);
      else
        std::fill_n(warp.word(special.slot), 32, value);
    }
  }
}

namespace {

void note_floats(Worker& worker, const Op& op, const void* floats, uint32_t mask) {
  ArgumentRange& range = worker.ranges[static_cast<size_t>(op.exponential)];
  const uint32_t nans = lane_kit().argument_range(floats, mask, &range.smallest, &range.largest);
  range.count += mask == ~0u ? 32 : static_cast<uint64_t>(std::popcount(mask));
  if (nans) range.nans += static_cast<uint64_t>(std::popcount(nans));
}

}  // namespace

void note_argument(Worker& worker, const Warp& warp, const Op& op, uint32_t mask) {
  const ptx::Type type = op.row->sources[0];
  const uint32_t* words = warp.word(op.s[0]);
  if (type == ptx::Type::f32) return note_floats(worker, op, words, mask);
  const bool brain = type == ptx::Type::bf16 || type == ptx::Type::bf16x2;
  const int halves = type == ptx::Type::f16x2 || type == ptx::Type::bf16x2 ? 2 : 1;
  for (int half = 0; half < halves; ++half) {
    uint32_t floats[32];
    for (int i = 0; i < 32; ++i) {
      const auto bits = static_cast<uint16_t>(words[i] >> (16 * half));
      floats[i] = brain ? widened_bf16(bits) : widened_f16(bits);
    }
    note_floats(worker, op, floats, mask);
  }
}

namespace {

/// barrier.cluster.arrive and .wait: every warp of the cluster arrives once before it waits.
bool meet_cluster(Warp& warp, const Op& op, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  if (op.immediate == barrier_cluster_arrive) {
    if (warp.at_cluster)
      return raise(warp, op, lane, TrapKind::barrier,
                   "the warp arrives at the cluster's barrier again without having waited for it");
    warp.at_cluster = warp.awaits_cluster = true;
    return true;
  }
  if (!warp.awaits_cluster)
    return raise(warp, op, lane, TrapKind::barrier,
                 "the warp waits for the cluster's barrier without having arrived there");
  warp.awaits_cluster = false;
  if (!warp.at_cluster) return true;
  warp.barrier_op = &op;
  warp.barrier_mask = mask;
  warp.state = WarpState::waiting;
  return true;
}

}  // namespace

bool arrive_at_barrier(Warp& warp, const Op& op, uint32_t mask) {
  Block& block = *warp.block;
  if (mask != warp.live)
    return raise(warp, op, std::countr_zero(mask), TrapKind::barrier,
                 fmt::format("only {} of the warp reach the barrier: {}", lanes_text(mask),
                             absent_text(warp, mask, warp.live)));
  if (op.immediate >= barrier_cluster_arrive) return meet_cluster(warp, op, mask);
  const int lane = std::countr_zero(mask);
  const uint32_t number = warp.word(op.s[0])[lane];
  if (number >= block.barriers[warp.rank].size())
    return raise(warp, op, lane, TrapKind::barrier, fmt::format("there is no barrier {}", number));
  Barrier& barrier = block.barriers[warp.rank][number];
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

namespace {

/// All warps of the cluster have arrived or ended: those that wait go on. True: some did.
bool release_cluster(Block& block) {
  bool arrived = false, released = false;
  for (const Warp& warp : block.warps) {
    if (warp.state != WarpState::done && !warp.at_cluster) return false;
    arrived |= warp.at_cluster;
  }
  if (!arrived) return false;
  for (Warp& warp : block.warps) {
    warp.at_cluster = false;
    const bool waits = warp.state == WarpState::waiting && warp.barrier_op->immediate == barrier_cluster_wait;
    if (waits) warp.state = WarpState::running;
    released |= waits;
  }
  return released;
}

/// Nothing can move any more.
bool stuck(Block& block, uint32_t alive) {
  std::string waits;
  Warp* first = nullptr;
  const auto add = [&](Warp& warp, const std::string& at) {
    if (!first || warp.index < first->index) first = &warp;
    waits += fmt::format("{} warp {}{} at {}", waits.empty() ? ":" : ",", warp.number,
                         block.members > 1 ? fmt::format(" of block {}", warp.rank) : "", at);
  };
  const auto line = [&](const Warp& warp) {
    const SourceLocation at = where(*block.context->code, *warp.barrier_op);
    return at.line ? at.line : at.ptx_line;
  };
  for (const auto& barriers : block.barriers)
    for (size_t number = 0; number < barriers.size(); ++number)
      for (const uint32_t index : barriers[number].waiting) {
        const Barrier& barrier = barriers[number];
        add(block.warps[index],
            fmt::format("barrier {} ({} of {} threads, line {})", number, barrier.arrived_threads,
                        barrier.expected_threads ? std::to_string(barrier.expected_threads) : "all",
                        line(block.warps[index])));
      }
  for (Warp& warp : block.warps)
    if (warp.state == WarpState::waiting && warp.barrier_op->immediate == barrier_cluster_wait)
      add(warp, fmt::format("the cluster's barrier (line {})", line(warp)));
  if (first)
    raise(*first, *first->barrier_op, std::countr_zero(first->barrier_mask), TrapKind::barrier,
          fmt::format("{} of {} warps wait at barriers that nobody will complete{}", alive,
                      (block.threads + 31) / 32 * block.members, waits));
  return false;
}

}  // namespace

bool release_barriers(Block& block) {
  uint32_t alive = 0, running = 0;
  bool released = false;
  for (uint32_t rank = 0; rank < block.members; ++rank) {
    uint32_t alive_here = 0;
    for (uint32_t w = 0; w < block.warp_stride; ++w) {
      const Warp& warp = block.warps[rank * block.warp_stride + w];
      alive_here += warp.state != WarpState::done;
      running += warp.state == WarpState::running;
    }
    alive += alive_here;
    for (Barrier& barrier : block.barriers[rank]) {
      if (barrier.waiting.empty()) continue;
      const bool full = barrier.expected_threads ? barrier.arrived_threads >= barrier.expected_threads
                                                 : barrier.arrived_warps >= alive_here;
      if (!full) continue;
      complete(block, barrier);
      released = true;
    }
  }
  released |= release_cluster(block);
  if (released || running || !alive) return true;
  return stuck(block, alive);
}

}  // namespace assay::vm
