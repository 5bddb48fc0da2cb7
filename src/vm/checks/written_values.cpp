// States through registers: what of a result was never written.
#include <algorithm>
#include <bit>

#include "src/vm/checks/written_check.h"
#include "src/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

/// Value of a register in one lane, its low `bytes` bytes.
uint64_t value_of(const Warp& warp, Slot slot, int lane, int bytes) {
  const uint64_t bits = bytes == 8 ? warp.wide(slot)[lane] : warp.word(slot)[lane];
  return bytes >= 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}

/// Bit of each lane for which `holds(lane)`.
template <class F>
uint32_t lanes_where(uint32_t mask, F holds) {
  uint32_t found = 0;
  for_lanes(mask, [&](int lane) { found |= static_cast<uint32_t>(holds(lane) ? 1u : 0u) << lane; });
  return found;
}

/// Every lane of the four that share a row of a fragment, where one of them is set.
uint32_t over_quads(uint32_t lanes) {
  lanes |= lanes >> 1;
  lanes |= lanes >> 2;
  lanes &= 0x11111111u;
  return lanes * 15;
}

}  // namespace

void WrittenCheck::value(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts(op);
  Lanes found = 0;
  for (int i = 0; i < f.count; ++i) found |= any(warp, f.sources[static_cast<size_t>(i)]);
  const bool is_mask = op.d_cell == Cell::mask;
  if (f.route == Route::pack) return pack(warp, op, mask);
  if (f.route == Route::carry) return carry(warp, op, f, mask);
  // Nothing of it missing, or nothing said about it: the result is written.
  if (!(found & mask) || f.route == Route::clear)
    return each_destination(op, [&](Slot slot, int count, bool) { clear(warp, slot, count, mask); });
  ByteLanes states{};
  switch (f.route) {
    case Route::by_byte:
      for (int i = 0; i < f.count; ++i)
        for (int byte = 0; byte < f.sources[static_cast<size_t>(i)].bytes; ++byte)
          states[static_cast<size_t>(byte)] |= bytes(warp, f.sources[static_cast<size_t>(i)].slot)[byte];
      return set(warp, op, op.d, f.d_bytes, false, mask, states);
    case Route::packed:
      for (int i = 0; i < f.count; ++i)
        for (int byte = 0; byte < 4; ++byte)
          states[static_cast<size_t>(byte)] |= bytes(warp, f.sources[static_cast<size_t>(i)].slot)[byte & 2] |
                                               bytes(warp, f.sources[static_cast<size_t>(i)].slot)[byte | 1];
      return set(warp, op, op.d, 4, false, mask, states);
    case Route::packed_convert:  // cvt.rn.bf16x2.f32 d, a, b: a goes to the high half
      states[0] = states[1] = any(warp, f.sources[1]);
      states[2] = states[3] = any(warp, f.sources[0]);
      return set(warp, op, op.d, 4, false, mask, states);
    case Route::move:
      for (int byte = 0; byte < f.sources[0].bytes; ++byte)
        states[static_cast<size_t>(byte)] = bytes(warp, f.sources[0].slot)[byte];
      return set(warp, op, op.d, f.d_bytes, is_mask, mask, states);
    case Route::masking:
      return masking(warp, op, f, mask);
    case Route::multiply:
      return multiply(warp, op, f, mask);
    case Route::predicates:
      return predicates(warp, op, f, mask);
    case Route::compare:
      return compare(warp, op, f, mask);
    case Route::shift:
      return shift(warp, op, f, mask);
    case Route::permute:
      return permute(warp, op, f, mask);
    case Route::select:
      return select(warp, op, f, mask);
    case Route::unpack:
      return unpack(warp, op, mask);
    case Route::exchange:  // a vote, match or sum over lanes depends on all that take part
      return each_destination(
          op, [&](Slot slot, int count, bool of_mask) { set_all(warp, op, slot, count, of_mask, mask, ~Lanes{0}); });
    default:
      return each_destination(
          op, [&](Slot slot, int count, bool of_mask) { set_all(warp, op, slot, count, of_mask, mask, found); });
  }
}

/// `and`: a written byte of zeros decides; `or`: one of ones.
void WrittenCheck::masking(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  ByteLanes states{};
  const uint64_t decides = f.is_or ? 0xff : 0;
  for (int byte = 0; byte < f.sources[0].bytes; ++byte) {
    const auto at = static_cast<size_t>(byte);
    const Lanes a = bytes(warp, f.sources[0].slot)[byte], b = bytes(warp, f.sources[1].slot)[byte];
    states[at] = (a | b) & mask;
    states[at] &= ~lanes_where(states[at] & ~(a & b), [&](int lane) {
      const Slot other = f.sources[a >> lane & 1 ? 1 : 0].slot;
      return (value_of(warp, other, lane, f.d_bytes) >> (8 * byte) & 0xff) == decides;
    });
  }
  set(warp, op, op.d, f.d_bytes, false, mask, states);
}

/// An integer product with a written zero is zero.
void WrittenCheck::multiply(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  const auto zero = [&](const Source& source, Lanes lanes) {
    return lanes_where(lanes, [&](int lane) { return value_of(warp, source.slot, lane, source.bytes) == 0; });
  };
  const Lanes a = any(warp, f.sources[0]), b = any(warp, f.sources[1]);
  Lanes found = (a | b) & mask;
  found &= ~zero(f.sources[1], found & ~b) & ~zero(f.sources[0], found & ~a);
  if (f.count > 2) found |= any(warp, f.sources[2]);
  set_all(warp, op, op.d, f.d_bytes, false, mask, found);
}

/// and.pred, or.pred: a written side may decide alone.
void WrittenCheck::predicates(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  const Lanes a = any(warp, f.sources[0]), b = any(warp, f.sources[1]);
  const uint32_t flip = f.is_or ? 0 : ~0u;
  const Lanes decided = (~a & (warp.mask(op.s[0]) ^ flip)) | (~b & (warp.mask(op.s[1]) ^ flip));
  set_all(warp, op, op.d, 1, true, mask, (a | b) & ~decided);
}

/// p = cmp bool c, q = !cmp bool c: `and` with a written false and `or` with a written true decide.
void WrittenCheck::compare(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  Lanes compared = 0;
  for (int i = 0; i < f.count; ++i)
    if (f.sources[static_cast<size_t>(i)].slot != op.s[2] || op.boolean == BooleanOp::none)
      compared |= any(warp, f.sources[static_cast<size_t>(i)]);
  Lanes first = compared, second = compared;
  if (op.boolean != BooleanOp::none) {
    const Lanes third = bytes(warp, op.s[2])[0];
    const void* b = op.s[1] == no_slot ? nullptr : warp.file + op.s[1];
    const uint32_t value = op.row->mask(warp.file + op.s[0], b);
    const uint32_t c = op.third_negated ? ~warp.mask(op.s[2]) : warp.mask(op.s[2]);
    const auto united = [&](uint32_t compares) {
      const uint32_t flip = op.boolean == BooleanOp::land ? ~0u : 0;
      const Lanes decided =
          op.boolean == BooleanOp::lxor ? 0 : (~compared & (compares ^ flip)) | (~third & (c ^ flip));
      return (compared | third) & ~decided;
    };
    first = united(value), second = united(~value);
  }
  set_all(warp, op, op.d, 1, true, mask, first);
  if (op.d2 != no_slot) set_all(warp, op, op.d2, 1, true, mask, second);
}

/// A distance that all lanes share moves bytes; another mixes all of them.
void WrittenCheck::shift(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  const Lanes distance_states = any(warp, f.sources[1]) & mask;
  const uint32_t* distances = warp.word(op.s[1]);
  const uint32_t n = distances[std::countr_zero(mask)];
  const bool uniform = lanes_where(mask, [&](int lane) { return distances[lane] == n; }) == mask;
  if (distance_states || !uniform)
    return set_all(warp, op, op.d, f.d_bytes, false, mask, any(warp, f.sources[0]) | distance_states);
  const Lanes* const from = bytes(warp, f.sources[0].slot);
  const int width = f.sources[0].bytes, whole = static_cast<int>(std::min(n, 64u) / 8);
  const bool parts = n % 8 != 0;
  // shr.s repeats the sign: bytes beyond the top depend on it; zeros come in otherwise.
  const bool sign = op.row->result == ptx::Type::s16 || op.row->result == ptx::Type::s32 ||
                    op.row->result == ptx::Type::s64;
  const auto source = [&](int byte) -> Lanes {
    if (byte < 0) return 0;
    return byte < width ? from[byte] : sign ? from[width - 1] : 0;
  };
  ByteLanes states{};
  for (int byte = 0; byte < width; ++byte) {
    const int at = f.left ? byte - whole : byte + whole;
    states[static_cast<size_t>(byte)] = source(at) | (parts ? source(f.left ? at - 1 : at + 1) : 0);
  }
  set(warp, op, op.d, f.d_bytes, false, mask, states);
}

/// prmt.b32 d, a, b, selector: byte i of d is the byte of {b, a} that nibble i names.
void WrittenCheck::permute(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  ByteLanes states{};
  const Lanes selectors = any(warp, f.sources[2]);
  for (int byte = 0; byte < 4; ++byte)
    states[static_cast<size_t>(byte)] = selectors | lanes_where(mask, [&](int lane) {
      const uint32_t nibble = warp.word(op.s[2])[lane] >> (4 * byte) & 7;
      return (bytes(warp, op.s[nibble / 4])[nibble % 4] >> lane & 1) != 0;
    });
  set(warp, op, op.d, 4, false, mask, states);
}

/// Only the chosen side counts, and what chose.
void WrittenCheck::select(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  const uint32_t first = warp.mask(op.s[2]);
  const Lanes chooser = bytes(warp, op.s[2])[0];
  ByteLanes states{};
  for (int byte = 0; byte < f.sources[0].bytes; ++byte)
    states[static_cast<size_t>(byte)] =
        chooser | (bytes(warp, op.s[0])[byte] & first) | (bytes(warp, op.s[1])[byte] & ~first);
  // Events follow the side.
  std::array<uint32_t, 32> events{};
  Lanes found = 0;
  for (int byte = 0; byte < f.d_bytes; ++byte) found |= states[static_cast<size_t>(byte)] & mask;
  for_lanes(found, [&](int lane) {
    const Source& side = f.sources[first >> lane & 1 ? 0 : 1];
    events[static_cast<size_t>(lane)] =
        event_of(warp, op, chooser >> lane & 1 ? Source{op.s[2], 1, true} : side, lane);
  });
  put(warp, op.d, f.d_bytes, false, mask, states, events);
}

/// mov.b32 d, {lo, hi}.
void WrittenCheck::pack(Warp& warp, const Op& op, uint32_t mask) {
  const int width = op.element_bytes, total = op.d_cell == Cell::wide ? 8 : 4;
  ByteLanes states{};
  std::array<uint32_t, 32> events{};
  for (int byte = 0; byte < std::min(total, width * op.slot_count); ++byte)
    states[static_cast<size_t>(byte)] = bytes(warp, op.slots[byte / width])[byte % width] & mask;
  for (int i = 0; i < op.slot_count; ++i) {
    const Source element{op.slots[i], static_cast<uint8_t>(width), false};
    for_lanes(any(warp, element) & mask, [&](int lane) {
      events[static_cast<size_t>(lane)] = event_of(warp, op, element, lane);
    });
  }
  put(warp, op.d, total, false, mask, states, events);
}

void WrittenCheck::unpack(Warp& warp, const Op& op, uint32_t mask) {
  const int width = op.element_bytes;
  std::array<Lanes, 16> source{};
  std::array<uint32_t, 32> events{};
  const Source& from = facts(op).sources[0];
  std::copy_n(bytes(warp, from.slot), from.bytes, source.begin());
  for_lanes(any(warp, from) & mask,
            [&](int lane) { events[static_cast<size_t>(lane)] = event_of(warp, op, from, lane); });
  for (int i = 0; i < op.slot_count; ++i) {
    if (op.slots[i] == no_slot) continue;
    ByteLanes states{};
    std::copy_n(source.begin() + width * i, width, states.begin());
    put(warp, op.slots[i], std::max(4, width), false, mask, states, events);
  }
}

/// add.cc and its kin: the flag is a source and a result.
void WrittenCheck::carry(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  Lanes found = f.carry_in ? of(warp).carry : 0;
  for (int i = 0; i < f.count; ++i) found |= any(warp, f.sources[static_cast<size_t>(i)]);
  set_all(warp, op, op.d, f.d_bytes, false, mask, found);
  if (f.carry_out) of(warp).carry = (of(warp).carry & ~mask) | (found & mask);
}

/// A lane that reads one that does not take part gets nothing that was written (PTX ISA, "shfl.sync").
void WrittenCheck::shuffle(Warp& warp, const Op& op, uint32_t mask) {
  const Lanes absent = lanes_where(mask, [&](int lane) { return !(mask >> warp.lane_source[lane] & 1); });
  const Source from{op.s[0], 4, false};
  if (op.d2 != no_slot) clear(warp, op.d2, 1, mask);
  if (!absent && !any(warp, from)) return clear(warp, op.d, 4, mask);
  ByteLanes states{};
  std::array<uint32_t, 32> events{};
  for (int byte = 0; byte < 4; ++byte) {
    const Lanes source = bytes(warp, op.s[0])[byte];
    states[static_cast<size_t>(byte)] =
        absent | lanes_where(mask, [&](int lane) { return (source >> warp.lane_source[lane] & 1) != 0; });
  }
  const Lanes spoiled = any(warp, from);
  for_lanes(mask, [&](int lane) {
    const int source = static_cast<int>(warp.lane_source[lane]);
    if (absent >> lane & 1)
      events[static_cast<size_t>(lane)] =
          make_event(warp, op, lane, "the value of lane " + std::to_string(source) + ", which takes no part");
    else if (spoiled >> source & 1)
      events[static_cast<size_t>(lane)] = event_of(warp, op, from, source);
  });
  put(warp, op.d, 4, false, mask, states, events);
}

/// mma.sync.m16n8kK: lane l holds rows l / 4 (registers 0, 2 of A; 0, 1 of C and D) and l / 4 + 8 (1, 3; 2,
/// 3) and columns l / 4 of B, 2 (l mod 4) and the next of C and D (PTX ISA, "mma.sync", fragment layouts).
void WrittenCheck::matrix(Warp& warp, const Op& op) {
  if (op.slot_count < 9) return;
  const int b_count = op.slot_count == 9 ? 0 : (op.slot_count - 8) / 3, a_count = op.slot_count - 8 - b_count;
  const auto state = [&](int i) { return any(warp, {op.slots[i], 4, false}); };
  std::array<Lanes, 2> rows{};
  Lanes columns = 0, sums = 0;
  for (int i = 0; i < a_count; ++i) rows[static_cast<size_t>(i & 1)] |= over_quads(state(4 + i));
  for (int i = 0; i < b_count; ++i) columns |= over_quads(state(4 + a_count + i));
  std::array<Lanes, 4> c{};
  for (int i = 0; i < 4; ++i) sums |= c[static_cast<size_t>(i)] = state(4 + a_count + b_count + i);
  if (!(rows[0] | rows[1] | columns | sums)) {
    for (int i = 0; i < 4; ++i) clear(warp, op.slots[i], 4, ~0u);
    return;
  }
  // The event: of an operand, else of the sum so far.
  uint32_t event = 0;
  for (int i = 0; i < a_count + b_count + 4 && !event; ++i) {
    const Source source{op.slots[4 + i], 4, false};
    if (const Lanes found = any(warp, source)) event = event_of(warp, op, source, std::countr_zero(found));
    if (event && i < a_count + b_count && events_[event].through.empty())
      events_[event].through =
          opcode_text(*code_, op) + " at " + place_text(where(*code_, op));
  }
  for (int i = 0; i < 4; ++i) {
    const Lanes of_column = lanes_where(~0u, [&](int lane) {
      const int column = 2 * (lane % 4) + (i & 1);
      return (columns >> (4 * column) & 1) != 0;
    });
    const Lanes found = rows[static_cast<size_t>(i / 2)] | of_column | c[static_cast<size_t>(i)];
    ByteLanes states;
    states.fill(found);
    std::array<uint32_t, 32> events;
    events.fill(event);
    put(warp, op.slots[i], 4, false, ~0u, states, events);
  }
}

}  // namespace assay::vm
