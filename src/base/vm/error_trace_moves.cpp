// Shadows that are moved: by what travels unchanged, and by integer work on words whose bits come out as they
// went in.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

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
  const int rounded = take([&](size_t, uint32_t word) {
    const double before = std::bit_cast<float>(word);
    return std::fabs(value - before) <= 0x1p-7 * std::fabs(before) && value != 0;
  });
  if (rounded < 0) return false;
  const double cut = std::bit_cast<float>(word_before(static_cast<size_t>(rounded), i)) - value;
  cells.error[to] += cut;
  if (!plan_.strict) cells.bound[to] += std::fabs(cut);
  return true;
}

// A word, or a half, that comes out as it went in carries its shadow. The high half of an f32 is a bf16 cut
// from it.
void ErrorTrace::bits(Warp& warp, const Op& op, uint32_t mask) {
  if (!bits_carry_) return mark(warp, op, ErrorKind::none, mask);
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
            cells, cuts ? low : at, word_before(k, static_cast<size_t>(lane)), from,
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
void ErrorTrace::move_half(const Cells& cells, size_t shadow, uint32_t word, size_t from, uint32_t made,
                           size_t to, bool fixed_sign) {
  scratch_.copy(to, cells, shadow);
  double value;
  if (scratch_.kind[to] == ErrorKind::f32) {
    scratch_.kind[to] = ErrorKind::bf16;
    value = std::bit_cast<float>(word & 0xffff0000u);
    const double cut = std::bit_cast<float>(word) - value;
    scratch_.error[to] += cut;
    if (!plan_.strict) scratch_.bound[to] += std::fabs(cut);
  } else {
    value = half_of(scratch_.kind[to], word >> (16 * from) & 0xffff);
  }
  set_sign(scratch_, to, value, half_of(scratch_.kind[to], made), fixed_sign);
}

/// visit(Places) for the cells of `mask`'s lanes, as many together as lie in one array.
template <class Visit>
[[gnu::always_inline]] inline void ErrorTrace::each_place(Warp& warp, const PlaceRow& row, uint32_t mask,
                                                          bool to_write, Visit visit) {
  Places places;
  places.mask = mask;
  if (row.slot != no_slot) {
    places.cells = &registers(warp), places.step = 32;
    const size_t first = cell(row.slot, static_cast<int>(row.offset / 2), 0);
    for (size_t lane = 0; lane < 32; ++lane) places.at[lane] = first + lane;
    if (row.at || row.lanes)
      each_lane(mask, [&](int lane) {
        const BytePlace at = row.of(lane);
        places.at[lane] = cell(at.slot, static_cast<int>(at.at / 2), at.lane);
      });
    return visit(places);
  }
  if (row.space == ptx::Space::shared || row.space == ptx::Space::local) {
    const auto first = cells_.place(warp.index, 0, row.space, row.offset);
    const auto next = cells_.place(warp.index, 1, row.space, row.offset);
    places.cells = first.cells;
    each_lane(mask, [&](int lane) {
      places.at[lane] =
          first.at + static_cast<size_t>(lane) * (next.at - first.at) + (row.at ? row.at[lane] / 2 : 0);
    });
    return visit(places);
  }
  for (uint32_t rest = mask; rest; rest &= ~places.mask) {
    const auto page = plan_.memory->page(row.of(std::countr_zero(rest)).at, to_write, area_hint_);
    places.cells = page.cells, places.mask = 0;
    each_lane(rest, [&](int lane) {
      const uint64_t byte = row.of(lane).at - page.first;
      places.mask |= static_cast<uint32_t>(byte < page.bytes) << lane;
      places.at[lane] = byte / 2;
    });
    visit(places);
  }
}

/// `bytes` bytes of memory are about to change: ends the shadows of values that reach into them from before.
void ErrorTrace::overwrite(const Places& to, uint32_t bytes) {
  ErrorKind* kinds = to.cells->kind.get();
  const ErrorKind rest = plan_.strict ? ErrorKind::lost : ErrorKind::none;
  each_lane(to.mask, [&](int lane) {
    const size_t at = to.at[lane], wide = at & ~size_t{3};
    if (bytes < 8 && kinds[wide] == ErrorKind::f64) std::fill_n(kinds + wide, 4, rest);
    if (bytes < 4 && (at & 1) && kinds[at - 1] == ErrorKind::f32) kinds[at - 1] = kinds[at] = rest;
    if (bytes == 2 && kinds[at] == ErrorKind::f32) kinds[at + 1] = rest;
    for (uint32_t half = 0; half < bytes / 2; ++half) kinds[at + half] = ErrorKind::none;
    if (bytes == 1 && kinds[at] != ErrorKind::none) kinds[at] = rest;
  });
}

/// Shadows of values, half by half: of a part of one, which then begins nowhere, no value is found. A byte of
/// one is lost, and the half that it goes to. `from` without cells: nothing comes.
void ErrorTrace::put(const Places& to, const Places& from, uint32_t bytes) {
  for (size_t half = 0, halves = std::max<size_t>(bytes / 2, 1); half < halves; ++half) {
    const size_t ahead = half * to.step, behind = half * from.step;
    ErrorKind taken[32] = {};
    if (from.cells) {
      const ErrorKind* const known = from.cells->kind.get() + behind;
      each_lane(to.mask, [&](int lane) { taken[lane] = known[from.at[lane]]; });
    }
    if (astray_) std::fill_n(taken, 32, ErrorKind::lost);
    ErrorKind* const kinds = to.cells->kind.get() + ahead;
    if (bytes == 1) {
      each_lane(to.mask, [&](int lane) {
        if (taken[lane] != ErrorKind::none)
          kinds[to.at[lane]] = plan_.strict ? ErrorKind::lost : ErrorKind::none;
      });
      return;
    }
    each_lane(to.mask, [&](int lane) { kinds[to.at[lane]] = taken[lane]; });
    if (is_all(taken, ErrorKind::none) || is_all(taken, ErrorKind::tail)) continue;
    each_lane(to.mask, [&](int lane) {
      if (is_shadowed(taken[lane]))
        to.cells->copy_values(to.at[lane] + ahead, *from.cells, from.at[lane] + behind);
    });
  }
}

/// What a strict trace does not follow, in memory.
void ErrorTrace::lose(const Places& at, uint32_t lanes, uint32_t bytes) {
  if (!plan_.strict || !at.cells) return;
  each_lane(lanes, [&](int lane) {
    std::fill_n(&at.cells->kind[at.at[lane]], std::max(bytes / 2, 1u), ErrorKind::lost);
  });
}

void ErrorTrace::move(Warp& warp, const TransferRow& row) {
  each_place(warp, row.from, row.mask, false, [&](const Places& from) {
    each_place(warp, row.to, from.mask, true, [&](const Places& to) {
      if (!to.cells) return;
      if (row.to.slot == no_slot) overwrite(to, row.bytes);
      put(to, from, row.bytes);
    });
  });
}

/// mov.b32 {low, high}, word: of an f32 the high half is the bf16 cut from it.
void ErrorTrace::unpack(Warp& warp, const Op& op, uint32_t mask) {
  Cells& cells = registers(warp);
  each_lane(mask, [&](int lane) {
    const size_t first = cell(op.s[0], 0, lane), kept = static_cast<size_t>(lane);
    const bool cuts = cells.find(first, 32, ErrorKind::f32, false) == first;
    scratch_.copy(kept, cells, first), scratch_.copy(kept + 32, cells, first + 32);
    if (!cuts) return;
    scratch_.kind[kept] = plan_.strict ? ErrorKind::lost : ErrorKind::none;
    const uint32_t word = warp.word(op.s[0])[lane];
    move_half(cells, first, word, 1, word >> 16, kept + 32, false);
  });
  for (size_t half = 0; half < 2; ++half) {
    if (op.slots[half] == no_slot) continue;
    each_lane(mask, [&](int lane) {
      cells.copy(cell(op.slots[half], 0, lane), scratch_, 32 * half + static_cast<size_t>(lane));
      cells.kind[cell(op.slots[half], 1, lane)] = ErrorKind::none;
    });
  }
}

void ErrorTrace::carry(Warp& warp, const Op& op, uint32_t mask) {
  const Executed done = executed(warp, op, mask);
  const Signature& signature = *done.signature;
  const Flow flow = signature.flow();
  if (flow == Flow::unpack && op.element_bytes == 2 && op.slot_count == 2) return unpack(warp, op, mask);
  const bool whole = flow == Flow::copy || flow == Flow::select;  // of one lane's cell
  if (whole || reaches_memory(signature) || copies_parameters(signature)) {
    if (flow == Flow::load && op.element_bytes < bytes_of(signature.writes[0].cell))
      mark(warp, op, ErrorKind::none, mask);
    return each_row(done, [&](const TransferRow& row) { move(warp, row); });
  }
  Places staged{&scratch_, ~0u, 32, {}};  // before a destination changes that is a source too
  const auto stage = [&](size_t first) { std::iota(staged.at, staged.at + 32, first); };
  size_t rows = 0;
  each_row(done, [&](const TransferRow& row) {
    each_place(warp, row.from, row.mask, false, [&](const Places& from) {
      stage(rows), staged.mask = from.mask;
      put(staged, from, row.bytes);
    });
    rows += 32 * (row.bytes / 2);
  });
  mark(warp, op, ErrorKind::none, mask);
  rows = 0;
  each_row(done, [&](const TransferRow& row) {
    each_place(warp, row.to, row.mask, true, [&](const Places& to) {
      stage(rows), staged.mask = to.mask;
      put(to, staged, row.bytes);
    });
    rows += 32 * (row.bytes / 2);
  });
}

void ErrorTrace::landed(Warp& warp, const Landing& landing) {
  each_row(landing, [&](const TransferRow& row) {
    each_place(warp, row.to, row.mask, true, [&](const Places& to) {
      overwrite(to, landing.bytes);
      if (landing.combines) lose(to, to.mask, landing.bytes);
    });
    if (!landing.combines && row.bytes > 0) move(warp, row);  // 0: all of the piece is zeros
  });
}

/// Of rounded values, or upon one: the order is not known in which the others came.
void ErrorTrace::atomic(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t lost = not_plain(warp, op, mask) | (ptx::is_float(op.type) || astray_ ? mask : 0);
  const PlaceRow memory{no_slot, warp.space, 0, warp.address};
  each_place(warp, memory, mask, false, [&](const Places& at) {
    if (!at.cells) return;
    each_lane(at.mask, [&](int lane) {
      for (size_t half = 0; half < std::max(op.element_bytes / 2u, 1u); ++half)
        lost |= static_cast<uint32_t>(at.cells->kind[at.at[lane] + half] != ErrorKind::none) << lane;
    });
  });
  each_place(warp, memory, mask, true, [&](const Places& at) {
    if (!at.cells) return;
    overwrite(at, op.element_bytes);
    lose(at, at.mask & lost, op.element_bytes);
  });
  mark(warp, op, ErrorKind::none, mask);
  if (plan_.strict) mark(warp, op, ErrorKind::lost, lost);
}

}  // namespace assay::vm
