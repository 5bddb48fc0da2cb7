// States through registers: what of a result was never written.
#include <algorithm>
#include <bit>

#include "src/base/vm/checks/written_check.h"
#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/rows/warp_rows.h"

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

}  // namespace

void WrittenCheck::value(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts(op);
  Lanes found = 0;
  for (int i = 0; i < f.count; ++i) found |= any(warp, f.sources[static_cast<size_t>(i)]);
  if (f.route == Route::carry) return carry(warp, op, f, mask);
  // Nothing of it missing, or nothing said about it: the result is written.
  if (!(found & mask) || f.route == Route::clear) return clear(warp, op, mask);
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
    case Route::
        resize: {  // cvt between integers: what is cut off does not count, what is added is zeros or signs
      const Lanes* const from = bytes(warp, f.sources[0].slot);
      const int width = f.sources[0].bytes;
      for (int byte = 0; byte < ptx::bytes_of(op.row->result); ++byte)
        states[static_cast<size_t>(byte)] = byte < width ? from[byte] : f.extends_sign ? from[width - 1] : 0;
      return set(warp, op, op.d, f.d_bytes, false, mask, states);
    }
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
    default:
      break;
  }
  // A vote, match or sum over lanes depends on all that take part.
  if (f.route == Route::exchange) found = ~Lanes{0};
  for (const Use& to : code_->signature(op).writes)
    set_all(warp, op, to.slot, count_of(to.cell), to.cell == Cell::mask, mask, found);
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

/// add.cc and its kin: the flag is a source and a result.
void WrittenCheck::carry(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  Lanes found = f.carry_in ? of(warp).carry : 0;
  for (int i = 0; i < f.count; ++i) found |= any(warp, f.sources[static_cast<size_t>(i)]);
  set_all(warp, op, op.d, f.d_bytes, false, mask, found);
  if (f.carry_out) of(warp).carry = (of(warp).carry & ~mask) | (found & mask);
}

/// An element of D comes of its row of A, its column of B and its c.
void WrittenCheck::matrix(Warp& warp, const Op& op) {
  const MatrixElements elements(warp, op);
  const MatrixForm& form = elements.form();
  const int sums = form.sum_registers();
  const auto cell_bytes = static_cast<uint8_t>(form.sum == Element::f64 ? 8 : 4);
  // The event: of an operand, else of the sum so far.
  uint32_t event = 0;
  const auto missing = [&](Element element, const ElementPlace& at, bool operand) {
    const int bits = format_of(element).bits;
    if (at.slot < 0) {
      const Taken taken =
          take(warp, op, {no_slot, ptx::Space::shared, 0, at.shared}, static_cast<uint32_t>(bits / 8));
      if (!event) event = taken.event;
      return taken.missing != 0;
    }
    const Slot slot = op.slots[at.slot];
    const Lanes* states = bytes(warp, slot) + at.bit / 8;
    for (int i = 0; i < std::max(1, bits / 8); ++i) {
      if (!(states[i] >> at.lane & 1)) continue;
      if (!event) {
        event = event_of(warp, op, {slot, cell_bytes, false}, at.lane);
        if (operand && events_[event].through.empty())
          events_[event].through = opcode_of(*code_, op) + " at " + place_text(where(*code_, op));
      }
      return true;
    }
    return false;
  };
  bool all_written = true;
  for (int i = form.warpgroup && !elements.adds() ? sums : 0; i < op.slot_count && all_written; ++i)
    all_written = (i < sums && !form.warpgroup) || !any(warp, {op.slots[i], cell_bytes, false});
  std::vector<char> rows(form.rows), columns(static_cast<size_t>(form.columns()));
  if (!all_written || form.warpgroup) {
    for (int k = 0; k < form.k; ++k) {
      for (int row = 0; row < form.rows; ++row)
        rows[static_cast<size_t>(row)] |= missing(form.a, elements.a(row, k), true);
      for (int n = 0; n < form.columns(); ++n)
        columns[static_cast<size_t>(n)] |= missing(form.b, elements.b(k, n), true);
    }
  }
  if (all_written && !event) {
    for (int i = 0; i < sums; ++i) clear(warp, op.slots[i], cell_bytes, ~0u);
    return;
  }
  const int halves = form.sum == Element::f16 ? 2 : 1;
  std::vector<ByteLanes> states(static_cast<size_t>(sums));
  for (int i = 0; i < sums; ++i)
    for (int lane = 0; lane < 32; ++lane)
      for (int half = 0; half < halves; ++half) {
        const auto [row, n] = elements.place_in_sum(i, lane, half);
        const bool found = rows[static_cast<size_t>(row)] || columns[static_cast<size_t>(n)] ||
                           (elements.adds() && missing(form.sum, elements.c(row, n), false));
        if (!found) continue;
        const int first = halves == 2 ? 2 * half : 0, count = halves == 2 ? 2 : cell_bytes;
        for (int byte = first; byte < first + count; ++byte)
          states[static_cast<size_t>(i)][static_cast<size_t>(byte)] |= 1u << lane;
      }
  std::array<uint32_t, 32> events;
  events.fill(event);
  for (int i = 0; i < sums; ++i)
    put(warp, op.slots[i], cell_bytes, false, ~0u, states[static_cast<size_t>(i)], events);
}

}  // namespace assay::vm
