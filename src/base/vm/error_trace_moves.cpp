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

template <int parts_count>
void ErrorTrace<parts_count>::prepare_bits(Warp& warp, const Op& op) {
  bits_carry_ = false;
  const Cells& cells = registers(warp);
  for (int k = 0; k < op.source_count && k < 3; ++k) {
    if (op.s[k] == no_slot || cell_of(op.row->sources[static_cast<size_t>(k)]) != Cell::word) continue;
    const ErrorKind* const kinds = &cells.kind[cell(op.s[k], 0, 0)];
    bits_carry_ |= !is_all(kinds, ErrorKind::none) || !is_all(kinds + 32, ErrorKind::none);
  }
  if (!bits_carry_) return;
  inverted_known_ = 0;
  for (int k = 0; k < op.source_count && k < 3; ++k) {
    auto& words = words_[static_cast<size_t>(k)];
    if (op.s[k] != no_slot && cell_of(op.row->sources[static_cast<size_t>(k)]) == Cell::word)
      std::memcpy(words.data(), warp.word(op.s[k]), sizeof words);
    else
      words.fill(0);
  }
}

/// Does the op take half `from` of the source to half `to`? Then its inverse arrives where it is inverted:
/// equal bits alone may be two neighbours that round to the same.
template <int parts_count>
bool ErrorTrace<parts_count>::is_moved(const Op& op, size_t source, size_t from, size_t to, int lane) {
  if (!op.lanes || op.source_count > 3) return true;
  const uint32_t known = 1u << (2 * source + from);
  auto& made = inverted_[source][from];
  if (!(inverted_known_ & known)) {
    inverted_known_ |= known;
    std::array<uint32_t, 32> words = words_[source];
    for (uint32_t& word : words) word ^= 0xffffu << (16 * from);
    const auto of = [&](size_t k) -> const void* {
      return k == source ? words.data() : op.s[k] == no_slot ? nullptr : words_[k].data();
    };
    op.lanes(made.data(), of(0), of(1), of(2), nullptr);
  }
  const auto at = static_cast<size_t>(lane);
  const uint32_t before = words_[source][at] >> (16 * from), after = made[at] >> (16 * to);
  return ((before ^ after) & 0xffff) == 0xffff;
}

/// Integer work that changes a shadowed float by less than a bf16's last places rounds it: a mask that cuts,
/// the addition before it.
template <int parts_count>
bool ErrorTrace<parts_count>::keep_rounded(Warp& warp, const Op& op, int lane) {
  Cells& cells = registers(warp);
  const double made = std::bit_cast<float>(warp.word(op.d)[lane]);
  for (int k = 0; k < op.source_count && k < 3; ++k) {
    if (op.s[k] == no_slot || cell_of(op.row->sources[static_cast<size_t>(k)]) != Cell::word) continue;
    const size_t at = cell(op.s[k], 0, lane);
    const double value = std::bit_cast<float>(words_[static_cast<size_t>(k)][static_cast<size_t>(lane)]);
    if (cells.kind[at] != ErrorKind::f32 || !std::isfinite(cells.bound[at])) continue;
    if (!(std::fabs(made - value) <= 0x1p-7 * std::fabs(value)) || made == 0) continue;
    const double cut = value - made;
    const size_t to = cell(op.d, 0, lane);
    cells.copy(to, cells, at);
    cells.error[to] += cut;
    if (plan_.inexact_share.empty()) cells.bound[to] += std::fabs(cut);
    cells.kind[to + 32] = ErrorKind::none;
    return true;
  }
  return false;
}

// A word, or a half, that comes out as it went in carries its shadow; zero is moved from nowhere. The high
// half of an f32 is a bf16 cut from it.
template <int parts_count>
void ErrorTrace<parts_count>::bits(Warp& warp, const Op& op, uint32_t mask) {
  if (!bits_carry_) return clear(warp, op.d, 2, mask);
  Cells& cells = registers(warp);
  const uint32_t* made = warp.word(op.d);
  each_lane(mask, [&](int lane) {
    size_t found[2] = {SIZE_MAX, SIZE_MAX};
    double cut[2] = {};
    bool rounded = false;
    for (size_t k = 0; k < 3 && k < op.source_count; ++k) {
      if (op.s[k] == no_slot || cell_of(op.row->sources[k]) != Cell::word) continue;
      const uint32_t word = words_[k][static_cast<size_t>(lane)];
      const size_t at = cell(op.s[k], 0, lane);
      for (const size_t half : {at, at + 32})
        rounded |= cells.kind[half] != ErrorKind::none && cells.bound[half] != 0;
      const bool is_float = cells.kind[at] == ErrorKind::f32;
      for (size_t from = is_float; from < 2; ++from)
        for (size_t to = 0; to < 2; ++to) {
          const uint32_t bits = word >> (16 * from) & 0xffff;
          const size_t shadow = is_float ? at : at + 32 * from;
          if (!bits || bits != (made[lane] >> (16 * to) & 0xffff) || found[to] != SIZE_MAX ||
              cells.kind[shadow] == ErrorKind::none || !is_moved(op, k, from, to, lane))
            continue;
          found[to] = shadow;
          cut[to] = is_float ? std::bit_cast<float>(word) - std::bit_cast<float>(word & 0xffff0000u) : 0;
        }
    }
    if (keep_rounded(warp, op, lane)) return;
    for (size_t to = 0; to < 2; ++to) {
      const size_t kept = 32 * to + static_cast<size_t>(lane);
      scratch_.kind[kept] = ErrorKind::none;
      if (found[to] == SIZE_MAX) continue;
      scratch_.copy(kept, cells, found[to]);
      if (scratch_.kind[kept] != ErrorKind::f32) continue;
      scratch_.kind[kept] = ErrorKind::bf16;
      scratch_.error[kept] += cut[to];
      if (plan_.inexact_share.empty()) scratch_.bound[kept] += std::fabs(cut[to]);
    }
    for (size_t to = 0; to < 2; ++to)
      cells.copy(cell(op.d, static_cast<int>(to), lane), scratch_, 32 * to + static_cast<size_t>(lane));
    if (plan_.strict && rounded && made[lane] && found[0] == SIZE_MAX && found[1] == SIZE_MAX)
      lose(cells, cell(op.d, 0, lane));
  });
}

/// visit(Places) for the cells of `mask`'s lanes, as many together as lie in one array.
template <int parts_count>
template <class Visit>
[[gnu::always_inline]] inline void ErrorTrace<parts_count>::each_place(Warp& warp, const PlaceRow& row,
                                                                       uint32_t mask, bool to_write,
                                                                       Visit visit) {
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
template <int parts_count>
void ErrorTrace<parts_count>::overwrite(const Places& to, uint32_t bytes) {
  ErrorKind* kinds = to.cells->kind.get();
  each_lane(to.mask, [&](int lane) {
    const size_t at = to.at[lane], wide = at & ~size_t{3};
    if (bytes < 8 && kinds[wide] == ErrorKind::f64) kinds[wide] = ErrorKind::none;
    if (bytes < 4 && (at & 1) && kinds[at - 1] == ErrorKind::f32) kinds[at - 1] = ErrorKind::none;
    for (uint32_t half = 0; half < std::max(bytes / 2, 1u); ++half) kinds[at + half] = ErrorKind::none;
  });
}

/// Shadows of values that come whole; bytes carry nothing. `from` without cells: nothing comes.
template <int parts_count>
void ErrorTrace<parts_count>::put(const Places& to, const Places& from, uint32_t bytes) {
  for (size_t half = 0, halves = bytes / 2; half < halves; ++half) {
    const size_t ahead = half * to.step, behind = half * from.step, left = halves - half;
    const ErrorKind longest = left >= 4 ? ErrorKind::f64 : left >= 2 ? ErrorKind::f32 : ErrorKind::bf16;
    ErrorKind taken[32] = {};
    if (from.cells) {
      const ErrorKind* const known = from.cells->kind.get() + behind;
      each_lane(to.mask, [&](int lane) { taken[lane] = known[from.at[lane]]; });
      for (ErrorKind& kind : taken) kind = kind > longest ? ErrorKind::none : kind;
    }
    ErrorKind* const kinds = to.cells->kind.get() + ahead;
    each_lane(to.mask, [&](int lane) { kinds[to.at[lane]] = taken[lane]; });
    if (is_all(taken, ErrorKind::none)) continue;
    each_lane(to.mask, [&](int lane) {
      if (taken[lane] != ErrorKind::none)
        to.cells->copy_values(to.at[lane] + ahead, *from.cells, from.at[lane] + behind);
    });
  }
}

template <int parts_count>
void ErrorTrace<parts_count>::move(Warp& warp, const TransferRow& row) {
  each_place(warp, row.from, row.mask, false, [&](const Places& from) {
    each_place(warp, row.to, from.mask, true, [&](const Places& to) {
      if (!to.cells) return;
      if (row.to.slot == no_slot) overwrite(to, row.bytes);
      put(to, from, row.bytes);
    });
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::carry(Warp& warp, const Op& op, uint32_t mask) {
  const Executed done = executed(warp, op, mask);
  const Signature& signature = *done.signature;
  const Flow flow = signature.flow();
  const bool whole = flow == Flow::copy || flow == Flow::select;  // of one lane's cell
  if (whole || reaches_memory(signature) || copies_parameters(signature)) {
    if (flow == Flow::load && op.element_bytes < bytes_of(signature.writes[0].cell)) clear(warp, op, mask);
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
  clear(warp, op, mask);
  rows = 0;
  each_row(done, [&](const TransferRow& row) {
    each_place(warp, row.to, row.mask, true, [&](const Places& to) {
      stage(rows), staged.mask = to.mask;
      put(to, staged, row.bytes);
    });
    rows += 32 * (row.bytes / 2);
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::landed(Warp& warp, const Landing& landing) {
  each_row(landing, [&](const TransferRow& row) {
    each_place(warp, row.to, row.mask, true, [&](const Places& to) { overwrite(to, landing.bytes); });
    move(warp, row);
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::atomic(Warp& warp, const Op& op, uint32_t mask) {
  each_place(warp, {no_slot, warp.space, 0, warp.address}, mask, true, [&](const Places& at) {
    if (!at.cells) return;
    overwrite(at, op.element_bytes);
    if (plan_.strict && op.element_bytes == 4 && ptx::is_float(op.type))
      each_lane(at.mask, [&](int lane) { lose(*at.cells, at.at[lane]); });
  });
  if (plan_.strict && ptx::is_float(op.type)) return lose(warp, op, mask);
  clear(warp, op, mask);
}

template class ErrorTrace<0>;
template class ErrorTrace<16>;

}  // namespace assay::vm
