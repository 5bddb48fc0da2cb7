// Memory: cells follow the bytes through loads, stores, ldmatrix, cp.async and atomics.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>

#include "src/base/numerics/format.h"
#include "src/base/vm/each_lane.h"
#include "src/base/vm/memory.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/recorder.h"

namespace assay::vm {
namespace {

/// Sum of one element of an atomic addition, as far as its class is concerned: finite, infinite or NaN.
uint64_t sum_of(ptx::Type type, uint64_t a, uint64_t b) {
  const double sum = value_of(type, a) + value_of(type, b);
  switch (type) {
    case ptx::Type::f64:
      return std::bit_cast<uint64_t>(sum);
    case ptx::Type::f16:
    case ptx::Type::f16x2:
      return encode(Dtype::fp16, sum);
    case ptx::Type::bf16:
    case ptx::Type::bf16x2:
      return encode(Dtype::bf16, sum);
    default:
      return encode(Dtype::fp32, sum);
  }
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

/// Operands, and what stands in memory, before the operation: before_[0] old values, before_[1] and [2]
/// operands.
void Recorder::before_atomic(Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = op.element_bytes == 8;
  uint64_t address[32];
  lane_addresses(warp, op.s[0], op.address_wide, op.offset, address);
  each_lane(mask, [&](int lane) {
    for (int i = 1; i < op.source_count; i++)
      before_[static_cast<size_t>(i)][lane] = wide ? warp.wide(op.s[i])[lane] : warp.word(op.s[i])[lane];
    uint64_t at = address[lane], old = 0;
    const bool windowed = op.space == ptx::Space::generic && at - shared_window < window_bytes;
    if (op.space == ptx::Space::shared || windowed) {
      at -= windowed ? shared_window : 0;
      if (at + op.element_bytes <= block_->shared.size())
        std::memcpy(&old, block_->shared.data() + at, op.element_bytes);
    } else if (const int found = block_->context->memory->find(at, op.element_bytes); found >= 0) {
      const Allocation& a = block_->context->memory->allocations()[static_cast<size_t>(found)];
      std::memcpy(&old, a.data + (at - a.base), op.element_bytes);
    }
    before_[0][lane] = old;
  });
}

/// The cell of a sum, logged where it is not finite.
ShadowCell Recorder::added(Warp& warp, const Op& op, int lane, int half, uint64_t old, uint64_t sum,
                           ShadowCell old_cell, ShadowCell operand) {
  ShadowCell made{0, run_->provenance.unite(old_cell.dependence, operand.dependence)};
  if (!is_nonfinite(op.type, sum)) return made;
  LoggedEvent e = event_at(warp, op, lane);
  e.result_bits = sum, e.result_type = op.type, e.dependence = made.dependence;
  const bool returns = op.d != no_slot;
  LoggedOperand operands[2];
  operands[0] = {old, op.type, static_cast<uint8_t>(returns ? 0 : 255), 0, 0, old_cell.dependence};
  operands[1] = {
      before_[1][lane] >> (16 * half), op.type, static_cast<uint8_t>(returns), 0, 0, operand.dependence};
  bool nan = false, infinite = false;
  for (LoggedOperand& o : operands) {
    if (!is_nonfinite(o.type, o.bits)) continue;
    o.tag = &o == operands ? old_cell.tag : operand.tag;
    (is_nan(o.type, o.bits) ? nan : infinite) = true;
  }
  e.born = is_nan(op.type, sum) ? !nan : !nan && !infinite;
  made.tag = log(e, operands, 2);
  return made;
}

// Lanes one after another: a sum is logged where it is not finite, an exchange keeps the operand's cells, a
// compare and swap those of the value that stays; of other operations a tag comes from whichever side has
// one.
void Recorder::atomic(Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = op.element_bytes == 8;
  const int halves = op.element_bytes < 2 ? 1 : op.element_bytes / 2;
  const std::string& opcode = opcode_of(*code_, op);
  const bool packed = op.type == ptx::Type::f16x2 || op.type == ptx::Type::bf16x2;
  const bool adds = opcode.find(".add.") != opcode.npos && ptx::is_float(op.type);
  const bool exchanges = opcode.find(".exch.") != opcode.npos, swaps = opcode.find(".cas.") != opcode.npos;
  const int32_t writer = site(op);
  std::unordered_map<uint64_t, uint64_t> now;  // values that earlier lanes have left
  each_lane(mask, [&](int lane) {
    const uint64_t address = warp.address[lane];
    const auto known = now.find(address);
    const uint64_t old = known == now.end() ? before_[0][lane] : known->second;
    ShadowCell were[4], made[4];
    for (int half = 0; half < halves; half++)
      were[half] = read_half(warp, lane, address + 2 * half, warp.space);
    const auto operand = [&](int i) { return cells(warp, op.s[i], lane, wide); };
    const bool taken = exchanges || (swaps && old == before_[1][lane]);
    uint64_t left = 0;
    for (int half = 0; half < halves; half += packed ? 1 : halves) {
      const uint64_t x = old >> (packed ? 16 * half : 0), b = before_[1][lane] >> (packed ? 16 * half : 0);
      if (!adds) continue;
      const uint64_t sum = sum_of(op.type, x, b);
      left |= sum << (packed ? 16 * half : 0);
      const ShadowCell cell = added(warp, op, lane, packed ? half : 0, packed ? x & 0xffff : x, sum,
                                    were[half], operand(1)[half]);
      for (int i = half; i < (packed ? half + 1 : halves); i++) made[i] = cell;
    }
    for (int half = 0; half < halves && !adds; half++) {
      const ShadowCell with = operand(swaps ? 2 : 1)[half];
      if (exchanges || swaps)
        made[half] = taken ? with : were[half];
      else
        made[half] = {were[half].tag ? were[half].tag : with.tag,
                      run_->provenance.unite(were[half].dependence, with.dependence)};
    }
    if (adds) now[address] = left;
    if (taken) now[address] = before_[swaps ? 2 : 1][lane];
    for (int half = 0; half < halves; half++)
      write_half(warp, lane, address + 2 * half, warp.space, made[half], writer);
    if (op.d != no_slot) std::copy_n(were, halves, cells(warp, op.d, lane, wide));
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
