// The engine: runs the warps of one block, in turn, each until it waits or ends. A template over the trace
// (trace.h), so that a plain run pays nothing for the hooks.
#pragma once
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/vm/approximate.h"
#include "src/base/vm/compiled/compiled_code.h"
#include "src/base/vm/each_lane.h"
#include "src/base/vm/permutation.h"
#include "src/base/vm/trace.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

/// Op::immediate of barriers.
enum BarrierMode : uint64_t {
  barrier_sync,
  barrier_arrive,
  barrier_popc,
  barrier_and,
  barrier_or,
  barrier_cluster_arrive,
  barrier_cluster_wait
};

/// What one exponential instruction saw; order-preserving integers of its arguments
/// (LaneKit::argument_range).
struct ArgumentRange {
  int32_t smallest = INT32_MAX, largest = INT32_MIN;
  uint64_t count = 0, nans = 0;
};

/// Bytes that hold anything, left by one worker to the next of its thread: start_block writes what may
/// matter.
class FileMemory {
 public:
  std::byte* of(size_t bytes);
  FileMemory() = default;
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;
  ~FileMemory();

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

/// One host thread's state, kept over blocks and launches of one Code.
struct Worker {
  Block block;
  FileMemory file_memory;
  std::vector<ArgumentRange> ranges;  ///< by Code::exponentials
  uint64_t lane_instructions = 0;
  uint64_t instructions = 0;  ///< of warps
};

/// Sizes the worker's buffers for a launch and writes the constants of its register files.
void prepare_worker(Worker&, const LaunchContext&);
/// Resets registers, shared memory, barriers and special registers for a block.
void start_block(Worker&, uint64_t linear_index);
/// Copies the (from, to, bytes) triples of Op::slots within each lane's local memory.
void copy_local(Warp&, const Op&, uint32_t mask);
/// Arrival of a warp at a barrier. False: trapped.
bool arrive_at_barrier(Warp&, const Op&, uint32_t mask);
/// Lets waiting warps go where their barrier is complete. False: nothing can move any more, and the block has
/// trapped.
bool release_barriers(Block&);

// Steps of ops, as the engine and compiled pieces take them.
/// Row::lanes; `scratch`: room for a cell.
[[gnu::always_inline]] inline void run_lanes(Warp& warp, const Op& op, uint32_t mask, void* scratch) {
  auto cell = [&](Slot slot) -> const void* { return slot == no_slot ? nullptr : warp.file + slot; };
  void* d = warp.file + op.d;
  if (mask == ~0u) {
    op.lanes(d, cell(op.s[0]), cell(op.s[1]), cell(op.s[2]), cell(op.s[3]));
    return;
  }
  op.lanes(scratch, cell(op.s[0]), cell(op.s[1]), cell(op.s[2]), cell(op.s[3]));
  if (op.d_cell == Cell::word)
    lane_kit().blend_words(d, scratch, mask);
  else if (op.d_cell == Cell::wide)
    lane_kit().blend_wide(d, scratch, mask);
  else
    warp.mask(op.d) = (warp.mask(op.d) & ~mask) | (*static_cast<const uint32_t*>(scratch) & mask);
}

/// setp.cmp.bool p|q: p = cmp bool c, q = !cmp bool c.
inline void run_compare(Warp& warp, const Op& op, uint32_t mask) {
  const void* b = op.s[1] == no_slot ? nullptr : warp.file + op.s[1];
  uint32_t first = op.row->mask(warp.file + op.s[0], b), second = ~first;
  if (op.boolean != BooleanOp::none) {
    const uint32_t third = op.third_negated ? ~warp.mask(op.s[2]) : warp.mask(op.s[2]);
    if (op.boolean == BooleanOp::land) first &= third, second &= third;
    if (op.boolean == BooleanOp::lor) first |= third, second |= third;
    if (op.boolean == BooleanOp::lxor) first ^= third, second ^= third;
  }
  warp.mask(op.d) = (warp.mask(op.d) & ~mask) | (first & mask);
  if (op.d2 != no_slot) warp.mask(op.d2) = (warp.mask(op.d2) & ~mask) | (second & mask);
}

/// The arguments of an exponential enter its range; those of 16 bits as the floats that they are.
void note_argument(Worker&, const Warp&, const Op&, uint32_t mask);

template <IsTrace Trace>
class Engine {
 public:
  Engine(Worker& worker, Trace& trace) : worker_(worker), trace_(trace) {}

  /// Runs block `linear_index` of the launch the worker was prepared for. A trap is left in
  /// Worker::block.trap. Ends early where the run is abandoned or too long, for the caller to see.
  void run_block(uint64_t linear_index) {
    start_block(worker_, linear_index);
    Block& block = worker_.block;
    if constexpr (has(hook::begin_block)) trace_.begin_block(block);
    const uint64_t order = block.context->order, warps = block.warps.size();
    uint64_t round = 0;
    for (bool running = true; running && !block.trap; ++round) {
      running = false;
      if (block.context->is_abandoned() || is_too_long()) break;
      const Permutation turns(order > 1 ? order + round : order, warps);
      for (uint64_t turn = 0; turn < warps; ++turn) {
        Warp& warp = block.warps[turns(turn)];
        if (warp.state != WarpState::running) continue;
        run_warp(warp);
        if (block.trap) break;
      }
      if (block.trap || !release_barriers(block)) break;
      if constexpr (has(hook::released)) trace_.released(block);
      for (const Warp& warp : block.warps) running |= warp.state == WarpState::running;
    }
    if (!block.trap && warpgroups_agree(block)) {
      land_rest(block);
      tell_landed(block);
    }
    if constexpr (has(hook::end_block)) trace_.end_block(block);
  }

 private:
  bool is_too_long() const {
    return worker_.lane_instructions > worker_.block.context->most_lane_instructions;
  }
  static constexpr bool has(unsigned one) { return (Trace::hooks & one) != 0; }
  /// Instructions before other warps get a turn (a warp may spin on another); of a shuffled order, and of
  /// blocks that run together.
  static constexpr uint64_t slice = uint64_t{1} << 18, short_slice = 300;

  void run_warp(Warp& warp) {
    const Op* const code = warp.block->context->code->ops.data();
    const uint64_t budget = warp.block->context->instruction_budget;
    const LaunchContext& context = *warp.block->context;
    const uint64_t turn = context.order > 1 || context.together ? short_slice : slice;
    uint64_t stop = std::min(budget, warp.executed + turn);
    uint64_t executed = warp.executed, lanes = 0;
    alignas(64) uint64_t scratch[32];
    bool yields = false;
    for (;;) {
      while (warp.current.pc == warp.current.reconverge)
        if (!next_split(warp)) goto done;
      if constexpr (Trace::hooks == 0 && !Trace::stops) {
        if (const CompiledCode* const compiled = context.compiled;
            compiled && warp.current.mask == ~0u && compiled->begins_at(warp.current.pc)) {
          const uint64_t before = executed;
          if (!run_compiled(*compiled, warp, stop, executed, lanes)) goto done;
          if (executed != before) continue;  // else the branch that it began with is this engine's
        }
      }
      const Op& op = code[warp.current.pc];
      uint32_t mask = warp.current.mask;
      ++executed;
      if (op.guarded) {
        if constexpr (has(hook::guarded)) trace_.guarded(warp, op, mask);
        mask &= op.guard_negated ? ~warp.mask(op.guard) : warp.mask(op.guard);
        if (!mask) {
          ++warp.current.pc;
          continue;
        }
      }
      lanes += mask == ~0u ? 32 : lanes_in(mask);
      if constexpr (has(hook::before)) trace_.before(warp, op, mask);
      if constexpr (Trace::stops)
        if (warp.block->trap) goto done;
      if (op.kind == Kind::lanes)  // most of all, and foreseen better than one of many cases
        run_lanes(warp, op, mask, scratch);
      else
        switch (op.kind) {
          case Kind::exponential:
            note_argument(worker_, warp, op, mask);
            run_lanes(warp, op, mask, scratch);
            break;
          case Kind::compare:
            run_compare(warp, op, mask);
            break;
          case Kind::warp:
            if (!run_whole_warp(warp, op, mask)) goto done;
            if (std::exchange(warp.yields, false)) yields = true, stop = executed;
            break;
          case Kind::async_wait:
            wait_for_copies(warp, op, mask);
            break;
          case Kind::nothing:
            break;
          default:
            if (executed >= stop && (op.kind == Kind::branch || op.kind == Kind::branch_table)) {
              if (executed >= budget) {
                raise(warp, op, std::countr_zero(mask), TrapKind::hang,
                      fmt::format("the warp executed {} instructions without ending", executed));
                goto done;
              }
              control(warp, op, mask);
              if constexpr (has(hook::after)) trace_.after(warp, op, mask);
              if (yields) take_turns(warp);
              goto done;
            }
            if (!control(warp, op, mask)) goto done;
            if constexpr (has(hook::after)) trace_.after(warp, op, mask);
            continue;
        }
      if constexpr (has(hook::after)) trace_.after(warp, op, mask);
      ++warp.current.pc;
    }
  done:
    worker_.instructions += executed - std::exchange(warp.executed, executed);
    worker_.lane_instructions += lanes;
  }

  /// False: trapped, or the warp has to wait. Lanes of a generic access that reach several memory spaces go
  /// one space at a time; `mask` becomes the lanes of the last.
  bool run_whole_warp(Warp& warp, const Op& op, uint32_t& mask) {
    for (uint32_t rest = mask;;) {
      if (!op.row->warp(warp, op, mask)) {
        if (!warp.of_one_space) return false;
        mask = std::exchange(warp.of_one_space, 0);
        continue;
      }
      if (!warp.block->landed.empty()) tell_landed(*warp.block);
      if (std::exchange(warp.stalls, false)) return false;
      rest &= ~mask;
      if (!rest) return true;
      if constexpr (has(hook::after)) trace_.after(warp, op, mask);
      mask = rest;
    }
  }

  /// From a piece's first op on. False: trapped.
  bool run_compiled(const CompiledCode& compiled, Warp& warp, uint64_t stop, uint64_t& executed,
                    uint64_t& lanes) {
    CompiledRun run{.file = warp.file,
                    .warp = &warp,
                    .worker = &worker_,
                    .executed = executed,
                    .lanes = lanes,
                    .stop = stop,
                    .reconverge = warp.current.reconverge};
    if (warp.block->members == 1) {
      run.shared = warp.block->shared.data();
      for (uint32_t i = 0; i < 5; ++i)
        run.shared_limit[i] = std::max(warp.block->shared_bytes + 1, 1u << i) - (1u << i);
    }
    compiled.run(run, warp.current.pc);
    executed = run.executed, lanes = run.lanes;
    warp.current.pc = run.pc;
    return !run.trapped;
  }

  /// What lanes wait for may be what others of their warp do on another path to the same place. What runs
  /// behind a call, with these lanes too, is no such path.
  static void take_turns(Warp& warp) {
    if (warp.stack.empty()) return;
    Split& other = warp.stack.back();
    if (other.reconverge == warp.current.reconverge && other.pc != other.reconverge &&
        (other.mask & warp.live) && !(other.mask & warp.current.mask))
      std::swap(other, warp.current);
  }

  /// Takes the next split that still has lanes. False: the warp has ended.
  bool next_split(Warp& warp) {
    while (!warp.stack.empty()) {
      warp.current = warp.stack.back();
      warp.stack.pop_back();
      warp.current.mask &= warp.live;
      if (warp.current.mask) return true;
    }
    warp.state = WarpState::done;
    return false;
  }

  /// False: the warp stops running (waits, ended or trapped).
  bool control(Warp& warp, const Op& op, uint32_t mask) {
    switch (op.kind) {
      case Kind::branch:
        branch(warp, op, mask);
        return true;
      case Kind::branch_table:
        return branch_by_table(warp, op, mask);
      case Kind::call:
        copy_local(warp, op, mask);
        warp.stack.push_back({warp.current.pc + 1, warp.current.mask, warp.current.reconverge});
        warp.current = {op.target, mask, -1};
        return true;
      case Kind::ret:
        return next_split(warp);
      case Kind::exit:
        warp.live &= ~mask;
        warp.current.mask &= ~mask;
        if (!warp.current.mask) return next_split(warp);
        ++warp.current.pc;
        return true;
      case Kind::barrier: {
        const bool arrived = arrive_at_barrier(warp, op, mask);
        ++warp.current.pc;
        return arrived && warp.state == WarpState::running;
      }
      default:
        return raise(warp, op, std::countr_zero(mask), TrapKind::trap,
                     "the kernel executed a trap instruction");
    }
  }

  void branch(Warp& warp, const Op& op, uint32_t taken) {
    Split& now = warp.current;
    const uint32_t others = now.mask & ~taken;
    if (!others) {
      now.pc = op.target;
      return;
    }
    diverge(warp, op.reconverge);
    if (now.pc + 1 != op.reconverge) warp.stack.push_back({now.pc + 1, others, op.reconverge});
    now = {op.target, taken, op.reconverge};
  }

  /// The lanes meet again at `reconverge`: what runs there waits below the paths that lead to it.
  void diverge(Warp& warp, int32_t reconverge) {
    const Split& now = warp.current;
    if (reconverge >= 0 && reconverge != now.reconverge)
      warp.stack.push_back({reconverge, now.mask, now.reconverge});
  }

  bool branch_by_table(Warp& warp, const Op& op, uint32_t mask) {
    const std::vector<int32_t>& table = warp.block->context->code->branch_tables[op.immediate];
    const uint32_t* index = warp.word(op.s[0]);
    const Split now = warp.current;
    std::vector<Split> paths;
    if (now.mask & ~mask) paths.push_back({now.pc + 1, now.mask & ~mask, op.reconverge});
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (index[lane] >= table.size())
        return raise(warp, op, lane, TrapKind::branch,
                     fmt::format("index {} of a branch table of {}", index[lane], table.size()));
      const int32_t target = table[index[lane]];
      Split* path = nullptr;
      for (Split& known : paths)
        if (known.pc == target) path = &known;
      if (path)
        path->mask |= 1u << lane;
      else
        paths.push_back({target, 1u << lane, op.reconverge});
    }
    if (paths.size() == 1) {
      warp.current.pc = paths[0].pc;
      return true;
    }
    diverge(warp, op.reconverge);
    for (size_t i = 1; i < paths.size(); ++i) warp.stack.push_back(paths[i]);
    warp.current = paths[0];
    return true;
  }

  /// Lands the copies of lanes in `mask` except those of their newest op.immediate groups.
  void wait_for_copies(Warp& warp, const Op& op, uint32_t mask) {
    std::byte* const shared = warp.block->shared.data();
    warp.copies.wait(mask, op.immediate, [&](const auto& entry, uint32_t lanes) {
      const AsyncCopy& copy = entry.work;
      for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        std::memcpy(shared + copy.shared[lane], copy.data + lane * 16, copy.bytes);
      }
      if constexpr (has(hook::landed))
        trace_.landed(warp, Landing{entry.op, lanes, copy.shared, copy.global, copy.copied, copy.bytes,
                                    ptx::Space::shared, ptx::Space::global});
    });
  }

  /// The trace hears of bulk copies that have landed.
  void tell_landed(Block& block) {
    if constexpr (has(hook::landed))
      for (const BulkCopy& copy : block.landed)
        each_landing(copy, [&](const Landing& landing) { trace_.landed(block.warps[copy.warp], landing); });
    block.landed.clear();
  }

  Worker& worker_;
  Trace& trace_;
};

}  // namespace assay::vm
