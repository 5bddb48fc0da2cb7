#include "src/base/vm/store_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <variant>

#include "src/base/numerics/counted_work.h"
#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

/// Of a run that is being forced: so many times the instructions that the longest warp took unforced.
constexpr uint64_t kBudgetFactor = 4, kLeastBudget = 4096;

/// Into global or shared memory; a copy that lands later into shared memory alone.
bool writes_memory(const Code& code, const Op& op, bool shared) {
  const Signature& signature = code.signature(op);
  if (signature.flow() == Flow::copy_async) return shared && op.element_bytes > 0;
  const ptx::Space space = shared ? ptx::Space::shared : ptx::Space::global;
  return std::any_of(signature.accesses.begin(), signature.accesses.end(), [&](const Access& access) {
    return access.direction != Access::Direction::read &&
           (access.space == space || access.space == ptx::Space::generic);
  });
}

/// Where each lane would store; in shared memory as offsets, elsewhere beyond them.
void store_addresses(const Warp& warp, const Op& op, bool shared, uint64_t (&address)[32]) {
  if (warp.block->context->code->signature(op).flow() == Flow::copy_async)
    return lane_addresses(warp, op.s[1], op.address2_wide, op.offset2, address);
  lane_addresses(warp, op.s[0], op.address_wide, op.offset, address);
  if (shared && op.space == ptx::Space::generic)
    for (uint64_t& at : address) at -= shared_window;
}

uint32_t bytes_of(const Op& op) {
  return uint32_t{op.element_bytes} * std::max<uint32_t>(op.vector_length, 1);
}

PlacedInstruction placed(const Warp& warp, const Op& op, int lane) {
  const LaunchContext& context = *warp.block->context;
  const ThreadPlace at = place_of(warp, lane);
  return {context.code->module, context.launch_index, op.function, op.instruction, at.block, at.thread};
}

struct Range {
  uint64_t base = 0, bytes = 0;
  bool shared = false;
};

Range range_of(const PreparedProgram& prepared, const std::string& buffer) {
  const std::optional<Place> place = prepared.memory().find(buffer);
  return place ? Range{place->address(), place->bytes} : Range{};
}

/// Shows stores into a range; counts the instructions of the longest warp; notes the sides of guards and
/// which ops stored there.
struct StoreTrace : PlainTrace {
  static constexpr unsigned hooks = hook::guarded | hook::before | hook::end_block;

  StoreTrace(const Code& code, Range to, const std::function<void(const StoreEvent&)>& visit)
      : range(to),
        show(visit),
        ops(code.ops.data()),
        held(code.ops.size()),
        failed(code.ops.size()),
        stores(code.ops.size()) {}

  void guarded(const Warp& warp, const Op& op, uint32_t active) {
    const uint32_t guard = op.guard_negated ? ~warp.mask(op.guard) : warp.mask(op.guard);
    held[index(op)] |= (guard & active) != 0;
    failed[index(op)] |= (~guard & active) != 0;
  }
  void before(Warp& warp, const Op& op, uint32_t mask) {
    if (!writes_memory(*warp.block->context->code, op, range.shared)) return;
    uint64_t address[32];
    store_addresses(warp, op, range.shared, address);
    for (int lane = 0; lane < 32; ++lane) {
      if (!(mask >> lane & 1) || address[lane] - range.base >= range.bytes) continue;
      stores[index(op)] = true;
      if (!show) continue;
      StoreEvent event;
      event.at = placed(warp, op, lane);
      event.offset = address[lane] - range.base, event.bytes = bytes_of(op);
      show(event);
    }
  }
  void end_block(Block& block) {
    for (const Warp& warp : block.warps) longest = std::max(longest, warp.executed);
  }
  size_t index(const Op& op) const { return static_cast<size_t>(&op - ops); }

  Range range;
  std::function<void(const StoreEvent&)> show;
  const Op* ops;
  std::vector<char> held, failed, stores;  ///< by op: whether
  uint64_t longest = 0;
};

/// Which thread of a launch stored at an offset of the buffer, the first; so many are kept.
constexpr size_t kMostWriters = size_t{1} << 20;
using Writers = std::map<uint64_t, std::array<uint32_t, 6>>;

std::array<uint32_t, 6> thread_of(const PlacedInstruction& at) {
  return {at.block[0], at.block[1], at.block[2], at.thread[0], at.thread[1], at.thread[2]};
}

/// Turns one guard around for the lanes that went `when_held`'s way, until a store reaches for the bytes. The
/// predicate register itself is left as it was: other guards read it too.
struct ForcingTrace : PlainTrace {
  static constexpr unsigned hooks = hook::begin_block | hook::guarded | hook::before;
  static constexpr bool stops = true;

  void begin_block(Block&) { met = {}, turned_in = nullptr, overwrites = false; }
  void guarded(Warp& warp, const Op& op, uint32_t active) {
    restore(op);
    if (&op != forced) return;
    const uint32_t holds = op.guard_negated ? ~warp.mask(op.guard) : warp.mask(op.guard);
    turned = active & (when_held ? holds : ~holds);
    if (!turned) return;
    warp.mask(op.guard) ^= turned;
    turned_in = &warp, steps = 0;
    met = placed(warp, op, std::countr_zero(turned));
  }
  void before(Warp& warp, const Op& op, uint32_t mask) {
    restore(op);
    if (met.launch < 0) return;
    ++steps;
    if (!writes_memory(*warp.block->context->code, op, shared)) return;
    uint64_t address[32];
    store_addresses(warp, op, shared, address);
    for (int lane = 0; lane < 32; ++lane) {
      if (!(mask >> lane & 1)) continue;
      const bool meets = address[lane] < first + bytes && address[lane] + bytes_of(op) > first;
      if (!meets) overwrites |= is_of_another(warp, op, lane, address[lane]);
      if (!meets) continue;
      found = {met, placed(warp, op, lane), steps, overwrites};
      found->guard.block = found->store.block, found->guard.thread = found->store.thread;
      warp.block->trap.emplace();  // nothing after it matters
      return;
    }
  }

  const Op* forced = nullptr;
  bool when_held = false;
  uint64_t first = 0;
  uint32_t bytes = 0;
  uint64_t base = 0;                 ///< of the buffer
  bool shared = false;               ///< it is a block's shared memory
  const Writers* writers = nullptr;  ///< of the launch as it is
  std::optional<WithheldStore> found;

 private:
  bool is_of_another(const Warp& warp, const Op& op, int lane, uint64_t address) const {
    const auto own = writers->find(address - base);
    return own != writers->end() && own->second != thread_of(placed(warp, op, lane));
  }
  /// Before the instruction after the forced one.
  void restore(const Op& op) {
    if (!turned_in || &op == forced) return;
    turned_in->mask(forced->guard) ^= turned;
    turned_in = nullptr;
  }

  PlacedInstruction met;
  Warp* turned_in = nullptr;  ///< whose predicate is the other way at the moment
  uint32_t turned = 0;
  uint64_t steps = 0;
  bool overwrites = false;
};

bool takes(const Launch& launch, const std::string& buffer) {
  return std::any_of(launch.arguments.begin(), launch.arguments.end(),
                     [&](const Argument& argument) { return argument.refers_to(buffer); });
}

struct Candidate {
  size_t launch = 0, op = 0;
  bool when_held = false;
  size_t distance = 0;  ///< in ops, from the nearest store into the buffer, or into any where there is none
};

void add_candidates(const StoreTrace& trace, const Code& code, size_t launch,
                    std::vector<Candidate>& candidates) {
  std::vector<size_t> stores;
  for (size_t i = 0; i < code.ops.size(); ++i)
    if (trace.stores[i]) stores.push_back(i);
  for (size_t i = 0; i < code.ops.size() && stores.empty(); ++i)
    if (writes_memory(code, code.ops[i], trace.range.shared)) stores.push_back(i);
  if (stores.empty()) return;
  for (size_t i = 0; i < code.ops.size(); ++i) {
    size_t distance = SIZE_MAX;
    for (const size_t at : stores) distance = std::min(distance, at > i ? at - i : i - at);
    if (trace.failed[i]) candidates.push_back({launch, i, false, distance});
    if (trace.held[i]) candidates.push_back({launch, i, true, distance});
  }
}

struct Survey {
  std::vector<Candidate> candidates;  ///< every guard of the launches that take the buffer, nearest first
  std::vector<Writers> writers;       ///< of each launch
  uint64_t longest = 0;               ///< instructions of the longest warp of all
};

Survey survey(const Program& program, const TensorMap& inputs, const MachineOptions& options,
              const std::string& buffer) {
  PreparedProgram prepared(program, inputs, options);
  const Range range = range_of(prepared, buffer);
  Survey result;
  result.writers.resize(program.launches.size());
  for (size_t i = 0; i < program.launches.size(); ++i) {
    Writers& writers = result.writers[i];
    StoreTrace trace(prepared.code(i), range, [&](const StoreEvent& event) {
      if (writers.size() < kMostWriters) writers.emplace(event.offset, thread_of(event.at));
    });
    const bool whole = !run_traced(prepared, i, trace).trap;
    result.longest = std::max(result.longest, trace.longest);
    if (takes(program.launches[i], buffer)) add_candidates(trace, prepared.code(i), i, result.candidates);
    if (!whole) break;
  }
  std::stable_sort(result.candidates.begin(), result.candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  return result;
}

}  // namespace

bool visit_stores(const Program& program, const TensorMap& inputs, const MachineOptions& options,
                  const std::string& buffer, const std::function<void(const StoreEvent&)>& visit) {
  PreparedProgram prepared(program, inputs, options);
  if (prepared.refused_launch()) return false;
  const Range range = range_of(prepared, buffer);
  for (size_t i = 0; i < program.launches.size(); ++i) {
    StoreTrace trace(prepared.code(i), range, visit);
    if (run_traced(prepared, i, trace).trap) return false;
  }
  return true;
}

namespace {

/// The candidates one after the other: `run` replays one under the trace, which is given the rest.
template <class Run>
std::vector<WithheldStore> first_met(const std::vector<Candidate>& candidates,
                                     const StoreSearchLimits& limits, const Run& run) {
  const double start = counted_seconds();
  std::vector<WithheldStore> found;
  for (const Candidate& candidate : candidates) {
    if (found.size() >= limits.found || counted_seconds() - start > limits.seconds) break;
    ForcingTrace trace;
    trace.when_held = candidate.when_held;
    run(candidate, trace);
    if (trace.found) found.push_back(*trace.found);
  }
  std::stable_sort(found.begin(), found.end(), [](const WithheldStore& a, const WithheldStore& b) {
    return std::tuple(a.overwrites, a.steps) < std::tuple(b.overwrites, b.steps);
  });
  return found;
}

MachineOptions forced(MachineOptions options, uint64_t longest) {
  options.instruction_budget = std::max(kLeastBudget, kBudgetFactor * longest);
  return options;
}

/// The launches before one, then of that one a block.
template <class Trace>
void run_one_block(PreparedProgram& prepared, const SharedBytes& place, Trace& trace) {
  PlainTrace plain;
  for (int32_t i = 0; i < place.launch; ++i) run_traced(prepared, static_cast<size_t>(i), plain);
  const LaunchContext& context = prepared.enter(static_cast<size_t>(place.launch));
  const auto& grid = context.launch->grid;
  std::optional<uint64_t> block =
      place.block[0] + uint64_t{grid[0]} * (place.block[1] + uint64_t{grid[1]} * place.block[2]);
  run_each(context, trace, [&](bool) { return std::exchange(block, std::nullopt); });
}

struct SharedSurvey {
  std::vector<Candidate> candidates;
  Writers writers;
  std::optional<PlacedInstruction> writer;  ///< of one of the bytes
  uint64_t longest = 0;
};

std::optional<SharedSurvey> survey(const Program& program, const TensorMap& inputs,
                                   const MachineOptions& options, const SharedBytes& place) {
  PreparedProgram prepared(program, inputs, options);
  const auto launch = static_cast<size_t>(place.launch);
  if (prepared.enter(launch).cluster != std::array<uint32_t, 3>{1, 1, 1}) return std::nullopt;
  SharedSurvey result;
  StoreTrace trace(prepared.code(launch), {0, shared_window, true}, [&](const StoreEvent& event) {
    result.writers.emplace(event.offset, thread_of(event.at));
    if (event.offset < place.offset + place.bytes && event.offset + event.bytes > place.offset &&
        !result.writer)
      result.writer = event.at;
  });
  run_one_block(prepared, place, trace);
  result.longest = trace.longest;
  add_candidates(trace, prepared.code(launch), launch, result.candidates);
  std::stable_sort(result.candidates.begin(), result.candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  return result;
}

}  // namespace

std::vector<WithheldStore> find_withheld_stores(const Program& program, const TensorMap& inputs,
                                                const MachineOptions& options, const std::string& buffer,
                                                uint64_t offset, uint32_t bytes,
                                                const StoreSearchLimits& limits) {
  const Survey surveyed = survey(program, inputs, options, buffer);
  const MachineOptions forced_options = forced(options, surveyed.longest);
  return first_met(surveyed.candidates, limits, [&](const Candidate& candidate, ForcingTrace& trace) {
    PreparedProgram prepared(program, inputs, forced_options);
    PlainTrace plain;
    for (size_t i = 0; i < candidate.launch; ++i) run_traced(prepared, i, plain);
    trace.forced = &prepared.code(candidate.launch).ops[candidate.op];
    trace.base = range_of(prepared, buffer).base;
    trace.first = trace.base + offset, trace.bytes = bytes;
    trace.writers = &surveyed.writers[candidate.launch];
    const LaunchContext& context = prepared.enter(candidate.launch);
    run_traced(context, prepared.blocks(candidate.launch), trace,
               [&](bool) { return trace.found.has_value(); });
  });
}

std::optional<PlacedInstruction> store_into(const Program& program, const TensorMap& inputs,
                                            const MachineOptions& options, const SharedBytes& place) {
  const auto surveyed = survey(program, inputs, options, place);
  return surveyed ? surveyed->writer : std::nullopt;
}

std::vector<WithheldStore> find_withheld_stores(const Program& program, const TensorMap& inputs,
                                                const MachineOptions& options, const SharedBytes& place,
                                                const StoreSearchLimits& limits) {
  const auto surveyed = survey(program, inputs, options, place);
  if (!surveyed) return {};
  const MachineOptions forced_options = forced(options, surveyed->longest);
  return first_met(surveyed->candidates, limits, [&](const Candidate& candidate, ForcingTrace& trace) {
    PreparedProgram prepared(program, inputs, forced_options);
    trace.forced = &prepared.code(candidate.launch).ops[candidate.op];
    trace.shared = true, trace.first = place.offset, trace.bytes = place.bytes;
    trace.writers = &surveyed->writers;
    run_one_block(prepared, place, trace);
  });
}

}  // namespace assay::vm
