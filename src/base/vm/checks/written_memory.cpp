// States through memory: shared, local and global bytes, loads, stores, atomics, ldmatrix, cp.async.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/vm/checks/written_check.h"

namespace assay::vm {
namespace {

/// Whether any of `count` states is not `written`.
bool any_missing(const uint8_t* states, uint32_t count) {
  uint64_t found = 0;
  for (; count >= 8; states += 8, count -= 8) {
    uint64_t part;
    std::memcpy(&part, states, 8);
    found |= part;
  }
  for (; count > 0; --count) found |= *states++;
  return found != 0;
}

bool is_parameter(uint64_t address) {
  return address - parameter_base < variable_base - parameter_base;
}

/// "byte 52 of argument 0": the address is one of the parameter block.
std::string argument_text(const Code& code, uint64_t address) {
  const auto at = static_cast<int64_t>(address - parameter_base);
  const auto& parameters = code.module->functions[static_cast<size_t>(code.entry)].parameters;
  size_t i = parameters.size();
  while (i-- > 1)
    if (parameters[i].offset <= at) break;
  return fmt::format("byte {} of argument {} ({}), which no member of its struct covers",
                     at - parameters[i].offset, i, parameters[i].name);
}

}  // namespace

/// What a launch file's structs leave open starts as never written, anew in each launch.
void WrittenCheck::leave_out_uncovered(const LaunchContext& context) {
  std::erase_if(areas_.areas(), [](const Areas::Area& area) { return area.base == parameter_base; });
  const ptx::Function& entry = code_->module->functions[static_cast<size_t>(code_->entry)];
  Areas::Area* made = nullptr;
  for (size_t i = 0; i < context.launch->arguments.size(); ++i)
    for (const auto& [from, to] : context.launch->arguments[i].uncovered) {
      if (!made)
        made =
            &areas_.add("parameters", parameter_base,
                        static_cast<uint64_t>(entry.parameters.back().offset + entry.parameters.back().bytes),
                        1, written);
      areas_.fill(*made, static_cast<uint64_t>(entry.parameters[i].offset) + from, to - from, never);
    }
}

uint8_t* WrittenCheck::states_at(const Warp& warp, const BytePlace& at) {
  const bool in_block = at.space == ptx::Space::shared || at.space == ptx::Space::local;
  const auto place =
      in_block ? memory_.place(warp.index, at.lane, at.space, at.at) : areas_.place(at.at, area_hint_);
  return place.cells ? &(*place.cells)[place.at] : nullptr;
}

uint32_t& WrittenCheck::stored_event(const Warp& warp, const BytePlace& at, uint32_t byte) {
  const uint64_t address = (at.at + byte) & ~uint64_t{3};
  if (at.space == ptx::Space::shared) return stored_in_block_[address];
  if (at.space != ptx::Space::local) return stored_[address];
  const uint64_t thread = thread_of(warp, at.lane) + 1;
  return stored_in_block_[address | thread << 40];
}

/// The event of a byte that is not `written`: what was stored there, or that nothing was.
uint32_t WrittenCheck::memory_event(const Warp& warp, const Op& op, const BytePlace& at, uint32_t byte,
                                    uint8_t state) {
  if (state == derived)
    if (const uint32_t known = stored_event(warp, at, byte)) return known;
  const bool in_block = at.space == ptx::Space::shared || at.space == ptx::Space::local;
  const uint32_t made = make_event(warp, op, at.lane, [&] {
    return !in_block && is_parameter(at.at) ? argument_text(*code_, at.at + byte)
                                            : memory_text(*block_, at.space, at.at + byte);
  });
  events_[made].elsewhere = partial_ && !in_block && !is_parameter(at.at);
  return made;
}

/// What of `count` bytes is not written.
WrittenCheck::Taken WrittenCheck::take(const Warp& warp, const Op& op, const BytePlace& from,
                                       uint32_t count) {
  Taken taken;
  if (from.slot != no_slot) {
    const Lanes* const states = bytes(warp, from.slot) + from.at;
    for (uint32_t byte = 0; byte < count; ++byte)
      taken.missing |= uint64_t{states[byte] >> from.lane & 1} << byte;
    if (taken.missing) taken.event = event_of(warp, op, {from.slot}, from.lane);
    return taken;
  }
  const uint8_t* const here = states_at(warp, from);
  if (!here || !any_missing(here, count)) return taken;
  for (uint32_t byte = 0; byte < count; ++byte) {
    if (here[byte] == written) continue;
    taken.missing |= uint64_t{1} << byte;
    if (here[byte] == never) taken.never |= uint64_t{1} << byte;
    taken.event = memory_event(warp, op, from, byte, here[byte]);
  }
  return taken;
}

void WrittenCheck::give(const Warp& warp, const BytePlace& to, uint32_t count, const Taken& taken) {
  if (to.slot != no_slot) {
    if (!taken.missing) return;  // cleared before
    Lanes* const states = bytes(warp, to.slot) + to.at;
    for (uint32_t byte = 0; byte < count; ++byte)
      states[byte] |= static_cast<Lanes>(taken.missing >> byte & 1) << to.lane;
    origin(warp, {to.slot}, to.lane) = taken.event;
    return;
  }
  uint8_t* const here = states_at(warp, to);
  if (!here) return;
  if (!taken.missing) return void(std::memset(here, written, count));
  for (uint32_t byte = 0; byte < count; ++byte)
    here[byte] = static_cast<uint8_t>(!(taken.missing >> byte & 1) ? written
                                      : taken.never >> byte & 1    ? never
                                                                   : derived);
  for (uint32_t byte = 0; byte < count; byte += 4) stored_event(warp, to, byte) = taken.event;
}

/// The quick way: where every byte that travels is written, notes that its destinations are too.
bool WrittenCheck::all_written(Warp& warp, const Op& op, uint32_t mask) {
  if (any_source(warp, facts(op))) return false;
  bool all = true;
  each_access(warp, op, mask, [&](const MemoryAccess& access) {
    const uint8_t* const here = access.reads && all ? states_at(warp, access.place()) : nullptr;
    all &= !here || !any_missing(here, access.bytes);
  });
  if (!all) return false;
  each_access(warp, op, mask, [&](const MemoryAccess& access) {
    uint8_t* const here = access.writes ? states_at(warp, access.place()) : nullptr;
    if (here) std::memset(here, written, access.bytes);
  });
  clear(warp, op, mask);
  return true;
}

/// What travels unchanged. Parameters that a caller left unwritten stay never written; of a selection what
/// chose counts too; a lane that shuffles from one that does not take part gets nothing that was written (PTX
/// ISA, "shfl.sync").
void WrittenCheck::transfer(Warp& warp, const Op& op, uint32_t mask) {
  const Flow flow = signature(op).flow();
  const bool parameters = copies_parameters(signature(op)),
             memory = parameters || reaches_memory(signature(op));
  Lanes absent = 0;
  if (flow == Flow::exchange)
    each_lane(mask, [&](int lane) { absent |= (mask >> warp.lane_source[lane] & 1 ? 0u : 1u) << lane; });
  if (!absent && !parameters && all_written(warp, op, mask)) return;
  const Executed done = executed(warp, op, mask);
  staged_.clear();
  if (!memory)
    each_transfer(done, [&](const Transfer& t) { staged_.push_back(take(warp, op, t.from, t.bytes)); });
  clear(warp, op, mask);
  const Taken* next = staged_.data();
  each_transfer(done, [&](const Transfer& t) {
    Taken taken = memory ? take(warp, op, t.from, t.bytes) : *next++;
    const bool loads = memory && t.to.slot != no_slot;
    if (strict_ && loads && taken.never && !warp.block->trap)
      raise(warp, op, t.to.lane, TrapKind::unwritten_read,
            memory_text(*block_, t.from.space,
                        t.from.at + static_cast<uint64_t>(std::countr_zero(taken.never))) +
                " was never written");
    give(warp, t.to, t.bytes, taken);
  });
  each_lane(absent, [&](int lane) {
    const auto what = [&] {
      return "the value of lane " + std::to_string(warp.lane_source[lane]) + ", which takes no part";
    };
    spoil(warp, facts(op).d, 1u << lane, make_event(warp, op, lane, what));
  });
  if (flow != Flow::select) return;
  const Register chooser{op.s[2], 1, true};
  if (const Lanes unchosen = any(warp, chooser) & mask)
    spoil(warp, facts(op).d, unchosen, event_of(warp, op, chooser, std::countr_zero(unchosen)));
}

/// The new value comes of the old one and of the operands, that of an exchange of its operand alone; atom
/// returns the old one.
void WrittenCheck::atomic(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts(op);
  const bool exchanges = signature(op).form.combine == ptx::Combine::exch;
  each_lane(mask, [&](int lane) {
    const BytePlace memory{no_slot, warp.space, lane, warp.address[lane]};
    const Taken old = take(warp, op, memory, op.element_bytes);
    uint32_t event = exchanges ? 0 : old.event;
    for (const Register& source : f.sources)
      if (any(warp, source) >> lane & 1) event = event_of(warp, op, source, lane);
    give(warp, memory, op.element_bytes, {event ? ~uint64_t{0} : 0, 0, event});
    if (op.d == no_slot) return;
    clear(warp, f.d, 1u << lane);
    give(warp, {op.d, {}, lane, 0}, op.element_bytes, old);
  });
  if (op.d2 != no_slot) clear(warp, {op.d2, 1, true}, mask);
}

void WrittenCheck::landed(Warp& warp, const Landing& landing) {
  if (!landing.combines)
    each_lane(landing.mask, [&](int piece) {
      give(warp, {no_slot, landing.to_space, piece, landing.to[piece]}, landing.bytes, {});
    });
  each_transfer(landing, [&](const Transfer& t) {
    if (t.bytes == 0) return;
    Transfer of = t;
    of.from.lane = of.to.lane = landing.issuer(t.from.lane);
    Taken taken = take(warp, *landing.op, of.from, t.bytes);
    taken.never = 0;
    if (taken.missing) give(warp, of.to, t.bytes, taken);
  });
}

}  // namespace assay::vm
