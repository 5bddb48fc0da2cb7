// The blocks of one launch under a trace, one after the other on this thread.
#pragma once
#include <optional>
#include <utility>

#include "src/base/numerics/abandon.h"
#include "src/base/numerics/counted_work.h"
#include "src/base/vm/engine.h"
#include "src/base/vm/launch.h"

namespace assay::vm {

struct TracedLaunch {
  std::optional<Trap> trap;  ///< of the first block that trapped
  uint64_t lane_instructions = 0;
  uint64_t instructions = 0;  ///< of warps
};

/// The blocks that next(trapped) gives, until it gives none; `trapped`: one of the blocks so far. The context
/// is that of the launch, as entered last.
template <IsTrace Trace, class Next>
TracedLaunch run_each(const LaunchContext& context, Trace& trace, const Next& next) {
  TracedLaunch result;
  Worker worker;
  prepare_worker(worker, context);
  Engine<Trace> engine(worker, trace);
  while (const std::optional<uint64_t> block = next(result.trap.has_value())) {
    engine.run_block(*block);
    if (context.is_abandoned()) throw Abandoned();
    if (worker.block.trap && !result.trap) result.trap = std::move(worker.block.trap);
  }
  result.lane_instructions = worker.lane_instructions, result.instructions = worker.instructions;
  count_work(1, kOfLaunch), count_work(static_cast<double>(worker.instructions), Trace::nanoseconds);
  return result;
}

/// Until ends(trapped) holds after a block.
template <IsTrace Trace, class Ends>
TracedLaunch run_traced(const LaunchContext& context, const BlockList& blocks, Trace& trace,
                        const Ends& ends) {
  uint64_t turn = 0;
  return run_each(context, trace, [&](bool trapped) {
    return turn < blocks.count && !ends(trapped) ? std::optional(blocks[turn++]) : std::nullopt;
  });
}

/// Until one traps.
template <IsTrace Trace>
TracedLaunch run_traced(const LaunchContext& context, const BlockList& blocks, Trace& trace) {
  return run_traced(context, blocks, trace, [](bool trapped) { return trapped; });
}

/// Launches that have nothing to be told on the way.
template <IsTrace Trace>
TracedLaunch run_traced(PreparedProgram& prepared, size_t launch, Trace& trace) {
  const LaunchContext& context = prepared.enter(launch);
  return run_traced(context, prepared.blocks(launch), trace);
}

}  // namespace assay::vm
