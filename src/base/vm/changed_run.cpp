#include "src/base/vm/changed_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/numerics/abandon.h"
#include "src/base/numerics/counted_work.h"
#include "src/base/numerics/format.h"
#include "src/base/vm/block_graph.h"
#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

/// A changed warp may take so many times the instructions of the longest one, and so many more: some never
/// end.
constexpr uint64_t kBudgetFactor = 2, kLeastBudget = 4096;
/// What a launch takes whose worker is there already, a byte that is put back or compared, and an output's
/// element, in nanoseconds (counted_work.h).
constexpr double kOfChangedLaunch = 2'000, kOfByte = 0.1, kOfElement = 10;
/// Of all buffers together, kept once for each launch.
constexpr uint64_t kMostBytes = uint64_t{1} << 24;

size_t cell_bytes(Cell cell) {
  return cell == Cell::mask ? 4 : cell == Cell::wide ? 256 : 128;
}

/// 1.0 in a type's bits; the integer 1 of what is no float.
uint64_t one_of(ptx::Type type) {
  switch (type) {
    case ptx::Type::f16:
      return 0x3c00;
    case ptx::Type::f16x2:
      return 0x3c003c00;
    case ptx::Type::bf16:
      return 0x3f80;
    case ptx::Type::bf16x2:
      return 0x3f803f80;
    case ptx::Type::tf32:
    case ptx::Type::f32:
      return std::bit_cast<uint32_t>(1.0f);
    case ptx::Type::f64:
      return std::bit_cast<uint64_t>(1.0);
    default:
      return 1;
  }
}

uint64_t negative_of(uint64_t bits, ptx::Type type) {
  switch (type) {
    case ptx::Type::f16:
    case ptx::Type::bf16:
      return bits ^ 0x8000;
    case ptx::Type::f16x2:
    case ptx::Type::bf16x2:
      return bits ^ 0x80008000;
    case ptx::Type::tf32:
    case ptx::Type::f32:
      return bits ^ 0x80000000;
    case ptx::Type::f64:
      return bits ^ uint64_t { 1 } << 63;
    default:
      return 0 - bits;
  }
}

uint64_t changed(uint64_t bits, const OpChange& change, ptx::Type type, uint64_t step) {
  switch (change.instead) {
    case Instead::zero:
      return 0;
    case Instead::one:
      return one_of(type);
    case Instead::negated:
      return negative_of(bits, type);
    case Instead::next:
      return bits + step;
    case Instead::previous:
      return bits - step;
    case Instead::half:
      return bits >> 1;
    case Instead::twice:
      return bits << 1;
    case Instead::another:
      break;
  }
  return bits;
}

/// Lanes of `mask` of one cell.
void put(Warp& warp, Slot slot, Cell cell, ptx::Type type, uint64_t step, const OpChange& change,
         uint32_t mask) {
  if (cell == Cell::mask) {
    const uint32_t now = warp.mask(slot);
    const uint32_t made = change.instead == Instead::zero      ? 0
                          : change.instead == Instead::one     ? ~0u
                          : change.instead == Instead::another ? warp.mask(change.by)
                                                               : ~now;
    warp.mask(slot) = (now & ~mask) | (made & mask);
    return;
  }
  const bool another = change.instead == Instead::another;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    if (cell == Cell::wide)
      warp.wide(slot)[lane] =
          another ? warp.wide(change.by)[lane] : changed(warp.wide(slot)[lane], change, type, step);
    else
      warp.word(slot)[lane] = another
                                  ? warp.word(change.by)[lane]
                                  : static_cast<uint32_t>(changed(warp.word(slot)[lane], change, type, step));
  }
}

struct CountingTrace : PlainTrace {
  static constexpr unsigned hooks = hook::guarded | hook::before | hook::end_block;

  CountingTrace(const Code& code, ChangedRuns::Executed& to) : ops(code.ops.data()), executed(to) {
    executed.times.resize(code.ops.size());
    executed.held.resize(code.ops.size()), executed.failed.resize(code.ops.size());
  }
  size_t index(const Op& op) const { return static_cast<size_t>(&op - ops); }
  void guarded(const Warp& warp, const Op& op, uint32_t active) {
    const uint32_t guard = op.guard_negated ? ~warp.mask(op.guard) : warp.mask(op.guard);
    executed.held[index(op)] |= (guard & active) != 0;
    executed.failed[index(op)] |= (~guard & active) != 0;
  }
  void before(Warp&, const Op& op, uint32_t) { ++executed.times[index(op)]; }
  void end_block(Block& block) {
    for (const Warp& warp : block.warps) longest = std::max(longest, warp.executed);
  }

  const Op* ops;
  ChangedRuns::Executed& executed;
  uint64_t longest = 0;
};

/// Registers hold what stands instead while the op runs, and what they held again after it.
class ChangingTrace : public PlainTrace {
 public:
  static constexpr unsigned hooks = hook::guarded | hook::before | hook::after | hook::end_block;
  static constexpr double nanoseconds = 35;

  ChangingTrace(const Code& code, std::span<const OpChange> changes)
      : code_(code), changes_(changes), first_(code.ops.size(), -1), next_(changes.size(), -1) {
    for (size_t i = changes.size(); i-- > 0;)
      next_[i] = first_[changes[i].op], first_[changes[i].op] = static_cast<int32_t>(i);
  }

  void guarded(Warp& warp, const Op& op, uint32_t) {
    restore();
    each(op, OpChange::Of::guard, [&](const OpChange& change) {
      keep(warp, op.guard, Cell::mask);
      put(warp, op.guard, Cell::mask, ptx::Type::pred, 0, change, ~0u);
      const bool fixed = change.instead == Instead::zero || change.instead == Instead::one;
      if (op.guard_negated && fixed) warp.mask(op.guard) = ~warp.mask(op.guard);
    });
  }
  void before(Warp& warp, const Op& op, uint32_t) {
    if (&op != guarded_) restore();
    each(op, OpChange::Of::source, [&](const OpChange& change) {
      const Signature& signature = code_.signature(op);
      const Use& use = signature.reads[change.source];
      uint64_t step = 1;
      if (use.purpose == Purpose::address && !signature.accesses.empty())
        step = std::max<uint64_t>(1, signature.accesses[0].bytes);
      keep(warp, use.slot, use.cell);
      put(warp, use.slot, use.cell, use.type, step, change, ~0u);
    });
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    for (const Use& use : code_.signature(op).writes)
      for (Kept& kept : kept_)  // what the op wrote stays
        if (kept.slot == use.slot) {
          std::byte now[256];
          std::memcpy(now, warp.file + use.slot, cell_bytes(use.cell));
          std::memcpy(warp.file + use.slot, kept.bytes, cell_bytes(use.cell));
          blend(warp.file + use.slot, now, use.cell, mask);
          kept.slot = no_slot;
        }
    restore();
    each(op, OpChange::Of::result, [&](const OpChange& change) {
      const Use& use = code_.signature(op).writes[0];
      put(warp, use.slot, use.cell, use.type, 1, change, mask);
    });
  }

  void end_block(Block&) { restore(); }  // cells of literals are never written again

 private:
  struct Kept {
    Warp* warp;
    Slot slot;
    Cell cell;
    std::byte bytes[256];
  };
  template <class Make>
  void each(const Op& op, OpChange::Of of, Make make) {
    for (int32_t i = first_[code_.index(op)]; i >= 0; i = next_[static_cast<size_t>(i)])
      if (changes_[static_cast<size_t>(i)].of == of) make(changes_[static_cast<size_t>(i)]);
    guarded_ = of == OpChange::Of::guard ? &op : nullptr;
  }
  void keep(Warp& warp, Slot slot, Cell cell) {
    for (const Kept& kept : kept_)
      if (kept.slot == slot) return;
    Kept& kept = kept_.emplace_back();
    kept.warp = &warp, kept.slot = slot, kept.cell = cell;
    std::memcpy(kept.bytes, warp.file + slot, cell_bytes(cell));
  }
  void restore() {
    for (const Kept& kept : kept_)
      if (kept.slot != no_slot) std::memcpy(kept.warp->file + kept.slot, kept.bytes, cell_bytes(kept.cell));
    kept_.clear();
  }
  static void blend(std::byte* to, const std::byte* from, Cell cell, uint32_t mask) {
    if (cell == Cell::mask) {
      uint32_t old = 0, made = 0;
      std::memcpy(&old, to, 4), std::memcpy(&made, from, 4);
      old = (old & ~mask) | (made & mask);
      std::memcpy(to, &old, 4);
      return;
    }
    const size_t width = cell == Cell::wide ? 8 : 4;
    for (size_t lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1) std::memcpy(to + lane * width, from + lane * width, width);
  }

  const Code& code_;
  const std::span<const OpChange> changes_;
  std::vector<int32_t> first_, next_;  ///< lists of changes by op; -1: ends
  std::vector<Kept> kept_;             ///< of the op at hand
  const Op* guarded_ = nullptr;        ///< whose guard is changed
};

}  // namespace

using Bytes = std::vector<std::vector<std::byte>>;  ///< of all buffers

/// Blocks that run, and what stands in memory after them, unchanged, in the first launch of a run. What
/// stands there before it all blocks have left: a change may read what the program as it is does not.
struct ChangedRuns::Part {
  std::vector<std::vector<uint64_t>> blocks;  ///< by launch
  std::vector<Bytes> after;                   ///< by launch, of the watched blocks
};

struct ChangedRuns::State {
  State(const Program& p, const TensorMap& tensors, const MachineOptions& machine)
      : program(p), inputs(tensors), options(machine), prepared(program, inputs, options) {}

  Program program;
  TensorMap inputs;
  MachineOptions options;
  PreparedProgram prepared;
  std::vector<size_t> first_of;  ///< by launch: the first one of its code
  Part whole, watched;
  std::vector<Bytes> kept;  ///< what stands in memory before each launch, where all blocks run, unchanged
  std::map<size_t, Worker> workers;  ///< by launch: register files are large, and made once

  /// False: trapped.
  template <IsTrace Trace>
  bool run(size_t launch, const std::vector<uint64_t>& blocks, Trace& trace) {
    const LaunchContext& context = prepared.enter(launch);
    if (blocks.empty()) return true;
    const auto [worker, is_new] = workers.try_emplace(launch);
    if (is_new) prepare_worker(worker->second, context);
    Block& block = worker->second.block;
    block.trap.reset();
    Engine<Trace> engine(worker->second, trace);
    worker->second.instructions = 0;
    for (size_t i = 0; i < blocks.size() && !block.trap; ++i) engine.run_block(blocks[i]);
    count_work(1, kOfChangedLaunch);
    count_work(static_cast<double>(worker->second.instructions), Trace::nanoseconds);
    require_wanted();
    return !block.trap;
  }

  template <class Visit>
  void each_buffer(Visit visit) const {
    for (const Allocation& a : prepared.memory().allocations())
      if (is_buffer(a.base)) visit(a);
  }
  Bytes now() const {
    Bytes all;
    each_buffer([&](const Allocation& a) { all.emplace_back(a.data, a.data + a.bytes); });
    return all;
  }
  /// All buffers hold the same.
  bool stands_as(const Bytes& before) const {
    size_t i = 0;
    bool same = true;
    each_buffer([&](const Allocation& a) {
      const std::vector<std::byte>& bytes = before[i++];
      if (same) count_work(static_cast<double>(bytes.size()), kOfByte);
      same = same && (bytes.empty() || std::memcmp(a.data, bytes.data(), bytes.size()) == 0);
    });
    return same;
  }
  void restore(const Bytes& before) {
    size_t i = 0;
    each_buffer([&](const Allocation& a) {
      const std::vector<std::byte>& bytes = before[i++];
      count_work(static_cast<double>(bytes.size()), kOfByte);
      if (!bytes.empty()) std::memcpy(a.data, bytes.data(), bytes.size());
    });
  }
};

ChangedRuns::~ChangedRuns() = default;

ChangedRuns::ChangedRuns(const Program& program, const TensorMap& inputs, const MachineOptions& options)
    : state_(std::make_unique<State>(program, inputs, options)) {
  State& s = *state_;
  if (s.prepared.has_pages() || s.prepared.refused_launch()) return;
  uint64_t bytes = 0, longest = 0;
  s.each_buffer([&](const Allocation& a) { bytes += a.bytes; });
  if (bytes > kMostBytes) return;
  executed_.resize(program.launches.size());
  Part whole;
  std::vector<Bytes> kept;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    kept.push_back(s.now());
    const BlockList blocks = s.prepared.blocks(i);
    std::vector<uint64_t>& all = whole.blocks.emplace_back();
    for (uint64_t turn = 0; turn < blocks.count; ++turn) all.push_back(blocks[turn]);
    size_t first = i;
    for (size_t j = i; j-- > 0;)
      if (&code(j) == &code(i)) first = j;
    s.first_of.push_back(first);
    CountingTrace trace(code(i), executed_[first]);
    if (run_traced(s.prepared, i, trace).trap) return;
    longest = std::max(longest, trace.longest);
  }
  unchanged_ = outputs();
  can_run_ = true;
  MachineOptions bounded = options;
  bounded.instruction_budget = kBudgetFactor * longest + kLeastBudget;
  auto first_of = std::move(s.first_of);
  state_ = std::make_unique<State>(program, inputs, bounded);
  state_->whole = std::move(whole), state_->kept = std::move(kept), state_->first_of = std::move(first_of);
}

std::vector<OutputElement> ChangedRuns::watch(const std::vector<OutputElement>& elements) {
  State& s = *state_;
  s.watched = {};
  if (!can_run_ || elements.empty()) return {};
  const BlockGraph graph(s.program, s.inputs, s.options);
  if (graph.trapped()) return {};
  const std::vector<ProgramOutput>& program = s.program.outputs;
  std::vector<BlockSet> behind;
  for (const OutputElement& element : elements) {
    const auto output = std::find_if(program.begin(), program.end(),
                                     [&](const ProgramOutput& o) { return o.name == element.output; });
    const auto bytes = static_cast<uint64_t>(format(output->dtype).bytes);
    const uint64_t address = s.prepared.memory().find(output->name)->address();
    behind.push_back(graph.behind(address + bytes * static_cast<uint64_t>(element.flat)));
  }
  const BlockSet& fewest =
      *std::min_element(behind.begin(), behind.end(),
                        [](const BlockSet& a, const BlockSet& b) { return a.count() < b.count(); });
  if (fewest.count() == 0 || fewest.count() == graph.blocks()) return {};
  for (size_t i = 0; i < launches(); ++i) {
    s.restore(s.kept[i]);
    PlainTrace plain;
    if (!s.run(i, fewest.of_launch[i], plain)) return {};
    s.watched.after.push_back(s.now());
  }
  s.watched.blocks = fewest.of_launch;
  std::vector<OutputElement> known;
  for (size_t i = 0; i < elements.size(); ++i)
    if (behind[i].of_launch == fewest.of_launch) known.push_back(elements[i]);
  return known;
}

size_t ChangedRuns::launches() const {
  return state_->program.launches.size();
}
const Code& ChangedRuns::code(size_t launch) const {
  return state_->prepared.code(launch);
}

std::optional<RealOutputs> ChangedRuns::run(const Changes& changes) {
  return run(changes, state_->whole);
}
std::optional<RealOutputs> ChangedRuns::run_watched(const Changes& changes) {
  return run(changes, state_->watched);
}

std::optional<RealOutputs> ChangedRuns::run(const Changes& changes, const Part& part) {
  if (!can_run_ || changes.empty()) return std::nullopt;
  State& s = *state_;
  const size_t begin = changes.begin()->first;
  s.restore(s.kept[begin]);
  for (size_t i = begin; i < launches(); ++i) {
    const auto here = changes.find(s.first_of[i]);
    bool ended = false;
    if (here == changes.end()) {
      PlainTrace plain;
      ended = s.run(i, part.blocks[i], plain);
    } else {
      ChangingTrace changing(code(i), here->second);
      ended = s.run(i, part.blocks[i], changing);
    }
    if (!ended) return std::nullopt;
    const bool others = std::any_of(s.first_of.begin() + static_cast<ptrdiff_t>(i) + 1, s.first_of.end(),
                                    [&](size_t first) { return changes.contains(first); });
    if (others || i + 1 == launches()) continue;
    const Bytes* unchanged = &part == &s.whole ? &s.kept[i + 1] : i == begin ? &part.after[i] : nullptr;
    if (unchanged && s.stands_as(*unchanged)) return unchanged_;
  }
  return outputs();
}

RealOutputs ChangedRuns::outputs() const {
  RealOutputs all;
  for (const ProgramOutput& output : state_->program.outputs) {
    const std::optional<Place> place = state_->prepared.memory().find(output.name);
    if (!place) continue;
    Tensor t(output.name, output.dtype, output.axes);
    std::memcpy(t.data.data(), place->allocation->data + place->offset, t.data.size());
    std::vector<double>& values = all[output.name];
    for (int64_t i = 0; i < t.size(); ++i) values.push_back(t.value(i));
    count_work(static_cast<double>(t.size()), kOfElement);
  }
  return all;
}

}  // namespace assay::vm
