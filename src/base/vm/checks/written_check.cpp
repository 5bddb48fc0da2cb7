// Facts of the ops, guards, sinks and the judgement of the outputs.
#include "src/base/vm/checks/written_check.h"

#include <algorithm>
#include <bit>
#include <map>

#include "src/base/ptx/type.h"
#include "src/base/vm/device_calls.h"

namespace assay::vm {
namespace {

#define UNWRITTEN \
  "{element}, never written, {other_access} at {other} by {other_thread}, {access} {opcode} at {at}"
constexpr CheckSentence unwritten_branch{CheckKind::unwritten_branch, UNWRITTEN},
    unwritten_address{CheckKind::unwritten_address, UNWRITTEN};
#undef UNWRITTEN
#define SPOILED                                                                              \
  "{count} of {size} elements of {name}, first {element}, depend on {what}, never written, " \
  "{access} at {at} by {thread}"
constexpr CheckSentence unwritten_output{CheckKind::unwritten_output, SPOILED},
    unwritten_tensor_core{CheckKind::unwritten_tensor_core, SPOILED ", an operand of {through}"},
    never_written{
        CheckKind::never_written,
        "{count} of {size} elements of {name} {shape} were never written, from {element} to {last}"};
#undef SPOILED

}  // namespace

uint8_t WrittenCheck::states(const Areas::Area& area, uint64_t offset, uint64_t bytes) {
  uint8_t all = written;
  for (uint64_t i = 0; i < bytes; ++i) {
    const auto [cells, at] = Areas::seen(area, offset + i);
    all |= cells ? (*cells)[at] : area.blank;
  }
  return all;
}

decltype(WrittenFacts::pass) WrittenCheck::pass_of(const Op& op, const Signature& signature) {
  using ptx::Operation;
  using Check = WrittenCheck;
  const Operation operation = signature.form.operation;
  const bool of_predicates = signature.meaning->result == ptx::Type::pred;
  if (op.row->mask && signature.flow() == Flow::comparison) return &Check::compare;
  if (op.d == no_slot) return nullptr;
  switch (signature.flow()) {
    case Flow::none:
      return &Check::forget;
    case Flow::vote:
      return &Check::vote;
    case Flow::logic:
      if (!of_predicates) return &Check::by_byte;
      return operation == Operation::and_ || operation == Operation::or_ ? &Check::predicates : &Check::plain;
    case Flow::arithmetic:
    case Flow::conversion:
    case Flow::shift:
    case Flow::permute:
      return &Check::by_byte;
    case Flow::integer:
      if (signature.form.carry_in || signature.form.carry_out) return &Check::carry;
      if (operation == Operation::mul || operation == Operation::mad) return &Check::multiply;
      return &Check::by_byte;
    default:
      return &Check::plain;
  }
}

WrittenFacts WrittenCheck::facts_of(const Op& op, const Signature& signature) {
  Facts f;
  const Flow flow = signature.flow();
  f.jumps = signature.control == Control::branch_table;
  f.travel = carries(signature)     ? &WrittenCheck::transfer
             : flow == Flow::atomic ? &WrittenCheck::atomic
             : flow == Flow::matrix ? &WrittenCheck::matrix
                                    : nullptr;
  if (!f.travel && !f.jumps && flow != Flow::copy_async && flow != Flow::copy_bulk)
    f.pass = pass_of(op, signature);
  f.d = whole({.slot = op.d, .cell = op.d_cell});
  f.passes_always = f.pass == &WrittenCheck::carry;
  for (const Use& use : signature.reads)
    if (use.purpose == Purpose::value && use.cell != Cell::none && flow != Flow::matrix)
      f.sources.push_back(
          {use.slot, static_cast<uint8_t>(use.cell == Cell::mask ? 1 : std::max(1, ptx::bytes_of(use.type))),
           use.cell == Cell::mask});
  f.acts = signature.control != Control::none || flow == Flow::store || flow == Flow::store_matrix ||
           flow == Flow::atomic || flow == Flow::copy_async || flow == Flow::copy_bulk;
  return f;
}

void WrittenCheck::begin_run(const Memory& memory, const Program& program, const TensorMap& inputs,
                             const std::map<std::string, ByteSet>& gaps) {
  const auto is_among = [](const auto& list, const std::string& name) {
    return std::ranges::any_of(list, [&](const auto& x) { return x.name == name; });
  };
  for (const Allocation& a : memory.allocations()) {
    if (const auto found = gaps.find(a.name); found != gaps.end() && !a.layout) {
      add_gaps(a, found->second);
      continue;
    }
    const bool output = is_among(program.outputs, a.name), in_place = output && inputs.contains(a.name),
               unwritten = (output && !in_place) || is_among(program.workspaces, a.name);
    if (!unwritten && !a.layout && !a.heap) {
      if (in_place) areas_.add(a.name, a.base, a.bytes, 1, written);
      continue;
    }
    Areas::Area& area = areas_.add(a.name, a.base, a.bytes, 1, never);
    for (uint64_t at = 0; a.heap && at < a.bytes; ++at)
      if (a.heap->heap.written[at]) areas_.fill(area, at, 1, written);
    if (!a.layout) continue;
    const auto width = static_cast<uint64_t>(format(a.tensor->dtype).bytes);
    a.layout->each_row(a.tensor->size(), [&](int64_t, int64_t position, int64_t count, int64_t stride) {
      if (stride == 1)
        return areas_.fill(area, static_cast<uint64_t>(position) * width,
                           static_cast<uint64_t>(count) * width, written);
      for (int64_t i = 0; i < count; ++i)
        areas_.fill(area, static_cast<uint64_t>(position + i * stride) * width, width, written);
    });
  }
}

/// Blank is what most of its bytes are.
void WrittenCheck::add_gaps(const Allocation& a, const ByteSet& gaps) {
  with_gaps_.insert(a.name);
  ByteSet stored;
  stored.add(0, a.bytes);
  for (const ByteSpan& range : gaps.spans()) stored.remove(range.begin, range.end);
  const bool mostly_never = 2 * gaps.count() > a.bytes;
  Areas::Area& area = areas_.add(a.name, a.base, a.bytes, 1, mostly_never ? never : written);
  for (const ByteSpan& range : (mostly_never ? stored : gaps).spans())
    areas_.fill(area, range.begin, range.end - range.begin, mostly_never ? written : never);
}

ByteSet WrittenCheck::never_stored(const std::string& name) const {
  ByteSet left;
  const Areas::Area* const area = areas_.find(name);
  if (!area) return left;
  uint64_t begin = 0;
  bool inside = false;
  const auto turn = [&](bool into, uint64_t at) {
    if (into == inside) return;
    if (inside) left.add(begin, at);
    begin = at, inside = into;
  };
  for (uint64_t at = 0; at < area->bytes;) {
    const auto [cells, cell] = Areas::seen(*area, at);
    const uint64_t count = std::min(area->bytes - at, Areas::page_cells - cell);
    if (!cells)
      turn(area->blank == never, at);
    else
      for (uint64_t i = 0; i < count; ++i) turn((*cells)[cell + i] == never, at + i);
    at += count;
  }
  turn(false, area->bytes);
  return left;
}

void WrittenCheck::enter(const LaunchContext& context) {
  begin_code(context, facts_of);
  event_of_op_.clear();
  leave_out_uncovered(context);
}

void WrittenCheck::begin_block(Block& block) {
  block_ = &block;
  warps_.resize(block.warps.size());
  for (WarpStates& w : warps_) {
    w.bytes.assign(code_->file_bytes / 32 + 8, 0);
    std::fill_n(w.bytes.begin(), code_->register_bytes / 32, ~Lanes{0});
    w.origin.assign(code_->file_bytes / 4 + 64, 0);
    w.carry = 0;
  }
  memory_.begin_local(block, never);
  memory_.begin_shared(block, never);
  stored_in_block_.clear();
}

WrittenCheck::Lanes WrittenCheck::any(const Warp& warp, const Register& r) {
  const Lanes* const states = bytes(warp, r.slot);
  Lanes found = 0;
  for (int i = 0; i < r.bytes; ++i) found |= states[i];
  return found;
}

WrittenCheck::Lanes WrittenCheck::any_source(const Warp& warp, const Facts& f) {
  Lanes found = 0;
  for (const Register& source : f.sources) found |= any(warp, source);
  return found;
}

uint32_t WrittenCheck::event_of(const Warp& warp, const Op& op, const Register& source, int lane) {
  if (const uint32_t known = origin(warp, source, lane)) return known;
  return make_event(warp, op, lane, [&]() -> std::string {
    // Its name, where the instruction reads a single register.
    int32_t only = -1, count = 0;
    if (const ptx::Instruction* const instruction = instruction_of(*code_, op))
      for (size_t i = 1; i < instruction->operands.size(); ++i)
        if (instruction->operands[i].reg >= 0) only = instruction->operands[i].reg, ++count;
    if (count != 1) return "a register";
    return "register " + function_of(*code_, op)->registers[static_cast<size_t>(only)].name;
  });
}

/// States in the lanes of `mask`; the first source that is not written gives its event.
void WrittenCheck::set(Warp& warp, const Op& op, const Register& to, uint32_t mask, const ByteLanes& states) {
  Lanes found = 0;
  for (size_t i = 0; i < to.bytes; ++i) found |= states[i] & mask;
  // Before the states change: the destination may be a source.
  Events events{};
  each_lane(found, [&](int lane) {
    for (const Register& source : facts(op).sources)
      if (any(warp, source) >> lane & 1) {
        events[static_cast<size_t>(lane)] = event_of(warp, op, source, lane);
        break;
      }
  });
  put(warp, to, mask, states, events);
}

void WrittenCheck::put(const Warp& warp, const Register& to, uint32_t mask, const ByteLanes& states,
                       const Events& events) {
  Lanes* const kept = bytes(warp, to.slot);
  Lanes found = 0;
  for (size_t i = 0; i < to.bytes; ++i) {
    kept[i] = (kept[i] & ~mask) | (states[i] & mask);
    found |= states[i] & mask;
  }
  each_lane(found, [&](int lane) {
    if (const uint32_t event = events[static_cast<size_t>(lane)]) origin(warp, to, lane) = event;
  });
}

void WrittenCheck::set_all(Warp& warp, const Op& op, const Register& to, uint32_t mask, Lanes states) {
  if (!(states & mask)) return clear(warp, to, mask);
  ByteLanes all;
  all.fill(states);
  set(warp, op, to, mask, all);
}

void WrittenCheck::clear(const Warp& warp, const Register& to, uint32_t mask) {
  Lanes* const kept = bytes(warp, to.slot);
  for (int i = 0; i < to.bytes; ++i) kept[i] &= ~mask;
}

void WrittenCheck::clear(const Warp& warp, const Op& op, uint32_t mask) {
  for (const Use& to : signature(op).writes) clear(warp, whole(to), mask);
}

void WrittenCheck::spoil(const Warp& warp, const Register& to, Lanes lanes, uint32_t event) {
  Lanes* const kept = bytes(warp, to.slot);
  for (int i = 0; i < to.bytes; ++i) kept[i] |= lanes;
  each_lane(lanes, [&](int lane) { origin(warp, to, lane) = event; });
}

void WrittenCheck::spoil(const Warp& warp, const Op& op, Lanes lanes, uint32_t event) {
  for (const Use& to : signature(op).writes) spoil(warp, whole(to), lanes, event);
}

/// A guard that was never written: a finding where the op acts, else its result depends on it.
void WrittenCheck::guarded(Warp& warp, const Op& op, uint32_t active) {
  const Register guard{op.guard, 1, true};
  guard_lanes_ = any(warp, guard) & active;
  if (!guard_lanes_) return;
  if (strict_) strict(warp, op, guard, guard_lanes_);
  if (facts(op).acts) return sink(warp, op, guard, guard_lanes_, unwritten_branch, "decides whether it runs");
  guard_event_ = event_of(warp, op, guard, std::countr_zero(guard_lanes_));
  spoil(warp, op, guard_lanes_, guard_event_);
}

void WrittenCheck::sink(Warp& warp, const Op& op, const Register& source, Lanes lanes,
                        const CheckSentence& sentence, const char* what) {
  const int lane = std::countr_zero(lanes);
  const Event& event = events_[event_of(warp, op, source, lane)];
  if (!event.elsewhere && log_.opens(sentence, &op, event.op))
    log_.tell(place(warp, op, lane, what), event.place, event.what,
              fmt::arg("opcode", opcode_of(*code_, op)));
}

void WrittenCheck::strict(Warp& warp, const Op& op, const Register& source, uint32_t mask) {
  const Lanes found = any(warp, source) & mask;
  if (!found || warp.block->trap) return;
  const int lane = std::countr_zero(found);
  raise(warp, op, lane, TrapKind::unwritten_read,
        events_[event_of(warp, op, source, lane)].what + " was never written");
}

void WrittenCheck::before(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts(op);
  if (!op.guarded) guard_lanes_ = 0;
  if (strict_)
    for (const Register& source : f.sources) strict(warp, op, source, mask);
  for (const Use& use : signature(op).reads) {
    const bool jumps = f.jumps && use.purpose == Purpose::value;
    if (use.purpose != Purpose::address && !jumps) continue;
    const Register source = whole(use);
    if (const Lanes found = any(warp, source) & mask)
      sink(warp, op, source, found, jumps ? unwritten_branch : unwritten_address,
           jumps ? "decides the way of" : "is an address of");
  }
  if (!f.pass) return;
  const Lanes found = any_source(warp, f);
  if (found & mask || f.passes_always)
    (this->*f.pass)(warp, op, f, mask, found);
  else
    clear(warp, op, mask);
}

void WrittenCheck::after(Warp& warp, const Op& op, uint32_t mask) {
  if (const auto travel = facts(op).travel) (this->*travel)(warp, op, mask);
  if (guard_lanes_ & mask) spoil(warp, op, guard_lanes_, guard_event_);
}

void WrittenCheck::note_written(const Allocation& allocation, const Part& part) {
  size_t hint = 0;
  if (Areas::Area* const area = areas_.find(allocation.base, hint))
    areas_.fill(*area, part.offset, part.bytes, written);
}

void WrittenCheck::end_run(const Memory& memory, const std::vector<ProgramOutput>& outputs) {
  for (const ProgramOutput& output : outputs) {
    const std::optional<Place> place = memory.find(output.name);
    const Areas::Area* const area = place ? areas_.find(place->allocation->name) : nullptr;
    if (area && place->tensor && place->tensor->size() > 0) end_output(*area, *place);
  }
}

/// From `offset` to the end of its page, where that starts as never written and nothing has touched it; else
/// 0.
uint64_t WrittenCheck::untouched_bytes(const Areas::Area& area, uint64_t offset) {
  const auto [cells, at] = Areas::seen(area, offset);
  return cells || area.blank != never ? 0 : (Areas::page_cells - at) * area.granule;
}

/// Elements of which a byte was never stored, and elements that came of something never written.
void WrittenCheck::end_output(const Areas::Area& area, const Place& place) {
  const Tensor& tensor = *place.tensor;
  if (!tensor.is_held()) return;  // of these only what the blocks wrote is there
  const auto width = static_cast<uint64_t>(format(tensor.dtype).bytes);
  int64_t missing = 0, first_missing = -1, last_missing = -1;
  std::map<uint32_t, std::pair<int64_t, int64_t>> spoiled;  // event -> elements, first
  for (int64_t flat = 0; flat < tensor.size(); ++flat) {
    const uint64_t offset = place.offset + static_cast<uint64_t>(flat) * width;
    if (const auto untouched = static_cast<int64_t>(untouched_bytes(area, offset) / width); untouched > 0) {
      const int64_t count = std::min(untouched, tensor.size() - flat);
      if (missing == 0) first_missing = flat;
      missing += count, last_missing = flat + count - 1, flat = last_missing;
      continue;
    }
    const uint8_t all = states(area, offset, width);
    if (all & never) {
      if (missing++ == 0) first_missing = flat;
      last_missing = flat;
    } else if (all) {
      const auto event = stored_.find((place.allocation->base + offset) & ~uint64_t{3});
      auto& known = spoiled.try_emplace(event == stored_.end() ? 0 : event->second, 0, flat).first->second;
      ++known.first;
    }
  }
  if (missing && !partial_ && !with_gaps_.contains(area.name) && log_.opens(never_written, &tensor))
    log_.tell({.access = "not written"}, {}, tensor.element_name(first_missing), fmt::arg("count", missing),
              fmt::arg("size", tensor.size()), fmt::arg("name", tensor.name),
              fmt::arg("shape", tensor.shape_text()), fmt::arg("last", tensor.element_name(last_missing)))
        .count = static_cast<uint64_t>(missing);
  for (const auto& [event, found] : spoiled) {
    const Event& origin = events_[event];
    const auto [count, first] = found;
    const CheckSentence& sentence = origin.through.empty() ? unwritten_output : unwritten_tensor_core;
    if (origin.elsewhere || !log_.opens(sentence, origin.op, &tensor)) continue;
    log_.tell(origin.place, {}, tensor.element_name(first), fmt::arg("count", count),
              fmt::arg("size", tensor.size()), fmt::arg("name", tensor.name), fmt::arg("what", origin.what),
              fmt::arg("through", origin.through))
        .count = static_cast<uint64_t>(count);
  }
}

}  // namespace assay::vm
