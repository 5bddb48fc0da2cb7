// run: allocations, launches, blocks over threads.
#include "src/base/vm/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "src/base/numerics/abandon.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/counted_work.h"
#include "src/base/numerics/threads.h"
#include "src/base/vm/branch_trace.h"
#include "src/base/vm/device_heap.h"
#include "src/base/vm/engine.h"
#include "src/base/vm/launch.h"
#include "src/base/vm/opcode.h"

namespace assay::vm {
namespace {

double argument_of(int32_t order) {
  const uint32_t bits =
      order < 0 ? static_cast<uint32_t>(-order) | 0x80000000u : static_cast<uint32_t>(order);
  return std::bit_cast<float>(bits);
}

void merge(std::vector<ArgumentRange>& into, const std::vector<ArgumentRange>& from) {
  into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    into[i].smallest = std::min(into[i].smallest, from[i].smallest);
    into[i].largest = std::max(into[i].largest, from[i].largest);
    into[i].count += from[i].count;
    into[i].nans += from[i].nans;
  }
}

/// What the threads of a launch share. The trap of the lowest block wins, and all blocks below it have run.
struct Progress {
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> trapped{~uint64_t{0}};
  std::mutex mutex;
  std::optional<Trap> trap;
  std::vector<ArgumentRange> ranges;
  std::vector<uint8_t> sides;  ///< of BranchTrace
  uint64_t lane_instructions = 0, instructions = 0;
  std::atomic<uint64_t> spent{0};  ///< the same while it runs
};

template <class Trace>
void run_blocks(const LaunchContext& context, const BlockList& blocks, Progress& progress) {
  Worker worker;
  prepare_worker(worker, context);
  Trace trace;
  if constexpr (requires { trace.sides; }) trace.enter(*context.code);
  Engine<Trace> engine(worker, trace);
  for (uint64_t counted = 0;;) {
    const uint64_t turn = progress.next.fetch_add(1);
    if (turn >= blocks.count) break;
    const uint64_t block = blocks[turn];
    if (block > progress.trapped.load()) break;
    engine.run_block(block);
    const uint64_t spent = progress.spent += worker.lane_instructions - counted;
    counted = worker.lane_instructions;
    if (context.is_abandoned() || spent > context.most_lane_instructions) break;
    if (!worker.block.trap) continue;
    const std::lock_guard lock(progress.mutex);
    if (block < progress.trapped.load()) {
      progress.trapped = block;
      progress.trap = std::move(worker.block.trap);
    }
  }
  const std::lock_guard lock(progress.mutex);
  merge(progress.ranges, worker.ranges);
  if constexpr (requires { trace.sides; }) {
    progress.sides.resize(trace.sides.size());
    for (size_t i = 0; i < trace.sides.size(); ++i) progress.sides[i] |= trace.sides[i];
  }
  progress.lane_instructions += worker.lane_instructions;
  progress.instructions += worker.instructions;
}

void add_exponents(Outcome& outcome, const Code& code, const std::vector<ArgumentRange>& ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    const ArgumentRange& range = ranges[i];
    if (range.count == 0) continue;
    const Op& op = code.ops[static_cast<size_t>(code.exponentials[i])];
    ExponentRange made;
    made.where = where(code, op);
    made.instruction = opcode_of(code, op);
    made.min = range.smallest == INT32_MAX ? 0 : argument_of(range.smallest);
    made.max = range.largest == INT32_MIN ? 0 : argument_of(range.largest);
    made.count = range.count;
    made.nans = range.nans;
    outcome.exponents.push_back(std::move(made));
  }
}

void add_branches(Outcome& outcome, const Code& code, const std::vector<uint8_t>& sides) {
  BranchSides made;
  made.function = code.module->functions[static_cast<size_t>(code.entry)].name;
  for (size_t i = 0; i < code.ops.size(); ++i)
    if (code.ops[i].guarded) made.sides.push_back(i < sides.size() ? sides[i] : 0);
  outcome.branches.push_back(std::move(made));
}

/// Warp instructions after which a warp that may wait for another block's is taken to do so, where blocks do
/// not run together.
constexpr uint64_t patience = uint64_t{1} << 22;

bool may_wait(const PreparedProgram& prepared, const Program& program) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    if (prepared.code(i).spins && prepared.blocks(i).count > 1) return true;
  return false;
}

Outcome run_as(const Program& program, const TensorMap& inputs, const MachineOptions& options, bool* waits,
               std::span<const LiveStorage> storages = {}) {
  PreparedProgram prepared(program, inputs, options, storages);
  prepared.poison_unsure_only();
  Outcome outcome;
  if (waits && may_wait(prepared, program)) *waits = true, prepared.limit_budget(patience);
  outcome.trap = prepared.refused_launch();
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < program.launches.size() && !outcome.trap; ++i) {
    const LaunchContext& context = prepared.enter(i);
    const BlockList blocks = prepared.blocks(i);
    const bool in_order = context.code->global_atomics || prepared.has_pages() || options.order;
    Progress progress;
    on_threads(in_order ? 1 : std::min(threads_or_all(options.threads), blocks.count), [&] {
      if (options.branches)
        run_blocks<BranchTrace>(context, blocks, progress);
      else
        run_blocks<PlainTrace>(context, blocks, progress);
    });
    require_wanted();
    count_work(1, kOfLaunch), count_work(static_cast<double>(progress.instructions), PlainTrace::nanoseconds);
    outcome.trap = std::move(progress.trap);
    outcome.lane_instructions += progress.lane_instructions;
    if (outcome.lane_instructions > context.most_lane_instructions)
      throw OverBudget(fmt::format("{}: more than {} lane-instructions", program.launches[i].function,
                                   context.most_lane_instructions));
    add_exponents(outcome, *context.code, progress.ranges);
    if (options.branches) add_branches(outcome, *context.code, progress.sides);
  }
  outcome.printed = std::move(prepared.calls().printed), outcome.not_printed = prepared.calls().not_printed;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (HeapOfProcess* const process = HeapOfProcess::current();
      process && !prepared.calls().heap.bytes.empty())
    process->leave(std::move(prepared.calls().heap));
  if (outcome.trap) return outcome;
  outcome.changed_inputs = prepared.changed(inputs), outcome.changed_variables = prepared.changed_variables();
  outcome.outputs = prepared.take_outputs();
  return outcome;
}

}  // namespace

namespace {
ExecutedBy engine_named(const std::string& name) {
  if (name == "interpreter") return ExecutedBy::interpreter;
  if (name == "compiled") return ExecutedBy::compiled;
  if (name == "auto") return ExecutedBy::by_size;
  throw BadInput("there is no engine '" + name + "': choose auto, interpreter or compiled");
}
std::atomic<ExecutedBy>& chosen_engine() {
  static std::atomic<ExecutedBy> chosen = [] {
    const char* const wish = std::getenv("ASSAY_ENGINE");
    return wish ? engine_named(wish) : ExecutedBy::by_size;
  }();
  return chosen;
}
}  // namespace

ExecutedBy default_engine() {
  return chosen_engine();
}
void choose_engine(const std::string& name) {
  chosen_engine() = engine_named(name);
}

Outcome run(const Program& program, const TensorMap& inputs, const MachineOptions& options) {
  bool waits = false;
  Outcome outcome = run_as(program, inputs, options, options.together ? nullptr : &waits);
  if (!waits || !outcome.trap || outcome.trap->kind != TrapKind::hang) return outcome;
  uint64_t warps = 1;  // that share the budget of one, or a hang would take as many times as long
  for (const Launch& launch : program.launches)
    warps = std::max(warps, uint64_t{count_of(launch.grid)} * warps_of(launch, {1, 1, 1}));
  MachineOptions together = options;
  together.together = true;
  if (together.instruction_budget == 0)
    together.instruction_budget = std::max(patience, (uint64_t{1} << 33) / warps);
  outcome = run_as(program, inputs, together, nullptr);
  outcome.together = true;
  return outcome;
}

Outcome run_in_place(const Program& program, std::span<const LiveStorage> storages,
                     const MachineOptions& options) {
  MachineOptions once = options;
  once.together = true;
  return run_as(program, {}, once, nullptr, storages);
}

}  // namespace assay::vm
