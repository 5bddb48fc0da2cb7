// Memory: shadows follow the bytes through loads, stores, ldmatrix and cp.async.
#include <bit>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/error_trace.h"

namespace assay::vm {
template <int parts_count>
auto ErrorTrace<parts_count>::place(Warp& warp, int lane, uint64_t address, ptx::Space space) -> Place {
  if (space == ptx::Space::shared) return {&shared_, address / 2};
  if (space == ptx::Space::local)
    return {&warps_[warp.index].local, (static_cast<size_t>(lane) * code_->local_bytes + address) / 2};
  area_hint_ = plan_.memory->find(address, area_hint_);
  if (area_hint_ < 0) return {};
  auto& area = plan_.memory->areas[static_cast<size_t>(area_hint_)];
  return {&area.cells, (address - area.base) / 2};
}

/// `bytes` bytes at a place are about to change: ends the shadows of values that reach into them from before.
template <int parts_count>
void ErrorTrace<parts_count>::overwrite(Place at, int bytes) {
  ErrorKind* kinds = at.cells->kind.get();
  if (bytes < 8 && kinds[at.first & ~size_t{3}] == ErrorKind::f64)
    kinds[at.first & ~size_t{3}] = ErrorKind::none;
  if (bytes < 4 && (at.first & 1) && kinds[at.first - 1] == ErrorKind::f32)
    kinds[at.first - 1] = ErrorKind::none;
  if (bytes < 2) kinds[at.first] = ErrorKind::none;
}

template <int parts_count>
void ErrorTrace<parts_count>::load(Warp& warp, const Op& op, uint32_t mask) {
  const int halves = op.element_bytes / 2;  // 0: bytes carry nothing
  Cells& cells = registers(warp);
  for (int i = 0; i < op.vector_length; ++i) {
    clear(warp, op.slots[i], (op.immediate >> i) & 1 ? 4 : 2, mask);
    each_lane(mask, [&](int lane) {
      const Place from =
          place(warp, lane, warp.address[lane] + static_cast<uint64_t>(i) * op.element_bytes, warp.space);
      if (!from.cells) return;
      for (int half = 0; half < halves; ++half) {
        const size_t at = from.first + static_cast<size_t>(half);
        const ErrorKind kind = from.cells->kind[at];
        if (kind != ErrorKind::none && halves_of(kind) <= halves - half)
          cells.copy(cell(op.slots[i], half, lane), *from.cells, at);
      }
    });
  }
}

template <int parts_count>
void ErrorTrace<parts_count>::store(Warp& warp, const Op& op, uint32_t mask) {
  const int halves = op.element_bytes / 2;
  const Cells& cells = registers(warp);
  each_lane(mask, [&](int lane) {
    for (int i = 0; i < op.vector_length; ++i) {
      const Place to =
          place(warp, lane, warp.address[lane] + static_cast<uint64_t>(i) * op.element_bytes, warp.space);
      if (!to.cells) continue;
      overwrite(to, op.element_bytes);
      for (int half = 0; half < halves; ++half) {
        const size_t at = to.first + static_cast<size_t>(half), from = cell(op.slots[i], half, lane);
        if (halves_of(cells.kind[from]) <= halves - half)
          to.cells->copy(at, cells, from);
        else
          to.cells->kind[at] = ErrorKind::none;
      }
    }
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::atomic(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) {
    const Place at = place(warp, lane, warp.address[lane], warp.space);
    if (!at.cells) return;
    overwrite(at, op.element_bytes);
    for (int half = 0; half < op.element_bytes / 2; ++half)
      at.cells->kind[at.first + static_cast<size_t>(half)] = ErrorKind::none;
  });
  if (op.d != no_slot) clear(warp, op.d, op.d_cell == Cell::wide ? 4 : 2, mask);
}

// PTX ISA, ldmatrix: lane l of matrix i gets row l / 4, elements 2 (l mod 4) and the next; transposed: column
// l / 4. Untransposed, the two elements may be one word.
template <int parts_count>
void ErrorTrace<parts_count>::load_matrix(Warp& warp, const Op& op, uint32_t mask) {
  const bool transposed = op.immediate & 1;
  Cells& cells = registers(warp);
  each_lane(mask, [&](int lane) {
    for (int i = 0; i < op.slot_count; ++i)
      for (int half = 0; half < 2; ++half) {
        const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
        const int column = transposed ? lane / 4 : 2 * (lane % 4) + half;
        const Place from = place(warp, lane, warp.address[8 * i + row] + 2 * static_cast<uint64_t>(column),
                                 ptx::Space::shared);
        const size_t to = cell(op.slots[i], half, lane);
        if (halves_of(from.cells->kind[from.first]) <= (transposed ? 1 : 2 - half))
          cells.copy(to, *from.cells, from.first);
        else
          cells.kind[to] = ErrorKind::none;
      }
  });
}

// stmatrix: the other way round.
template <int parts_count>
void ErrorTrace<parts_count>::store_matrix(Warp& warp, const Op& op, uint32_t mask) {
  const bool transposed = op.immediate & 1;
  const Cells& cells = registers(warp);
  each_lane(mask, [&](int lane) {
    for (int i = 0; i < op.slot_count; ++i)
      for (int half = 0; half < 2; ++half) {
        const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
        const int column = transposed ? lane / 4 : 2 * (lane % 4) + half;
        const Place to = place(warp, lane, warp.address[8 * i + row] + 2 * static_cast<uint64_t>(column),
                               ptx::Space::shared);
        if (half == 0 || transposed) overwrite(to, transposed ? 2 : 4);  // untransposed, both may be one word
        const size_t from = cell(op.slots[i], half, lane);
        if (halves_of(cells.kind[from]) <= (transposed ? 1 : 2 - half))
          to.cells->copy(to.first, cells, from);
        else
          to.cells->kind[to.first] = ErrorKind::none;
      }
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::landed(Warp& warp, const Landing& landing) {
  each_lane(landing.mask, [&](int lane) {
    for (uint32_t byte = 0; byte < landing.bytes; byte += 2) {
      const size_t to = (landing.shared[lane] + byte) / 2;
      shared_.kind[to] = ErrorKind::none;
      if (byte >= landing.copied[lane]) continue;
      const Place from = place(warp, lane, landing.global[lane] + byte, ptx::Space::global);
      if (from.cells) shared_.copy(to, *from.cells, from.first);
    }
  });
}

template <int parts_count>
void ErrorTrace<parts_count>::copied_local(Warp& warp, uint32_t mask, uint32_t from, uint32_t to,
                                           uint32_t bytes) {
  each_lane(mask, [&](int lane) {
    for (uint32_t byte = 0; byte < bytes; byte += 2) {
      const Place target = place(warp, lane, to + byte, ptx::Space::local);
      target.cells->copy(target.first, *target.cells,
                         place(warp, lane, from + byte, ptx::Space::local).first);
    }
  });
}

template class ErrorTrace<0>;
template class ErrorTrace<16>;

}  // namespace assay::vm
