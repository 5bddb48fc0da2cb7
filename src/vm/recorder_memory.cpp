// Memory: cells follow the bytes through loads, stores, ldmatrix, cp.async and atomics.
#include <bit>

#include "src/vm/recorder.h"

namespace assay::vm {
namespace {

template <class Visit>
void each_lane(uint32_t mask, Visit visit) {
  for (; mask; mask &= mask - 1) visit(std::countr_zero(mask));
}

}  // namespace

ShadowCell Recorder::read_half(Warp& warp, int lane, uint64_t address, ptx::Space space) {
  if (space == ptx::Space::shared) return shared_[address / 2];
  if (space == ptx::Space::local)
    return shadow_[warp.index].local[(static_cast<size_t>(lane) * code_->local_bytes + address) / 2];
  return MemoryShadow::read(run_->memory.find(address), address);
}

void Recorder::write_half(Warp& warp, int lane, uint64_t address, ptx::Space space, ShadowCell cell,
                          int32_t writer) {
  if (space == ptx::Space::shared)
    shared_[address / 2] = cell;
  else if (space == ptx::Space::local)
    shadow_[warp.index].local[(static_cast<size_t>(lane) * code_->local_bytes + address) / 2] = cell;
  else
    MemoryShadow::write(run_->memory.find(address), address, cell, writer);
}

void Recorder::load(Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = op.element_bytes == 8;
  const int halves = op.element_bytes < 2 ? 1 : op.element_bytes / 2;
  each_lane(mask, [&](int lane) {
    for (int i = 0; i < op.vector_length; i++) {
      const Slot slot = op.slots ? op.slots[i] : op.d;
      if (slot == no_slot) continue;
      ShadowCell* to = cells(warp, slot, lane, wide);
      const uint64_t address = warp.address[lane] + static_cast<uint64_t>(i) * op.element_bytes;
      for (int half = 0; half < halves; half++)
        to[half] = read_half(warp, lane, address + 2 * half, warp.space);
      if (halves == 1) to[1] = {};
    }
  });
}

void Recorder::store(Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = op.element_bytes == 8;
  const int halves = op.element_bytes < 2 ? 1 : op.element_bytes / 2;
  const int32_t writer = site(op);
  each_lane(mask, [&](int lane) {
    for (int i = 0; i < op.vector_length; i++) {
      const ShadowCell* from = cells(warp, op.slots[i], lane, wide);
      const uint64_t address = warp.address[lane] + static_cast<uint64_t>(i) * op.element_bytes;
      for (int half = 0; half < halves; half++)
        write_half(warp, lane, address + 2 * half, warp.space, from[half], writer);
    }
  });
}

// The new value depends on the old one and on the operand; a tag comes from whichever side has one.
void Recorder::atomic(Warp& warp, const Op& op, uint32_t mask) {
  const int halves = op.element_bytes < 2 ? 1 : op.element_bytes / 2;
  const Slot source = op.row->effect == Effect::atomic && op.s[1] != no_slot ? op.s[1]
                      : op.slots                                             ? op.slots[0]
                                                                             : no_slot;
  const Slot destination = op.s[1] != no_slot && op.slots ? op.slots[0] : no_slot;
  const int32_t writer = site(op);
  each_lane(mask, [&](int lane) {
    for (int half = 0; half < halves; half++) {
      const uint64_t address = warp.address[lane] + 2 * half;
      const ShadowCell old = read_half(warp, lane, address, warp.space);
      const ShadowCell with =
          source == no_slot ? ShadowCell{} : cells(warp, source, lane, op.element_bytes == 8)[half];
      write_half(warp, lane, address, warp.space,
                 {old.tag ? old.tag : with.tag, run_->provenance.unite(old.dependence, with.dependence)},
                 writer);
      if (destination != no_slot) cells(warp, destination, lane, op.element_bytes == 8)[half] = old;
    }
  });
}

// PTX ISA, ldmatrix: lane l of matrix i gets row l / 4, elements 2 (l mod 4) and the next; transposed: column
// l / 4.
void Recorder::load_matrix(Warp& warp, const Op& op, uint32_t mask) {
  const bool transposed = op.immediate & 1;
  const int count = op.slot_count;
  each_lane(mask, [&](int lane) {
    for (int i = 0; i < count; i++)
      for (int half = 0; half < 2; half++) {
        const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
        const int column = transposed ? lane / 4 : 2 * (lane % 4) + half;
        cells(warp, op.slots[i], lane)[half] = read_half(
            warp, lane, warp.address[8 * i + row] + 2 * static_cast<uint64_t>(column), ptx::Space::shared);
      }
  });
}

void Recorder::store_matrix(Warp& warp, const Op& op, uint32_t mask) {
  const bool transposed = op.immediate & 1;
  const int32_t writer = site(op);
  each_lane(mask, [&](int lane) {
    for (int i = 0; i < op.slot_count; i++)
      for (int half = 0; half < 2; half++) {
        const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
        const int column = transposed ? lane / 4 : 2 * (lane % 4) + half;
        write_half(warp, lane, warp.address[8 * i + row] + 2 * static_cast<uint64_t>(column),
                   ptx::Space::shared, cells(warp, op.slots[i], lane)[half], writer);
      }
  });
}

void Recorder::landed(Warp& warp, const Landing& landing) {
  each_lane(landing.mask, [&](int lane) {
    for (uint32_t byte = 0; byte < landing.bytes; byte += 2)
      shared_[(landing.shared[lane] + byte) / 2] =
          byte < landing.copied[lane] ? read_half(warp, lane, landing.global[lane] + byte, ptx::Space::global)
                                      : ShadowCell{};
  });
}

void Recorder::copied_local(Warp& warp, uint32_t mask, uint32_t from, uint32_t to, uint32_t bytes) {
  each_lane(mask, [&](int lane) {
    for (uint32_t byte = 0; byte < bytes; byte += 2)
      write_half(warp, lane, to + byte, ptx::Space::local,
                 read_half(warp, lane, from + byte, ptx::Space::local), -1);
  });
}

}  // namespace assay::vm
