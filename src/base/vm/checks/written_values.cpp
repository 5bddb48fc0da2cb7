// States through registers: what of a result was never written.
#include <algorithm>
#include <bit>

#include "src/base/vm/checks/written_check.h"
#include "src/base/vm/influence.h"
#include "src/base/vm/matrix_elements.h"

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
  each_lane(mask, [&](int lane) { found |= static_cast<uint32_t>(holds(lane) ? 1u : 0u) << lane; });
  return found;
}

}  // namespace

/// Nothing is said about it: the result is written.
void WrittenCheck::forget(Warp& warp, const Op& op, const Facts&, uint32_t mask, Lanes) {
  clear(warp, op, mask);
}

void WrittenCheck::plain(Warp& warp, const Op& op, const Facts&, uint32_t mask, Lanes found) {
  for (const Use& to : signature(op).writes) set_all(warp, op, whole(to), mask, found);
}

/// A vote, match or sum over lanes depends on all that take part.
void WrittenCheck::vote(Warp& warp, const Op& op, const Facts& f, uint32_t mask, Lanes) {
  plain(warp, op, f, mask, ~Lanes{0});
}

/// Each byte of the result comes of the bytes of the sources that reach it; those that a written byte masks
/// away do not.
void WrittenCheck::by_byte(Warp& warp, const Op& op, const Facts& f, uint32_t mask, Lanes) {
  SourceBits sources(warp, op);
  for (size_t i = 0; i < f.sources.size(); ++i)
    for (int byte = 0; byte < f.sources[i].bytes; ++byte)
      each_lane(bytes(warp, f.sources[i].slot)[byte],
                [&](int lane) { sources.open[i][static_cast<size_t>(lane)] |= uint64_t{0xff} << 8 * byte; });
  ByteLanes states{};
  for (size_t i = 0; i < f.sources.size(); ++i) {
    const LaneBits reached = influence(op, signature(op), sources, static_cast<int>(i), sources.open[i]);
    for (size_t byte = 0; byte < f.d.bytes; ++byte)
      states[byte] |= lanes_where(
          mask, [&](int lane) { return (reached[static_cast<size_t>(lane)] >> 8 * byte & 0xff) != 0; });
  }
  set(warp, op, f.d, mask, states);
}

/// An integer product with a written zero is zero.
void WrittenCheck::multiply(Warp& warp, const Op& op, const Facts& f, uint32_t mask, Lanes) {
  const auto zero = [&](const Register& source, Lanes lanes) {
    return lanes_where(lanes, [&](int lane) { return value_of(warp, source.slot, lane, source.bytes) == 0; });
  };
  const Lanes a = any(warp, f.sources[0]), b = any(warp, f.sources[1]);
  Lanes found = (a | b) & mask;
  found &= ~zero(f.sources[1], found & ~b) & ~zero(f.sources[0], found & ~a);
  if (f.sources.size() > 2) found |= any(warp, f.sources[2]);
  set_all(warp, op, f.d, mask, found);
}

/// and.pred, or.pred: a written side may decide alone.
void WrittenCheck::predicates(Warp& warp, const Op& op, const Facts& f, uint32_t mask, Lanes) {
  const Lanes a = any(warp, f.sources[0]), b = any(warp, f.sources[1]);
  const uint32_t flip =
      signature(op).form.operation == ptx::Operation::or_ ? 0 : ~0u;  // ones or zeros decide
  const Lanes decided = (~a & (warp.mask(op.s[0]) ^ flip)) | (~b & (warp.mask(op.s[1]) ^ flip));
  set_all(warp, op, f.d, mask, (a | b) & ~decided);
}

/// p = cmp bool c, q = !cmp bool c: `and` with a written false and `or` with a written true decide.
void WrittenCheck::compare(Warp& warp, const Op& op, const Facts& f, uint32_t mask, Lanes) {
  Lanes compared = 0;
  for (const Register& source : f.sources)
    if (source.slot != op.s[2] || op.boolean == BooleanOp::none) compared |= any(warp, source);
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
  set_all(warp, op, {op.d, 1, true}, mask, first);
  if (op.d2 != no_slot) set_all(warp, op, {op.d2, 1, true}, mask, second);
}

/// add.cc and its kin: the flag is a source and a result.
void WrittenCheck::carry(Warp& warp, const Op& op, const Facts& f, uint32_t mask, Lanes found) {
  Lanes& flag = of(warp).carry;
  if (signature(op).form.carry_in) found |= flag;
  set_all(warp, op, f.d, mask, found);
  if (signature(op).form.carry_out) flag = (flag & ~mask) | (found & mask);
}

/// An element of D comes of its row of A, its column of B and its c.
void WrittenCheck::matrix(Warp& warp, const Op& op, uint32_t) {
  const MatrixElements elements(warp, op);
  const MatrixForm& form = elements.form();
  const int sums = form.sum_registers(), cell_bytes = form.sum == Element::f64 ? 8 : 4;
  const auto register_at = [&](int i) {
    return Register{op.slots[i], static_cast<uint8_t>(cell_bytes), false};
  };
  bool in_registers = false;
  for (int i = form.warpgroup && !elements.adds() ? sums : 0; i < op.slot_count && !in_registers; ++i)
    in_registers = (i >= sums || form.warpgroup) && any(warp, register_at(i));
  if (!in_registers && all_written(warp, op, ~0u)) return;
  // All operands before any of D changes: it may lie where C does.
  uint32_t event = 0;  // of the first operand, else of the sum so far
  std::vector<char> rows(form.rows), columns(static_cast<size_t>(form.columns()));
  std::vector<ByteLanes> states(static_cast<size_t>(sums));
  const auto spoil_sum = [&](const ElementPlace& at) {
    for (int byte = at.bit / 8; byte < (at.bit + format_of(form.sum).bits) / 8; ++byte)
      states[static_cast<size_t>(at.slot)][static_cast<size_t>(byte)] |= 1u << at.lane;
  };
  std::vector<Lanes> unwritten(op.slot_count);
  for (int i = 0; i < op.slot_count; ++i) unwritten[static_cast<size_t>(i)] = any(warp, register_at(i));
  const auto lacks = [&](int first, int count) {
    const Lanes* const begin = unwritten.data() + first;
    return std::any_of(begin, begin + count, [](Lanes lanes) { return lanes != 0; });
  };
  const int first_b = sums + form.a_registers(), first_c = first_b + form.b_registers();
  const MatrixElements::Asked asked{.a = form.a_in_shared || lacks(sums, form.a_registers()),
                                    .b = form.warpgroup || lacks(first_b, form.b_registers()),
                                    .c = lacks(form.warpgroup ? 0 : first_c, sums)};
  const auto is_known = [&](char operand, int row, int column, const ElementPlace& at) {
    return ((operand == 'A' && rows[static_cast<size_t>(row)]) ||
            (operand == 'B' && columns[static_cast<size_t>(column)])) &&
           origin(warp, register_at(at.slot), at.lane);
  };
  const auto note = [&](char operand, int row, int column, Element element, const ElementPlace& at) {
    if (at.slot >= 0 && !(unwritten[static_cast<size_t>(at.slot)] >> at.lane & 1)) return;
    // A row or column that is spoiled already, by what makes no event of its own.
    if (at.slot >= 0 && event && is_known(operand, row, column, at)) return;
    const BytePlace from = place_of(op, at);
    const int count = std::max(1, format_of(element).bits / 8);
    const Taken taken = take(warp, op, from, static_cast<uint32_t>(count));
    if (!taken.missing) return;
    if (operand == 'A') rows[static_cast<size_t>(row)] = 1;
    if (operand == 'B') columns[static_cast<size_t>(column)] = 1;
    if (operand == 'C') spoil_sum(elements.d(row, column));
    if (event) return;
    event = taken.event;
    if (operand != 'C' && from.slot != no_slot && events_[event].through.empty())
      events_[event].through = opcode_of(*code_, op) + " at " + source_place(where(*code_, op));
  };
  elements.each_operand(note, asked);
  for (int row = 0; row < form.rows && form.sparse; ++row)
    for (int i = 0; i < form.a_depth(); ++i) {
      const BytePlace from{op.slots[op.slot_count - 1], {}, metadata_lane(form, row, i), 0};
      const Taken metadata = take(warp, op, from, 4);
      if (!metadata.missing) continue;
      rows[static_cast<size_t>(row)] = 1;
      if (!event) event = metadata.event;
    }
  const auto spoiled = [](const std::vector<char>& lines) {
    return std::find(lines.begin(), lines.end(), 1) != lines.end();
  };
  if (spoiled(rows) || spoiled(columns))
    elements.each_sum([&](int row, int n, const ElementPlace& at) {
      if (rows[static_cast<size_t>(row)] || columns[static_cast<size_t>(n)]) spoil_sum(at);
    });
  Events events;
  events.fill(event);
  for (int i = 0; i < sums; ++i) put(warp, register_at(i), ~0u, states[static_cast<size_t>(i)], events);
}

}  // namespace assay::vm
