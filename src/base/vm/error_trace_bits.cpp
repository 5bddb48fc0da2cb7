// Shadows through integer work on words whose bits come out as they went in: shifts, masks, signs.
#include <algorithm>
#include <bit>
#include <cmath>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/error_trace.h"

namespace assay::vm {

void ErrorTrace::prepare_bits(Warp& warp, const Op& op, uint32_t mask) {
  bits_carry_ = not_plain(warp, op, mask) != 0;
  if (!bits_carry_) return;
  inverted_known_ = 0;
  before_ = SourceBits(warp, op);
  if (plan_.strict) prepare_exact_result(warp, op, mask);
}

/// Of its sources the smaller or larger, by all their bits.
bool ErrorTrace::chooses(const Op& op) const {
  const ptx::Operation operation = code_->signature(op).form.operation;
  return operation == ptx::Operation::min || operation == ptx::Operation::max;
}

/// What the op makes where all bits of one half of one source are inverted.
const LaneBits& ErrorTrace::inverted(const Op& op, size_t source, size_t from) {
  const uint32_t known = 1u << (2 * source + from);
  LaneBits& made = inverted_[source][from];
  if (inverted_known_ & known) return made;
  inverted_known_ |= known;
  SourceBits sources = before_;
  for (uint64_t& bits : sources.value[source]) bits ^= uint64_t{0xffff} << (16 * from);
  return made = result_of(op, sources);
}

/// Does half `from` of the source come out as half `to`, but for its sign? Then its inverse arrives where it
/// is inverted: equal bits alone may be two neighbours that round to the same.
ErrorTrace::Travel ErrorTrace::travel(const Op& op, size_t source, size_t from, size_t to, uint32_t made,
                                      int lane) {
  if (!op.lanes || op.source_count > 3 || cell_of(op.row->sources[source]) != Cell::word || chooses(op))
    return Travel::reaches;
  const auto at = static_cast<size_t>(lane);
  const uint64_t before = before_.value[source][at] >> (16 * from), after = made >> (16 * to),
                 other = inverted(op, source, from)[at] >> (16 * to);
  const bool same = ((before ^ after) & 0x7fff) == 0, follows = ((before ^ other) & 0x7fff) == 0x7fff;
  if (same && follows) return Travel::moves;
  const bool adds = op.row->flow == Flow::integer;  // a carry may come another time
  return adds || ((after ^ other) & 0xffff) ? Travel::reaches : Travel::none;
}

/// The shadow in the cell is that of `from`, and now of -from, of |from| or of -|from|; `fixed`: the sign is
/// what it is, whatever that of `from`.
void ErrorTrace::set_sign(Cells& cells, size_t at, double from, double made, bool fixed) const {
  const double exact = from + cells.error[at];
  double turns = std::signbit(from) != std::signbit(made) ? -1 : 1;
  if (fixed && std::signbit(exact) != std::signbit(from)) turns = -turns;
  cells.error[at] = turns * cells.error[at] + (turns * from - made);  // not of `exact`, which is rounded
  for (int p = 0; p < plan_.parts && turns < 0; ++p) {
    double& part = cells.part(p)[at];
    part = -part;
  }
}

/// What was rounded to an integer by an addition (round_to_integer): its last places count ones, and what is
/// added to its bits is no rounding.
bool ErrorTrace::is_chosen_integer(const Cells& cells, size_t at, double value) {
  return cells.error[at] == 0 && cells.bound[at] == 0 && std::fabs(value) >= 0x1p23 &&
         std::fabs(value) < 0x1p24;
}

/// A whole f32 that comes out as it went in, its sign aside; or changed by less than a bf16's last places,
/// which rounds it: a mask that cuts, the addition before it.
bool ErrorTrace::keep_float(Warp& warp, const Op& op, int lane) {
  Cells& cells = registers(warp);
  const auto i = static_cast<size_t>(lane);
  const size_t to = cell(op.d, 0, lane);
  const uint32_t made = warp.word(op.d)[lane];
  // The result takes the shadow of the first source that is(source, word); its number, -1: of none.
  const auto take = [&](auto is) {
    for (size_t k = 0; k < op.source_count && k < 3; ++k) {
      if (op.s[k] == no_slot || cell_of(op.row->sources[k]) != Cell::word) continue;
      const size_t at = cell(op.s[k], 0, lane);
      if (cells.find(at, 32, ErrorKind::f32, false) != at || !is(k, word_before(k, i))) continue;
      cells.copy(to, cells, at);
      cells.kind[to + 32] = ErrorKind::tail;
      return static_cast<int>(k);
    }
    return -1;
  };
  const auto differ = [](uint64_t x, uint64_t y) { return (x ^ y) & 0x7fffffff; };
  const double value = std::bit_cast<float>(made);
  const int kept = take([&](size_t k, uint32_t word) {
    return op.lanes && !differ(word, made) && differ(inverted(op, k, 0)[i], made) == 0xffff &&
           differ(inverted(op, k, 1)[i], made) == 0x7fff0000;
  });
  if (kept >= 0) {
    const auto k = static_cast<size_t>(kept);
    set_sign(cells, to, std::bit_cast<float>(word_before(k, i)), value,
             !((inverted(op, k, 1)[i] ^ made) >> 31));
    return true;
  }
  const int rounded = take([&](size_t k, uint32_t word) {
    const double before = std::bit_cast<float>(word);
    if (is_chosen_integer(cells, cell(op.s[k], 0, lane), before)) return false;
    return std::fabs(value - before) <= 0x1p-7 * std::fabs(before) && value != 0;
  });
  if (rounded < 0) return false;
  const double cut = std::bit_cast<float>(word_before(static_cast<size_t>(rounded), i)) - value;
  note_cut(op, cells, to, cut, value);
  return true;
}

/// What an op cuts off is its own rounding.
void ErrorTrace::note_cut(const Op& op, Cells& cells, size_t cell, double cut, double value) {
  cells.error[cell] += cut;
  if (cut == 0 || plan_.strict) return;
  cells.bound[cell] += std::fabs(cut);
  if (plan_.counts()) {
    OpErrors::OfOp& seen = counts.ops[op_index(op)];
    ++seen.roundings;
    if (value != 0) seen.largest = std::max(seen.largest, std::fabs(cut / value));
  }
  const int own = plan_.part_of_op.empty() ? -1 : plan_.part_of_op[op_index(op)];
  if (own >= 0) cells.part(own)[cell] += cut;
}

// A word, or a half, that comes out as it went in carries its shadow. The high half of an f32 is a bf16 cut
// from it.
void ErrorTrace::bits(Warp& warp, const Op& op, uint32_t mask) {
  if (!bits_carry_) return mark(warp, op, ErrorKind::none, mask);
  for (int half = 0; half < 2; ++half) registers(warp).touch_row(cell(op.d, half, 0));
  each_lane(mask, [&](int lane) { move_bits(warp, op, lane); });
}

void ErrorTrace::move_bits(Warp& warp, const Op& op, int lane) {
  if (!chooses(op) && keep_float(warp, op, lane)) return;
  Cells& cells = registers(warp);
  const uint32_t made = warp.word(op.d)[lane];
  for (size_t to = 0; to < 2; ++to) {
    const size_t kept = 32 * to + static_cast<size_t>(lane);
    int moved = 0, reached = 0;
    scratch_.kind[kept] = ErrorKind::none;
    for (size_t k = 0; k < op.source_count; ++k) {
      if (op.s[k] == no_slot) continue;
      const Cell source = cell_of(op.row->sources[k]);
      for (size_t from = 0; from < bytes_of(source) / 2; ++from) {
        const size_t at = cell(op.s[k], static_cast<int>(from), lane);
        if (cells.kind[at] == ErrorKind::none) continue;
        const Travel way =
            k < 3 && source == Cell::word ? travel(op, k, from, to, made, lane) : Travel::reaches;
        reached += way != Travel::none;
        const size_t low = from == 1 ? at - 32 : at;
        const bool cuts = from == 1 && cells.find(low, 32, ErrorKind::f32, false) == low,
                   whole = cells.kind[at] == ErrorKind::f16 || cells.kind[at] == ErrorKind::bf16;
        if (way != Travel::moves || !(cuts || whole)) continue;
        ++moved;
        move_half(
            op, cells, cuts ? low : at, word_before(k, static_cast<size_t>(lane)), from,
            made >> (16 * to) & 0xffff, kept,
            !((inverted(op, k, from)[static_cast<size_t>(lane)] >> (16 * to) ^ made >> (16 * to)) & 0x8000));
      }
    }
    if (reached > 1 || moved == 0) scratch_.kind[kept] = ErrorKind::none;
    if (plan_.strict && reached > 0 && scratch_.kind[kept] == ErrorKind::none && !(unchanged_ >> lane & 1))
      scratch_.kind[kept] = ErrorKind::lost, note_loss(op);
  }
  for (size_t to = 0; to < 2; ++to)
    cells.copy(cell(op.d, static_cast<int>(to), lane), scratch_, 32 * to + static_cast<size_t>(lane));
}

/// The shadow of half `from` of a word, of an f32 the bf16 cut from it, as that of `made`.
void ErrorTrace::move_half(const Op& op, const Cells& cells, size_t shadow, uint32_t word, size_t from,
                           uint32_t made, size_t to, bool fixed_sign) {
  scratch_.copy(to, cells, shadow);
  double value;
  if (scratch_.kind[to] == ErrorKind::f32) {
    scratch_.kind[to] = ErrorKind::bf16;
    value = std::bit_cast<float>(word & 0xffff0000u);
    note_cut(op, scratch_, to, std::bit_cast<float>(word) - value, value);
  } else {
    value = half_of(scratch_.kind[to], word >> (16 * from) & 0xffff);
  }
  set_sign(scratch_, to, value, half_of(scratch_.kind[to], made), fixed_sign);
}

}  // namespace assay::vm
