// What travels unchanged, and atomics.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>

#include "src/base/numerics/format.h"
#include "src/base/vm/each_lane.h"
#include "src/base/vm/memory.h"
#include "src/base/vm/paged_bytes.h"
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

ProvenanceCell Recorder::read(const Warp& warp, const BytePlace& from, int half) {
  if (from.slot != no_slot) return cell(warp, from.slot, static_cast<int>(from.at / 2) + half, from.lane);
  const uint64_t address = from.at + 2 * static_cast<uint64_t>(half);
  if (from.space != ptx::Space::shared && from.space != ptx::Space::local) return run_->memory.read(address);
  const auto place = cells_.place(warp.index, from.lane, from.space, address);
  return (*place.cells)[place.at];
}

/// Of two bytes of a register that came one by one the half has both.
void Recorder::write(const Warp& warp, const BytePlace& to, int half, ProvenanceCell made, int32_t writer) {
  if (to.slot != no_slot) {
    ProvenanceCell& kept = cell(warp, to.slot, static_cast<int>(to.at / 2) + half, to.lane);
    kept = to.at % 2 ? unite(kept, made) : made;
    return;
  }
  const uint64_t address = to.at + 2 * static_cast<uint64_t>(half);
  if (to.space != ptx::Space::shared && to.space != ptx::Space::local)
    return run_->memory.write(address, made, writer);
  const auto place = cells_.place(warp.index, to.lane, to.space, address);
  (*place.cells)[place.at] = made;
}

void Recorder::carry(const Warp& warp, const Op& op, uint32_t mask) {
  const Executed done = executed(warp, op, mask);
  const auto halves = [](const Transfer& t) { return std::max(1, static_cast<int>(t.bytes) / 2); };
  staged_.clear();
  const Flow flow = signature(op).flow();
  bool fills = flow != Flow::exchange;
  each_transfer(done, [&](const Transfer& t) {
    for (int half = 0; half < halves(t); half++) staged_.push_back(read(warp, t.from, half));
    fills &= t.bytes >= 4;
  });
  if (!fills) clear(warp, op, mask);
  const int32_t writer = flow == Flow::store || flow == Flow::store_matrix ? site(op) : -1;
  const ProvenanceCell* next = staged_.data();
  each_transfer(done, [&](const Transfer& t) {
    for (int half = 0; half < halves(t); half++) write(warp, t.to, half, *next++, writer);
  });
  if (flow == Flow::exchange)  // of a lane that takes no part nothing comes
    each_lane(mask, [&](int lane) {
      for (int half = 0; half < 2 && !(mask >> (warp.lane_source[lane] & 31) & 1); half++)
        cell(warp, op.d, half, lane) = {0, kUnwritten};
    });
  if (flow == Flow::select) log_chosen(warp, op, mask);
}

void Recorder::landed(Warp& warp, const Landing& landing) {
  each_lane(landing.mask, [&](int piece) {
    const BytePlace to{no_slot, landing.to_space, piece, landing.to[piece]};
    for (uint32_t byte = landing.copied[piece]; byte < landing.bytes; byte += 2)
      write(warp, to, static_cast<int>(byte / 2), {}, -1);
  });
  each_transfer(landing, [&](const Transfer& t) {
    for (int half = 0; 2 * half < static_cast<int>(t.bytes); half++) {
      const ProvenanceCell came = read(warp, t.from, half);
      write(warp, t.to, half, landing.combines ? unite(read(warp, t.to, half), came) : came, -1);
    }
  });
}

/// Operands, and what stands in memory, before the operation: before_[0] old values, before_[1] and [2]
/// operands.
void Recorder::keep_memory(const Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = op.element_bytes == 8;
  uint64_t address[32];
  lane_addresses(warp, op.s[0], op.address_wide, op.offset, address);
  each_lane(mask, [&](int lane) {
    for (int i = 1; i < op.source_count; i++)
      before_[static_cast<size_t>(i)][lane] = wide ? warp.wide(op.s[i])[lane] : warp.word(op.s[i])[lane];
    uint64_t at = address[lane], old = 0;
    const bool windowed = op.space == ptx::Space::generic && at - shared_window < window_bytes;
    if (op.space == ptx::Space::shared || windowed) {
      at = shared_place(warp, at - (windowed ? shared_window : 0), op.element_bytes, true);
      if (at != no_shared) std::memcpy(&old, block_->shared.data() + at, op.element_bytes);
    } else if (const int found = block_->context->memory->find(at, op.element_bytes); found >= 0) {
      const Allocation& a = block_->context->memory->allocations()[static_cast<size_t>(found)];
      std::memcpy(&old, a.pages ? a.pages->at(at - a.base) : a.data + (at - a.base), op.element_bytes);
    }
    before_[0][lane] = old;
  });
}

/// The cell of a sum, logged where it is not finite.
ProvenanceCell Recorder::added(const Warp& warp, const Op& op, int lane, int half, uint64_t old, uint64_t sum,
                               ProvenanceCell old_cell, ProvenanceCell added_cell) {
  ProvenanceCell made{0, run_->provenance.unite(old_cell.dependence, added_cell.dependence)};
  if (!is_nonfinite(op.type, sum)) return made;
  const bool returns = op.d != no_slot;
  LoggedOperand operands[] = {operand(old, op.type, returns ? 0 : 255, old_cell),
                              operand(before_[1][lane] >> (16 * half), op.type, returns, added_cell)};
  made.tag = log(event_at(warp, op, lane, op.type, sum, made.dependence), operands, 2);
  return made;
}

// Lanes one after another: a sum is logged where it is not finite, an exchange keeps the operand's cells, a
// compare and swap those of the value that stays; of other operations a tag comes from whichever side has
// one.
void Recorder::atomic(const Warp& warp, const Op& op, uint32_t mask) {
  const int halves = std::max(1, op.element_bytes / 2);
  const ptx::Combine combine = signature(op).form.combine;
  const bool packed = ptx::is_packed(op.type);
  const bool adds = combine == ptx::Combine::add && ptx::is_float(op.type);
  const bool exchanges = combine == ptx::Combine::exch, swaps = combine == ptx::Combine::cas;
  const int32_t writer = site(op);
  std::unordered_map<uint64_t, uint64_t> now;  // values that earlier lanes have left
  each_lane(mask, [&](int lane) {
    const BytePlace memory{no_slot, warp.space, lane, warp.address[lane]};
    const auto known = now.find(memory.at);
    const uint64_t old = known == now.end() ? before_[0][lane] : known->second;
    ProvenanceCell were[4], made[4];
    for (int half = 0; half < halves; half++) were[half] = read(warp, memory, half);
    const bool taken = exchanges || (swaps && old == before_[1][lane]);
    uint64_t left = 0;
    for (int half = 0; adds && half < halves; half += packed ? 1 : halves) {
      const int shift = packed ? 16 * half : 0;
      const uint64_t x = old >> shift, sum = sum_of(op.type, x, before_[1][lane] >> shift);
      left |= sum << shift;
      const ProvenanceCell sum_cell = added(warp, op, lane, packed ? half : 0, packed ? x & 0xffff : x, sum,
                                            were[half], cell(warp, op.s[1], half, lane));
      std::fill_n(made + half, packed ? 1 : halves, sum_cell);
    }
    for (int half = 0; half < halves && !adds; half++) {
      const ProvenanceCell with = cell(warp, op.s[swaps ? 2 : 1], half, lane);
      made[half] = exchanges || swaps ? (taken ? with : were[half]) : unite(were[half], with);
    }
    if (adds) now[memory.at] = left;
    if (taken) now[memory.at] = before_[swaps ? 2 : 1][lane];
    for (int half = 0; half < halves; half++) write(warp, memory, half, made[half], writer);
    for (int half = 0; half < halves && op.d != no_slot; half++) cell(warp, op.d, half, lane) = were[half];
  });
}

}  // namespace assay::vm
