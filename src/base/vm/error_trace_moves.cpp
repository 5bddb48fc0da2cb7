// Shadows that are moved by what travels unchanged, row by row of lanes where they lie evenly.
#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/error_trace.h"

namespace assay::vm {

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
  const size_t lanes = mask & (mask + 1) ? 0 : static_cast<size_t>(std::countr_one(mask));
  const auto stride_of = [&]() -> ptrdiff_t {
    if (lanes == 0) return Places::kApart;
    if (!row.at || lanes == 1) return 0;
    const uint64_t apart = row.at[1] - row.at[0];
    uint64_t uneven = apart & 1, here = row.at[0];
    for (size_t lane = 0; lane < lanes; ++lane, here += apart) uneven |= row.at[lane] ^ here;
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
    move_half(op, cells, first, word, 1, word >> 16, kept + 32, false);
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
