// Shadows that are moved: by what travels unchanged, and by integer work on words whose bits come out as they
// went in.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/error_trace.h"

namespace assay::vm {

template <int parts_count>
void ErrorTrace<parts_count>::prepare_bits(Warp& warp, const Op& op) {
  bits_carry_ = false;
  const Cells& cells = registers(warp);
  for (int k = 0; k < op.source_count && k < 3; ++k) {
    if (op.s[k] == no_slot || cell_of(op.row->sources[static_cast<size_t>(k)]) != Cell::word) continue;
    uint64_t any[8];
    std::memcpy(any, &cells.kind[cell(op.s[k], 0, 0)], sizeof any);
    for (const uint64_t kinds : any) bits_carry_ |= kinds != 0;
  }
  if (!bits_carry_) return;
  for (int k = 0; k < op.source_count && k < 3; ++k) {
    auto& words = words_[static_cast<size_t>(k)];
    if (op.s[k] != no_slot && cell_of(op.row->sources[static_cast<size_t>(k)]) == Cell::word)
      std::memcpy(words.data(), warp.word(op.s[k]), sizeof words);
    else
      words.fill(0);
  }
}

// A word, or a half, whose bits equal a shadowed source's was moved; zero is moved from nowhere.
template <int parts_count>
void ErrorTrace<parts_count>::bits(Warp& warp, const Op& op, uint32_t mask) {
  if (!bits_carry_) return clear(warp, op.d, 2, mask);
  Cells& cells = registers(warp);
  const uint32_t* made = warp.word(op.d);
  each_lane(mask, [&](int lane) {
    size_t found[2] = {SIZE_MAX, SIZE_MAX};
    for (int k = 0; k < op.source_count && k < 3; ++k) {
      const uint32_t word = words_[static_cast<size_t>(k)][static_cast<size_t>(lane)];
      if (op.s[k] == no_slot || cell_of(op.row->sources[static_cast<size_t>(k)]) != Cell::word) continue;
      const size_t at = cell(op.s[k], 0, lane);
      if (cells.kind[at] == ErrorKind::f32) {
        if (word == made[lane] && word) found[0] = at;
        continue;
      }
      for (size_t from = 0; from < 2; ++from)
        for (size_t to = 0; to < 2; ++to) {
          const uint32_t bits = word >> (16 * from) & 0xffff;
          if (bits && bits == (made[lane] >> (16 * to) & 0xffff) && found[to] == SIZE_MAX &&
              cells.kind[at + 32 * from] != ErrorKind::none)
            found[to] = at + 32 * from;
        }
    }
    for (size_t to = 0; to < 2; ++to) {
      const size_t kept = 32 * to + static_cast<size_t>(lane);
      if (found[to] == SIZE_MAX)
        scratch_.kind[kept] = ErrorKind::none;
      else
        scratch_.copy(kept, cells, found[to]);
    }
    for (size_t to = 0; to < 2; ++to)
      cells.copy(cell(op.d, static_cast<int>(to), lane), scratch_, 32 * to + static_cast<size_t>(lane));
  });
}

template <int parts_count>
[[gnu::always_inline]] inline auto ErrorTrace<parts_count>::place(Warp& warp, const BytePlace& at,
                                                                  bool to_write) -> Place {
  if (at.slot != no_slot) return {&registers(warp), cell(at.slot, static_cast<int>(at.at / 2), at.lane), 32};
  const bool in_block = at.space == ptx::Space::shared || at.space == ptx::Space::local;
  const auto found = in_block   ? cells_.place(warp.index, at.lane, at.space, at.at)
                     : to_write ? plan_.memory->place(at.at, area_hint_)
                                : plan_.memory->seen(at.at, area_hint_);
  return {found.cells, found.at};
}

/// `bytes` bytes of memory are about to change: ends the shadows of values that reach into them from before.
template <int parts_count>
[[gnu::always_inline]] inline void ErrorTrace<parts_count>::overwrite(Place to, uint32_t bytes) {
  ErrorKind* kinds = to.cells->kind.get();
  if (bytes < 8 && kinds[to.at & ~size_t{3}] == ErrorKind::f64) kinds[to.at & ~size_t{3}] = ErrorKind::none;
  if (bytes < 4 && (to.at & 1) && kinds[to.at - 1] == ErrorKind::f32) kinds[to.at - 1] = ErrorKind::none;
  std::fill_n(kinds + to.at, std::max(bytes / 2, 1u), ErrorKind::none);
}

/// Shadows of values that come whole; bytes carry nothing. `from` without cells: nothing comes.
template <int parts_count>
[[gnu::always_inline]] inline void ErrorTrace<parts_count>::put(Place to, Place from, uint32_t bytes) {
  if (bytes == 4) {  // most are floats in a word
    const ErrorKind first = from.cells ? from.cells->kind[from.at] : ErrorKind::none,
                    second = from.cells ? from.cells->kind[from.at + from.step] : ErrorKind::none;
    if (second == ErrorKind::none && (first == ErrorKind::f32 || first == ErrorKind::none)) {
      to.cells->kind[to.at] = to.cells->kind[to.at + to.step] = ErrorKind::none;
      if (first == ErrorKind::f32) to.cells->copy(to.at, *from.cells, from.at);
      return;
    }
  }
  const int halves = static_cast<int>(bytes / 2);
  for (int half = 0; half < halves; ++half, to.at += to.step, from.at += from.step) {
    const ErrorKind kind = from.cells ? from.cells->kind[from.at] : ErrorKind::none;
    if (kind != ErrorKind::none && halves_of(kind) <= halves - half)
      to.cells->copy(to.at, *from.cells, from.at);
    else
      to.cells->kind[to.at] = ErrorKind::none;
  }
}

template <int parts_count>
void ErrorTrace<parts_count>::carry(Warp& warp, const Op& op, uint32_t mask) {
  const Executed done = executed(warp, op, mask);
  const bool memory = reaches_memory(*done.signature) || copies_parameters(*done.signature);
  const auto bare = [&](Slot slot) {
    const ErrorKind* const kinds = &registers(warp).kind[cell(slot, 0, 0)];
    return slot == no_slot || std::all_of(kinds, kinds + (op.d_cell == Cell::wide || op.slots ? 128 : 64),
                                          [](ErrorKind kind) { return kind == ErrorKind::none; });
  };
  if (!memory && bare(op.s[0]) && bare(op.s[1]) && std::all_of(op.slots, op.slots + op.slot_count, bare))
    return clear(warp, op, mask);
  const Flow flow = done.signature->flow();
  const bool whole = flow == Flow::copy || flow == Flow::select;  // of one lane's cell
  const bool direct = memory || whole;
  size_t staged = 0;
  if (!direct)  // before a destination changes that is a source too
    each_transfer(done, [&](const Transfer& t) {
      const Place from = place(warp, t.from, false);
      for (size_t half = 0; half < t.bytes / 2; ++half)
        scratch_.copy(staged++, *from.cells, from.at + half * from.step);
    });
  if (!whole &&
      !(flow == Flow::load && op.element_bytes >= 4 && done.signature->writes[0].cell == Cell::word))
    clear(warp, op, mask);
  staged = 0;
  each_transfer(done, [&](const Transfer& t) {
    const Place from =
        direct ? place(warp, t.from, false) : Place{&scratch_, std::exchange(staged, staged + t.bytes / 2)};
    const Place to = place(warp, t.to, true);
    if (!to.cells) return;
    if (t.to.slot == no_slot) overwrite(to, t.bytes);
    put(to, from, t.bytes);
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::landed(Warp& warp, const Landing& landing) {
  each_lane(landing.mask, [&](int lane) {
    overwrite({&cells_.shared(), landing.shared[lane] / 2}, landing.bytes);
  });
  each_transfer(landing, [&](const Transfer& t) {
    const Place from = place(warp, t.from, false);
    put(place(warp, t.to, true), from, t.bytes);
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::atomic(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) {
    const Place at = place(warp, {no_slot, warp.space, lane, warp.address[lane]}, true);
    if (at.cells) overwrite(at, op.element_bytes);
  });
  clear(warp, op, mask);
}

template class ErrorTrace<0>;
template class ErrorTrace<16>;

}  // namespace assay::vm
