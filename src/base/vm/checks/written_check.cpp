// Facts of the ops, guards, sinks and the judgement of the outputs.
#include "src/base/vm/checks/written_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/ptx/type.h"
#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

constexpr CheckLog::Kind unwritten_branch{"unwritten", "unwritten-branch"},
    unwritten_address{"unwritten", "unwritten-address"}, unwritten_output{"unwritten", "unwritten-output"},
    unwritten_tensor_core{"unwritten", "unwritten-tensor-core"}, never_written{"unwritten", "never-written"};

}  // namespace

ByteState WrittenCheck::state(const Areas::Area& area, uint64_t offset) {
  const auto [cells, at] = Areas::seen(area, offset);
  return static_cast<ByteState>(cells ? (*cells)[at] : area.blank);
}

WrittenCheck::Route WrittenCheck::route_of(const Op& op, const Signature& signature) {
  using ptx::Operation;
  const Operation operation = signature.form.operation;
  const Meaning& meaning = *signature.meaning;
  const bool of_predicates = meaning.result == ptx::Type::pred, packed = ptx::is_packed(meaning.result);
  const auto floats = [&](ptx::Type type) { return ptx::is_float(type); };
  if (carries(signature)) return Route::transfer;
  if (signature.control == Control::branch_table) return Route::jump;
  if (op.row->mask && signature.flow() == Flow::comparison) return Route::compare;
  switch (signature.flow()) {
    case Flow::atomic:
      return Route::atomic;
    case Flow::matrix:
      return Route::matrix;
    case Flow::copy_async:
      return Route::copy;
    default:
      break;
  }
  if (op.d == no_slot) return Route::none;
  switch (signature.flow()) {
    case Flow::none:
      return Route::clear;
    case Flow::vote:
      return Route::exchange;
    case Flow::conversion:
      if (!signature.form.saturates && !floats(meaning.sources[0]) && !floats(meaning.result))
        return Route::resize;
      [[fallthrough]];
    case Flow::arithmetic:
      if (packed && meaning.sources[0] == ptx::Type::f32) return Route::packed_convert;
      return packed && ptx::is_packed(meaning.sources[0]) ? Route::packed : Route::plain;
    case Flow::logic:
      if (operation != Operation::and_ && operation != Operation::or_)
        return of_predicates ? Route::plain : Route::by_byte;
      return of_predicates ? Route::predicates : Route::masking;
    case Flow::shift:
      return Route::shift;
    case Flow::permute:
      return operation == Operation::prmt ? Route::permute : Route::plain;
    case Flow::integer:
      if (signature.form.carry_in || signature.form.carry_out) return Route::carry;
      if (operation == Operation::mul || operation == Operation::mad) return Route::multiply;
      return signature.form.packed ? Route::packed : Route::plain;
    default:
      return Route::plain;
  }
}

WrittenCheck::Facts WrittenCheck::facts_of(const Op& op, const Signature& signature) {
  using ptx::Type;
  Facts f;
  f.route = route_of(op, signature);
  f.d_bytes = static_cast<uint8_t>(op.d_cell == Cell::none ? 1 : count_of(op.d_cell));
  f.left = signature.form.operation == ptx::Operation::shl;
  f.is_or = signature.form.operation == ptx::Operation::or_;
  const Type from = signature.meaning->sources[0];
  f.extends_sign = from == Type::s8 || from == Type::s16 || from == Type::s32;
  f.carry_in = signature.form.carry_in, f.carry_out = signature.form.carry_out;
  for (const Use& use : signature.reads)
    if (use.purpose == Purpose::value && use.cell != Cell::none && f.route != Route::matrix)
      f.sources.push_back(
          {use.slot, static_cast<uint8_t>(use.cell == Cell::mask ? 1 : std::max(1, ptx::bytes_of(use.type))),
           use.cell == Cell::mask});
  f.count = static_cast<int>(f.sources.size());
  const bool stores = signature.flow() == Flow::store || signature.flow() == Flow::store_matrix;
  f.acts = signature.control != Control::none || stores || f.route == Route::atomic || f.route == Route::copy;
  return f;
}

void WrittenCheck::begin_run(const Memory& memory, const std::set<std::string>& unwritten) {
  for (const Allocation& a : memory.allocations()) {
    if (!unwritten.contains(a.name) && !a.layout) continue;
    Areas::Area& area = areas_.add(a.name, a.base, a.bytes, 1, never);
    if (!a.layout) continue;
    const auto width = static_cast<uint64_t>(format(a.tensor->dtype).bytes);
    for (int64_t flat = 0; flat < a.tensor->size(); ++flat) {
      const auto [cells, at] = areas_.touch(area, static_cast<uint64_t>(a.layout->position(flat)) * width);
      cells->fill(at, width, written);
    }
  }
}

void WrittenCheck::enter(const LaunchContext& context) {
  context_ = &context;
  code_ = context.code;
  facts_.clear();
  for (const Op& op : code_->ops) facts_.push_back(facts_of(op, code_->signature(op)));
  event_of_op_.clear();
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

WrittenCheck::Lanes WrittenCheck::any(const Warp& warp, const Source& source) {
  const Lanes* const states = bytes(warp, source.slot);
  Lanes found = 0;
  for (int i = 0; i < source.bytes; ++i) found |= states[i];
  return found;
}

uint32_t WrittenCheck::make_event(Warp& warp, const Op& op, int lane, std::string what) {
  const auto [known, is_new] = event_of_op_.try_emplace(&op, static_cast<uint32_t>(events_.size()));
  if (!is_new) return known->second;
  Event& made = events_.emplace_back();
  made.op = &op;
  made.place = log_.place({&op, block_->linear, warp.index * 32 + static_cast<uint32_t>(lane)},
                          "read by " + opcode_of(*code_, op));
  made.what = std::move(what);
  return known->second;
}

uint32_t WrittenCheck::event_of(Warp& warp, const Op& op, const Source& source, int lane) {
  const uint32_t known = of(warp).origin[source.slot / 4 + static_cast<size_t>(source.is_mask ? 0 : lane)];
  if (known) return known;
  std::string name = "a register";
  if (op.function >= 0 && op.instruction >= 0) {
    const ptx::Function& function = code_->module->functions[static_cast<size_t>(op.function)];
    const ptx::Instruction& instruction = function.body[static_cast<size_t>(op.instruction)];
    // Its name, where the instruction reads a single register.
    int32_t only = -1, count = 0;
    for (size_t i = 1; i < instruction.operands.size(); ++i)
      if (instruction.operands[i].reg >= 0) only = instruction.operands[i].reg, ++count;
    if (count == 1) name = "register " + function.registers[static_cast<size_t>(only)].name;
  }
  return make_event(warp, op, lane, name);
}

/// States of `count` bytes in the lanes of `mask`; the first source that is not written gives its event.
void WrittenCheck::set(Warp& warp, const Op& op, Slot slot, int count, bool is_mask, uint32_t mask,
                       const ByteLanes& states) {
  Lanes found = 0;
  for (int i = 0; i < count; ++i) found |= states[static_cast<size_t>(i)] & mask;
  // Before the states change: the destination may be a source.
  std::array<uint32_t, 32> events{};
  const Facts& f = facts(op);
  for_lanes(found, [&](int lane) {
    for (int i = 0; i < f.count && !events[static_cast<size_t>(lane)]; ++i)
      if (any(warp, f.sources[static_cast<size_t>(i)]) >> lane & 1)
        events[static_cast<size_t>(lane)] = event_of(warp, op, f.sources[static_cast<size_t>(i)], lane);
  });
  put(warp, slot, count, is_mask, mask, states, events);
}

void WrittenCheck::put(Warp& warp, Slot slot, int count, bool is_mask, uint32_t mask, const ByteLanes& states,
                       const std::array<uint32_t, 32>& events) {
  Lanes* const to = &of(warp).bytes[slot / 32];
  Lanes found = 0;
  for (int i = 0; i < count; ++i) {
    to[i] = (to[i] & ~mask) | (states[static_cast<size_t>(i)] & mask);
    found |= states[static_cast<size_t>(i)] & mask;
  }
  for_lanes(found, [&](int lane) {
    if (events[static_cast<size_t>(lane)])
      of(warp).origin[slot / 4 + static_cast<size_t>(is_mask ? 0 : lane)] = events[static_cast<size_t>(lane)];
  });
}

void WrittenCheck::set_all(Warp& warp, const Op& op, Slot slot, int count, bool is_mask, uint32_t mask,
                           Lanes states) {
  if (!(states & mask)) return clear(warp, slot, count, mask);
  ByteLanes all;
  all.fill(states);
  set(warp, op, slot, count, is_mask, mask, all);
}

void WrittenCheck::clear(Warp& warp, Slot slot, int count, uint32_t mask) {
  Lanes* const to = &of(warp).bytes[slot / 32];
  for (int i = 0; i < count; ++i) to[i] &= ~mask;
}

void WrittenCheck::clear(Warp& warp, const Op& op, uint32_t mask) {
  for (const Use& to : code_->signature(op).writes) clear(warp, to.slot, count_of(to.cell), mask);
}

void WrittenCheck::spoil(const Warp& warp, Slot slot, Cell cell, Lanes lanes, uint32_t event) {
  Lanes* const to = &of(warp).bytes[slot / 32];
  for (int i = 0; i < count_of(cell); ++i) to[i] |= lanes;
  for_lanes(lanes, [&](int lane) {
    of(warp).origin[slot / 4 + static_cast<size_t>(cell == Cell::mask ? 0 : lane)] = event;
  });
}

/// A guard that was never written: a finding where the op acts, else its result depends on it.
void WrittenCheck::guarded(Warp& warp, const Op& op, uint32_t active) {
  const Source guard{op.guard, 1, true};
  guard_lanes_ = any(warp, guard) & active;
  if (!guard_lanes_) return;
  if (strict_) strict(warp, op, guard, guard_lanes_);
  if (facts(op).acts) return sink(warp, op, guard, guard_lanes_, unwritten_branch, "decides whether it runs");
  guard_event_ = event_of(warp, op, guard, std::countr_zero(guard_lanes_));
  for (const Use& to : code_->signature(op).writes) spoil(warp, to.slot, to.cell, guard_lanes_, guard_event_);
}

void WrittenCheck::sink(Warp& warp, const Op& op, const Source& source, Lanes lanes,
                        const CheckLog::Kind& kind, const char* what) {
  const int lane = std::countr_zero(lanes);
  const Event& event = events_[event_of(warp, op, source, lane)];
  if (event.elsewhere) return;
  CheckFinding* finding = log_.open(kind, &op, event.op);
  if (!finding) return;
  finding->at = log_.place({&op, block_->linear, warp.index * 32 + static_cast<uint32_t>(lane)}, what);
  finding->other = event.place;
  finding->element = event.what;
  finding->message = fmt::format("{}, never written, {} at {} by {}, {} {} at {}", event.what,
                                 event.place.access, place_text(event.place.where), thread_text(event.place),
                                 what, opcode_of(*code_, op), place_text(finding->at.where));
}

void WrittenCheck::strict(Warp& warp, const Op& op, const Source& source, uint32_t mask) {
  const Lanes found = any(warp, source) & mask;
  if (!found || warp.block->trap) return;
  const int lane = std::countr_zero(found);
  raise(warp, op, lane, "unwritten-read",
        fmt::format("{} was never written", events_[event_of(warp, op, source, lane)].what));
}

void WrittenCheck::before(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts(op);
  if (!op.guarded) guard_lanes_ = 0;
  if (strict_)
    for (int i = 0; i < f.count; ++i) strict(warp, op, f.sources[static_cast<size_t>(i)], mask);
  for (const Use& use : code_->signature(op).reads) {
    const bool jumps = f.route == Route::jump && use.purpose == Purpose::value;
    if (use.purpose != Purpose::address && !jumps) continue;
    const Source source{use.slot, static_cast<uint8_t>(count_of(use.cell)), false};
    if (const Lanes found = any(warp, source) & mask)
      sink(warp, op, source, found, jumps ? unwritten_branch : unwritten_address,
           jumps ? "decides the way of" : "is an address of");
  }
  switch (f.route) {
    case Route::transfer:
    case Route::atomic:
    case Route::copy:
    case Route::jump:
    case Route::none:
    case Route::matrix:
      return;
    default:
      return value(warp, op, mask);
  }
}

void WrittenCheck::after(Warp& warp, const Op& op, uint32_t mask) {
  const Route route = facts(op).route;
  if (route == Route::transfer) transfer(warp, op, mask);
  if (route == Route::atomic) atomic(warp, op, mask);
  if (route == Route::matrix) matrix(warp, op);
  if (guard_lanes_ & mask)
    for (const Use& to : code_->signature(op).writes)
      spoil(warp, to.slot, to.cell, guard_lanes_, guard_event_);
}

void WrittenCheck::note_written(const Allocation& allocation, const Part& part) {
  size_t hint = 0;
  Areas::Area* const area = areas_.find(allocation.base, hint);
  for (uint64_t at = part.offset; area && at < part.offset + part.bytes; ++at) {
    const auto cell = areas_.touch(*area, at);
    (*cell.cells)[cell.at] = written;
  }
}

void WrittenCheck::end_run(const Memory& memory, const std::vector<PlanOutput>& outputs) {
  for (const PlanOutput& output : outputs) {
    const std::optional<Place> place = memory.find(output.name);
    const Areas::Area* const area = place ? areas_.find(place->allocation->name) : nullptr;
    if (area && place->tensor && place->tensor->size() > 0) end_output(*area, *place);
  }
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
    uint8_t all = 0;
    for (uint64_t i = 0; i < width; ++i) all |= state(area, offset + i);
    if (all & never) {
      if (missing++ == 0) first_missing = flat;
      last_missing = flat;
    } else if (all) {
      const auto event = stored_.find((place.allocation->base + offset) & ~uint64_t{3});
      auto& known = spoiled.try_emplace(event == stored_.end() ? 0 : event->second, 0, flat).first->second;
      ++known.first;
    }
  }
  if (missing && !partial_) {
    if (CheckFinding* finding = log_.open(never_written, &tensor)) {
      finding->count = static_cast<uint64_t>(missing);
      finding->element = tensor.element_name(first_missing);
      finding->at.access = "not written";
      finding->message =
          fmt::format("{} of {} elements of {} {} were never written, from {} to {}", missing, tensor.size(),
                      tensor.name, tensor.shape_text(), finding->element, tensor.element_name(last_missing));
    }
  }
  for (const auto& [event, found] : spoiled) {
    const Event& origin = events_[event];
    if (origin.elsewhere) continue;
    const bool multiplied = !origin.through.empty();
    CheckFinding* finding =
        log_.open(multiplied ? unwritten_tensor_core : unwritten_output, origin.op, &tensor);
    if (!finding) continue;
    finding->count = static_cast<uint64_t>(found.first);
    finding->at = origin.place;
    finding->element = tensor.element_name(found.second);
    finding->message =
        fmt::format("{} of {} elements of {}, first {}, depend on {}, never written, {} at {} by {}{}",
                    found.first, tensor.size(), tensor.name, finding->element, origin.what,
                    origin.place.access, place_text(origin.place.where), thread_text(origin.place),
                    multiplied ? ", an operand of " + origin.through : "");
  }
}

}  // namespace assay::vm
