// Shadows that are moved: by mov, shuffles and integer work on words whose bits come out as they went in.
#include <bit>
#include <cstring>

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
void ErrorTrace<parts_count>::copy_register(Warp& warp, Slot to, Slot from, int halves, uint32_t mask) {
  Cells& cells = registers(warp);
  each_lane(mask, [&](int lane) {
    for (int half = 0; half < halves; ++half) cells.copy(cell(to, half, lane), cells, cell(from, half, lane));
  });
}

// mov.b32 d, {lo, hi} and mov.b64 d, {..}: each element fills its share of the destination's halves. Bytes
// carry nothing.
template <int parts_count>
void ErrorTrace<parts_count>::pack(Warp& warp, const Op& op, uint32_t mask) {
  const int halves = op.d_cell == Cell::wide ? 4 : 2, share = halves / op.slot_count;
  if (share == 0) return clear(warp, op.d, halves, mask);
  Cells& cells = registers(warp);
  each_lane(mask, [&](int lane) {
    for (int half = 0; half < halves; ++half) {
      const size_t kept = static_cast<size_t>(32 * half + lane),
                   from = cell(op.slots[half / share], half % share, lane);
      scratch_.copy(kept, cells, from);
      if (halves_of(scratch_.kind[kept]) > share - half % share) scratch_.kind[kept] = ErrorKind::none;
    }
    for (int half = 0; half < halves; ++half)
      cells.copy(cell(op.d, half, lane), scratch_, static_cast<size_t>(32 * half + lane));
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::unpack(Warp& warp, const Op& op, uint32_t mask) {
  const int halves = ptx::bytes_of(op.type) == 8 ? 4 : 2, share = halves / op.slot_count;
  Cells& cells = registers(warp);
  each_lane(mask, [&](int lane) {
    for (int half = 0; half < halves; ++half)
      scratch_.copy(static_cast<size_t>(32 * half + lane), cells, cell(op.s[0], half, lane));
    for (int element = 0; element < op.slot_count; ++element) {
      if (op.slots[element] == no_slot) continue;  // "_"
      for (int half = 0; half < 2; ++half) {
        const size_t to = cell(op.slots[element], half, lane);
        cells.kind[to] = ErrorKind::none;
        if (half >= share) continue;
        cells.copy(to, scratch_, static_cast<size_t>(32 * (element * share + half) + lane));
        if (halves_of(cells.kind[to]) > share - half) cells.kind[to] = ErrorKind::none;
      }
    }
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::shuffle(Warp& warp, const Op& op, uint32_t mask) {
  Cells& cells = registers(warp);
  for (int i = 0; i < 64; ++i) scratch_.copy(static_cast<size_t>(i), cells, cell(op.s[0], 0, i));
  each_lane(mask, [&](int lane) {
    const auto from = static_cast<int>(warp.lane_source[lane]);
    for (int half = 0; half < 2; ++half) {
      const size_t to = cell(op.d, half, lane);
      if ((mask >> from) & 1)
        cells.copy(to, scratch_, static_cast<size_t>(32 * half + from));
      else
        cells.kind[to] = ErrorKind::none;
    }
  });
}

// Half `h` of lane l comes from half (l / 4) mod 2 of lane 4 (2 (l mod 4) + h) + l / 8.
template <int parts_count>
void ErrorTrace<parts_count>::move_matrix(Warp& warp, const Op& op) {
  Cells& cells = registers(warp);
  for (int i = 0; i < 64; ++i) scratch_.copy(static_cast<size_t>(i), cells, cell(op.s[0], 0, i));
  for (int lane = 0; lane < 32; ++lane)
    for (int half = 0; half < 2; ++half) {
      const size_t to = cell(op.d, half, lane);
      cells.copy(to, scratch_,
                 static_cast<size_t>(32 * (lane / 4 % 2) + 4 * (2 * (lane % 4) + half) + lane / 8));
      if (halves_of(cells.kind[to]) > 1) cells.kind[to] = ErrorKind::none;
    }
}

template class ErrorTrace<0>;
template class ErrorTrace<16>;

}  // namespace assay::vm
