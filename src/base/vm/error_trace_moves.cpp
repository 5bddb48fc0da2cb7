// Shadows that are moved: by what travels unchanged, and by integer work on words whose bits come out as they
// went in.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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

/// Bytes between lanes whose cells are said to lie evenly.
constexpr uint64_t kFurthestApart = 1 << 20;

/// visit(Places&) for the cells of `mask`'s lanes, as many together as lie in one array.
template <class Visit>
[[gnu::always_inline]] inline void ErrorTrace::each_place(Warp& warp, const PlaceRow& row, uint32_t mask,
                                                          bool to_write, Visit visit) {
  Places places;
  places.mask = mask;
  if (row.slot != no_slot) {
    places.cells = &registers(warp), places.step = 32, places.in_registers = true;
    places.lie_evenly(cell(row.slot, static_cast<int>(row.offset / 2), 0), 1);
    if (row.at || row.lanes) {
      places.stride = Places::kApart;
      each_lane(mask, [&](int lane) {
        const BytePlace at = row.of(lane);
        places.at[lane] = cell(at.slot, static_cast<int>(at.at / 2), at.lane);
      });
    }
    return visit(places);
  }
  // One stride, in bytes, for the first lanes, and no others; else none.
  const size_t lanes = mask & (mask + 1) ? 0 : static_cast<size_t>(std::popcount(mask));
  const auto stride_of = [&]() -> ptrdiff_t {
    if (lanes == 0) return Places::kApart;
    if (!row.at || lanes == 1) return 0;
    const uint64_t apart = row.at[1] - row.at[0];
    uint64_t uneven = apart & 1;
    for (size_t lane = 0; lane < lanes; ++lane) uneven |= row.at[lane] ^ (row.at[0] + lane * apart);
    return uneven || apart > kFurthestApart ? Places::kApart : static_cast<ptrdiff_t>(apart);
  };
  const ptrdiff_t stride = stride_of();
  if (row.space == ptx::Space::shared || row.space == ptx::Space::local) {
    const auto first = cells_.place(warp.index, 0, row.space, row.offset);
    const auto next = cells_.place(warp.index, 1, row.space, row.offset);
    const size_t of_lane = next.at - first.at;
    places.cells = first.cells;
    if (stride != Places::kApart)
      places.lie_evenly(first.at + (row.at ? row.at[0] / 2 : 0),
                        stride / 2 + static_cast<ptrdiff_t>(of_lane));
    else
      each_lane(mask, [&](int lane) {
        places.at[lane] = first.at + static_cast<size_t>(lane) * of_lane + (row.at ? row.at[lane] / 2 : 0);
      });
    return visit(places);
  }
  for (uint32_t rest = mask; rest; rest &= ~places.mask) {
    const auto page = plan_.memory->page(row.of(std::countr_zero(rest)).at, to_write, area_hint_);
    places.cells = page.cells, places.mask = 0, places.stride = Places::kApart;
    const uint64_t begin = row.of(0).at - page.first;
    if (rest == mask && stride != Places::kApart && begin < page.bytes &&
        begin + (lanes - 1) * static_cast<uint64_t>(stride) < page.bytes) {
      places.mask = mask;
      places.lie_evenly(begin / 2, stride / 2);
      return visit(places);
    }
    each_lane(rest, [&](int lane) {
      const uint64_t byte = row.of(lane).at - page.first;
      places.mask |= static_cast<uint32_t>(byte < page.bytes) << lane;
      places.at[lane] = byte / 2;
    });
    visit(places);
  }
}

/// Ends the shadows of values in memory that reach from before into the `bytes` bytes at each place.
void ErrorTrace::end_reached(Places& to, uint32_t bytes) const {
  ErrorKind* const kinds = to.cells->kind.get();
  if (!to.cells->may_hold() || (bytes >= 4 && !(plan_.wide && bytes < 8))) return;
  to.list();
  const ErrorKind rest = plan_.strict ? ErrorKind::lost : ErrorKind::none;
  each_lane(to.mask, [&](int lane) {
    const size_t at = to.at[lane], wide = at & ~size_t{3};
    if (plan_.wide && kinds[wide] == ErrorKind::f64) std::fill_n(kinds + wide, 4, rest);
    if (bytes < 4 && (at & 1) && kinds[at - 1] == ErrorKind::f32) kinds[at - 1] = kinds[at] = rest;
    if (bytes == 2 && kinds[at] == ErrorKind::f32) kinds[at + 1] = rest;
    if (bytes == 1 && kinds[at] != ErrorKind::none) kinds[at] = rest;
  });
}

/// `bytes` bytes of memory are about to change.
void ErrorTrace::overwrite(Places& to, uint32_t bytes) {
  end_reached(to, bytes);
  if (!to.cells->may_hold()) return;
  to.list();
  ErrorKind* const kinds = to.cells->kind.get();
  each_lane(to.mask, [&](int lane) { std::fill_n(kinds + to.at[lane], bytes / 2, ErrorKind::none); });
}

namespace {

/// Of the first lanes, in their order: what two write, the later one does.
void copy_evenly(size_t lanes, double* to, ptrdiff_t to_stride, const double* from, ptrdiff_t from_stride) {
  if (to_stride == 1 && from_stride == 1)
    std::memmove(to, from, lanes * sizeof *to);
  else if (to_stride == 1 && from_stride == 0)
    std::fill_n(to, lanes, *from);
  else if (to_stride == 1 && from_stride == 2)
    for (size_t lane = 0; lane < lanes; ++lane) to[lane] = from[2 * lane];
  else if (to_stride == 2 && from_stride == 1)
    for (size_t lane = 0; lane < lanes; ++lane) to[2 * lane] = from[lane];
  else
    for (ptrdiff_t lane = 0; lane < static_cast<ptrdiff_t>(lanes); ++lane)
      to[lane * to_stride] = from[lane * from_stride];
}

/// visit(to, from, part): errors, bounds (part -1) and every part.
template <class Cells, class Visit>
void each_array(Cells& to, const Cells& from, Visit visit) {
  visit(to.error.get(), from.error.get(), -1);
  visit(to.bound.get(), from.bound.get(), -1);
  for (int p = 0; p < to.parts; ++p) visit(to.part(p), from.part(p), p);
}

bool is_zero(const double* x, size_t count) {
  uint64_t seen = 0;
  for (size_t i = 0; i < count; ++i) seen |= std::bit_cast<uint64_t>(x[i]) << 1;
  return seen == 0;
}

}  // namespace

/// `kind` for half `half` of each value, all of which are of it.
void ErrorTrace::put_kind(Places& to, size_t half, ErrorKind kind) const {
  const size_t lanes = to.even_lanes(), ahead = to.first + half * to.step;
  if (to.is_row()) {
    uint8_t& plain = to.cells->plain[ahead / Cells::kRow];
    if (kind == ErrorKind::none && plain) return;
    plain = kind == ErrorKind::none && lanes == 32;
  } else if (!to.in_registers) {
    if (kind == ErrorKind::none && !to.cells->may_hold()) return;
    if (kind != ErrorKind::none) to.cells->begin_to_hold();
  }
  ErrorKind* const kinds = to.cells->kind.get();
  if (lanes > 0 && to.stride == 1) {
    std::fill_n(kinds + ahead, lanes, kind);
    return;
  }
  to.list();
  each_lane(to.mask, [&](int lane) {
    const size_t at = to.at[lane] + half * to.step;
    kinds[at] = kind;
    if (to.in_registers && !to.is_row()) to.cells->touch_row(at);
  });
}

/// Where lanes lie evenly and are of one kind. False: they are not.
bool ErrorTrace::put_evenly(Places& to, const Places& from, size_t half) const {
  const size_t lanes = to.even_lanes(), ahead = to.first + half * to.step,
               behind = from.first + half * from.step;
  if (lanes == 0 || from.stride == Places::kApart) return false;
  const ErrorKind* const known = from.cells->kind.get() + behind;
  const ErrorKind kind = *known;
  uint8_t others = 0;
  if (from.stride == 1 && lanes == 32)
    others = !is_all(known, kind);
  else
    for (ptrdiff_t lane = 1; lane < static_cast<ptrdiff_t>(lanes) && from.stride != 0; ++lane)
      others |= known[lane * from.stride] != kind;
  if (others) return false;
  put_kind(to, half, kind);
  if (!is_shadowed(kind)) return true;
  const bool is_row = to.is_row();
  uint32_t parted = 0;
  each_array(*to.cells, *from.cells, [&](double* made, const double* source, int p) {
    copy_evenly(lanes, made + ahead, to.stride, source + behind, from.stride);
    if (p >= 0 && is_row) parted |= static_cast<uint32_t>(!is_zero(made + ahead, lanes)) << p;
  });
  if (!is_row) return true;
  if (lanes < 32) parted |= to.cells->parted[ahead / Cells::kRow];
  to.cells->note_parts(ahead, parted);
  return true;
}

/// All lanes, of one kind, to or from a row of registers. False: they are not.
bool ErrorTrace::put_whole(Places& to, Places& from, size_t half) const {
  if (to.mask != ~0u || !(to.is_row() || from.is_row())) return false;
  const size_t behind = half * from.step, ahead = half * to.step;
  to.list(), from.list();
  const ErrorKind* const known = from.cells->kind.get() + behind;
  const ErrorKind kind = known[from.at[0]];
  uint8_t others = 0;
  for (size_t lane = 0; lane < 32; ++lane) others |= known[from.at[lane]] != kind;
  if (others) return false;
  put_kind(to, half, kind);
  if (!is_shadowed(kind)) return true;
  const size_t row = to.first + ahead;
  uint32_t parted = 0;
  each_array(*to.cells, *from.cells, [&](double* made, const double* source, int p) {
    if (!to.is_row()) {
      const double* const source_row = source + from.first + behind;
      for (size_t lane = 0; lane < 32; ++lane) made[to.at[lane] + ahead] = source_row[lane];
      return;
    }
    for (size_t lane = 0; lane < 32; ++lane) made[row + lane] = source[from.at[lane] + behind];
    if (p >= 0) parted |= static_cast<uint32_t>(!is_zero(made + row, 32)) << p;
  });
  if (to.is_row()) to.cells->note_parts(row, parted);
  return true;
}

/// Lane by lane.
void ErrorTrace::put_lanes(Places& to, Places& from, size_t half) const {
  const size_t ahead = half * to.step, behind = half * from.step;
  to.list(), from.list();
  const ErrorKind* const known = from.cells->kind.get();
  ErrorKind* const kinds = to.cells->kind.get();
  size_t made_at[32], known_at[32], shadowed = 0;
  bool some = false;
  for (uint32_t rest = to.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    made_at[shadowed] = to.at[lane] + ahead, known_at[shadowed] = from.at[lane] + behind;
    const ErrorKind kind = kinds[made_at[shadowed]] = known[known_at[shadowed]];
    some |= kind != ErrorKind::none;
    if (to.in_registers && !to.is_row()) to.cells->touch_row(made_at[shadowed]);
    shadowed += is_shadowed(kind);
  }
  if (some && to.is_row()) to.cells->touch_row(to.first + ahead);
  if (some && !to.in_registers) to.cells->begin_to_hold();
  if (shadowed == 0) return;
  each_array(*to.cells, *from.cells, [&](double* made, const double* source, int) {
    for (size_t i = 0; i < shadowed; ++i) made[made_at[i]] = source[known_at[i]];
  });
}

/// Shadows of values, half by half: of a part of one, which then begins nowhere, no value is found. A byte of
/// one is lost, and the half that it goes to. `from` without cells: nothing comes.
void ErrorTrace::put(Places& to, Places& from, uint32_t bytes) {
  if (bytes == 1) return put_byte(to, from);
  const bool nothing = !from.cells || (!from.in_registers && !from.cells->may_hold());
  for (size_t half = 0; half < bytes / 2; ++half) {
    const size_t row = (from.first + half * from.step) / Cells::kRow;
    if (astray_)
      put_kind(to, half, ErrorKind::lost);
    else if (nothing || (from.is_row() && from.cells->plain[row]))
      put_kind(to, half, ErrorKind::none);
    else if (!put_evenly(to, from, half) && !put_whole(to, from, half))
      put_lanes(to, from, half);
  }
}

void ErrorTrace::put_byte(Places& to, Places& from) const {
  to.list(), from.list();
  ErrorKind* const kinds = to.cells->kind.get();
  each_lane(to.mask, [&](int lane) {
    const ErrorKind taken = astray_      ? ErrorKind::lost
                            : from.cells ? from.cells->kind[from.at[lane]]
                                         : ErrorKind::none;
    if (taken == ErrorKind::none) return;
    kinds[to.at[lane]] = plan_.strict ? ErrorKind::lost : ErrorKind::none;
    if (to.in_registers) to.cells->touch_row(to.at[lane]);
    if (plan_.strict) to.cells->begin_to_hold();
  });
}

/// What a strict trace does not follow, in memory.
void ErrorTrace::lose(Places& at, uint32_t lanes, uint32_t bytes) {
  if (!plan_.strict || !at.cells) return;
  at.list();
  at.cells->begin_to_hold();
  each_lane(lanes, [&](int lane) {
    std::fill_n(&at.cells->kind[at.at[lane]], std::max(bytes / 2, 1u), ErrorKind::lost);
  });
}

void ErrorTrace::move(Warp& warp, const TransferRow& row) {
  each_place(warp, row.from, row.mask, false, [&](Places& from) {
    each_place(warp, row.to, from.mask, true, [&](Places& to) {
      if (!to.cells) return;
      if (row.to.slot == no_slot) end_reached(to, row.bytes);
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
    for (int row = 0; row < 2; ++row) cells.touch_row(cell(op.slots[half], row, 0));
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
  Places staged{.cells = &scratch_, .step = 32};  // before a destination changes that is a source too
  const auto stage = [&](size_t first, uint32_t lanes) { staged.lie_evenly(first, 1), staged.mask = lanes; };
  size_t rows = 0;
  each_row(done, [&](const TransferRow& row) {
    each_place(warp, row.from, row.mask, false, [&](Places& from) {
      stage(rows, from.mask);
      put(staged, from, row.bytes);
    });
    rows += 32 * (row.bytes / 2);
  });
  mark(warp, op, ErrorKind::none, mask);
  rows = 0;
  each_row(done, [&](const TransferRow& row) {
    each_place(warp, row.to, row.mask, true, [&](Places& to) {
      stage(rows, to.mask);
      put(to, staged, row.bytes);
    });
    rows += 32 * (row.bytes / 2);
  });
}

void ErrorTrace::landed(Warp& warp, const Landing& landing) {
  each_row(landing, [&](const TransferRow& row) {
    each_place(warp, row.to, row.mask, true, [&](Places& to) {
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
  each_place(warp, memory, mask, false, [&](Places& at) {
    if (!at.cells) return;
    at.list();
    each_lane(at.mask, [&](int lane) {
      for (size_t half = 0; half < std::max(op.element_bytes / 2u, 1u); ++half)
        lost |= static_cast<uint32_t>(at.cells->kind[at.at[lane] + half] != ErrorKind::none) << lane;
    });
  });
  each_place(warp, memory, mask, true, [&](Places& at) {
    if (!at.cells) return;
    overwrite(at, op.element_bytes);
    lose(at, at.mask & lost, op.element_bytes);
  });
  mark(warp, op, ErrorKind::none, mask);
  if (plan_.strict) mark(warp, op, ErrorKind::lost, lost);
}

}  // namespace assay::vm
