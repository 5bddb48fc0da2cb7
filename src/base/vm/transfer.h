// What travels unchanged: which bytes of registers and memory an instruction carries to which others. Every
// trace that follows values takes moves, packing, selection, shuffles, loads, stores, matrix loads and stores
// and a call's parameters from here.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/trace.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

/// Bytes of a register in one lane, or of memory as that lane sees it.
struct BytePlace {
  Slot slot = no_slot;  ///< no_slot: memory
  ptx::Space space = ptx::Space::none;
  int lane = 0;
  uint64_t at = 0;  ///< byte of the register's cell; of memory the translated address
};

/// Of an element of a tensor-core operand.
inline BytePlace place_of(const Op& op, const ElementPlace& at) {
  if (at.slot < 0) return {no_slot, ptx::Space::shared, at.lane, at.shared};
  return {op.slots[at.slot], {}, at.lane, static_cast<uint64_t>(at.bit / 8)};
}

struct Transfer {
  BytePlace to, from;
  uint32_t bytes = 0;
  int operand = 1;  ///< position in the PTX of the source
};

/// The places of all lanes.
struct PlaceRow {
  Slot slot = no_slot;
  ptx::Space space = ptx::Space::none;
  uint64_t offset = 0;
  const uint64_t* at = nullptr;     ///< [lane], beside the offset; null: 0
  const uint32_t* lanes = nullptr;  ///< whose place it is; null: the lane's own
  BytePlace of(int lane) const {
    return {slot, space, lanes ? static_cast<int>(lanes[lane]) : lane, offset + (at ? at[lane] : 0)};
  }
};

/// What the lanes of `mask` move alike. What it points to lasts for the visit.
struct TransferRow {
  uint32_t mask = 0;
  PlaceRow to, from;
  uint32_t bytes = 0;
  int operand = 1;
};

/// An executed instruction, from the warp that has just executed it or from a log.
struct Executed {
  const Op* op = nullptr;
  const Signature* signature = nullptr;
  uint32_t mask = 0;                      ///< lanes to be looked at
  uint32_t active = 0;                    ///< lanes that took part
  ptx::Space space = ptx::Space::none;    ///< of `address`
  const uint64_t* address = nullptr;      ///< by lane; ldmatrix, stmatrix: of row lane % 8 of matrix lane / 8
  const uint32_t* lane_source = nullptr;  ///< shfl; a lane that reads one without a part in it gets nothing
  uint32_t chosen = 0;                    ///< select: lanes that take source 0
};
inline Executed executed(const Warp& warp, const Op& op, uint32_t mask) {
  const Signature& signature = warp.block->context->code->signature(op);
  const uint32_t chosen = signature.flow() == Flow::select ? warp.mask(op.s[2]) : 0;
  return {&op, &signature, mask, mask, warp.space, warp.address, warp.lane_source, chosen};
}

inline uint32_t bytes_of(Cell cell) {
  return cell == Cell::wide ? 8 : cell == Cell::word ? 4 : 0;
}

/// A call or its return: Op::slots holds (from, to, bytes) triples of the lane's local memory.
inline bool copies_parameters(const Signature& s) {
  return s.flow() == Flow::parameters || s.control == Control::call;
}

/// Whether the results are bytes of the sources and nothing else. Predicates have none.
inline bool carries(const Signature& s) {
  switch (s.flow()) {
    case Flow::copy:
      return s.writes[0].cell != Cell::mask;
    case Flow::select:
      return s.reads[2].cell == Cell::mask;
    case Flow::pack:
    case Flow::unpack:
    case Flow::exchange:
    case Flow::load:
    case Flow::store:
    case Flow::load_matrix:
    case Flow::store_matrix:
    case Flow::move_matrix:
      return true;
    default:
      return copies_parameters(s);
  }
}

/// Whether the op has an address in Op::s[0], and then in Warp::address.
inline bool reaches_memory(const Signature& s) {
  return !s.accesses.empty() && s.accesses[0].reach != Access::Reach::descriptor;
}

/// Memory that a lane of an instruction reached.
struct MemoryAccess {
  int lane = 0;
  ptx::Space space = ptx::Space::none;
  uint64_t address = 0;
  uint32_t bytes = 0;
  bool reads = false, writes = false;
  char operand = 0;  ///< 'A' or 'B' of a wgmma
  BytePlace place() const { return {no_slot, space, lane, address}; }
};

/// visit(MemoryAccess) for all that an op reached that the warp has just executed: ldmatrix and stmatrix by
/// rows, cp.async with what it reads now and will write, wgmma by 16 bytes, of its warp together (lane 0).
template <class Visit>
void each_access(const Warp& warp, const Op& op, uint32_t mask, Visit visit) {
  const Signature& signature = warp.block->context->code->signature(op);
  for (const Access& access : signature.accesses) {
    const bool reads = access.direction != Access::Direction::write,
               writes = access.direction != Access::Direction::read;
    if (access.reach == Access::Reach::descriptor)
      return each_shared_piece(warp, op, [&](char operand, uint64_t address) {
        visit(MemoryAccess{0, ptx::Space::shared, address, 16, true, false, operand});
      });
    const bool rows = access.reach == Access::Reach::rows, copies = signature.flow() == Flow::copy_async;
    const bool lands = copies && writes;
    const ptx::Space space = copies ? access.space : warp.space;
    uint32_t lanes = !rows ? mask : op.slot_count >= 4 ? ~0u : (1u << (8 * op.slot_count)) - 1;
    for (; lanes; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      const uint32_t bytes =
          copies && !lands ? warp.copies.in_flight().back().work.copied[lane] : access.bytes;
      if (bytes)
        visit(MemoryAccess{lane, space, (lands ? warp.address2 : warp.address)[lane], bytes, reads, writes});
    }
  }
}

/// visit(BulkCopy) for those that the op has just issued.
template <class Visit>
void each_issued(const Warp& warp, Visit visit) {
  const Block& block = *warp.block;
  for (const BulkCopy& copy : block.loads)
    if (copy.number >= block.first_new) visit(copy);
  for (const auto& entry : warp.bulk.in_flight())
    if (entry.work.number >= block.first_new) visit(entry.work);
}

/// PTX ISA, ldmatrix and stmatrix: lane l has of matrix i row l / 4, elements 2 (l mod 4) and the next;
/// transposed: column l / 4. Untransposed the two are one word.
template <class Visit>
void each_matrix_row(const Executed& e, Visit visit) {
  const bool transposed = e.signature->form.transposed, loads = e.signature->flow() == Flow::load_matrix;
  for (int i = 0; i < e.op->slot_count; ++i)
    for (int half = 0; half < (transposed ? 2 : 1); ++half) {
      uint64_t address[32];
      each_lane(e.mask, [&](int lane) {
        const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
        const int column = transposed ? lane / 4 : 2 * (lane % 4);
        address[lane] = e.address[8 * i + row] + 2 * static_cast<uint64_t>(column);
      });
      const PlaceRow memory{no_slot, ptx::Space::shared, 0, address},
          word{e.op->slots[i], {}, 2 * static_cast<uint64_t>(half)};
      visit(TransferRow{e.mask, loads ? word : memory, loads ? memory : word, transposed ? 2u : 4u});
    }
}

/// visit(TransferRow) for all that an op with carries(signature) moves; of places that two lanes write the
/// later one stays.
template <class Visit>
void each_row(const Executed& e, Visit visit) {
  const Op& op = *e.op;
  const auto in_register = [](Slot slot, uint32_t byte = 0) { return PlaceRow{slot, {}, byte}; };
  const auto element = [&](uint32_t i) {
    return PlaceRow{no_slot, e.space, uint64_t{i} * op.element_bytes, e.address};
  };
  switch (const Flow flow = e.signature->flow()) {
    case Flow::load:
    case Flow::store:
      for (uint32_t i = 0; i < op.vector_length; ++i) {
        if (op.slots[i] == no_slot) continue;
        const PlaceRow word = in_register(op.slots[i]), memory = element(i);
        const bool loads = flow == Flow::load;
        visit(TransferRow{e.mask, loads ? word : memory, loads ? memory : word, op.element_bytes});
      }
      return;
    case Flow::load_matrix:
    case Flow::store_matrix:
      return each_matrix_row(e, visit);
    case Flow::move_matrix:
      // PTX ISA, movmatrix: half h of lane l is element (2 (l mod 4) + h, l / 4) of the source, which lane
      // 4 (2 (l mod 4) + h) + l / 8 holds in half (l / 4) mod 2.
      for (uint32_t half = 0; half < 2; ++half) {
        uint32_t lanes[32];
        uint64_t bytes[32];
        for (uint32_t lane = 0; lane < 32; ++lane)
          lanes[lane] = 4 * (2 * (lane % 4) + half) + lane / 8, bytes[lane] = 2 * (lane / 4 % 2);
        visit(TransferRow{e.mask, in_register(op.d, 2 * half), {op.s[0], {}, 0, bytes, lanes}, 2});
      }
      return;
    case Flow::exchange: {
      uint32_t lanes[32], given = 0;
      each_lane(e.mask, [&](int lane) {
        lanes[lane] = e.lane_source[lane] & 31;
        given |= (e.active >> lanes[lane] & 1) << lane;
      });
      return visit(TransferRow{given, in_register(op.d), {op.s[0], {}, 0, nullptr, lanes}, 4});
    }
    case Flow::select:
      for (int side = 0; side < 2; ++side)
        visit(TransferRow{e.mask & (side ? ~e.chosen : e.chosen), in_register(op.d), in_register(op.s[side]),
                          bytes_of(op.d_cell), side + 1});
      return;
    case Flow::copy:
      return visit(TransferRow{e.mask, in_register(op.d), in_register(op.s[0]), bytes_of(op.d_cell)});
    case Flow::pack:
    case Flow::unpack:
      for (uint32_t i = 0; i < op.slot_count; ++i) {
        if (op.slots[i] == no_slot) continue;
        const bool packs = flow == Flow::pack;
        const PlaceRow whole = in_register(packs ? op.d : op.s[0], i * op.element_bytes),
                       part = in_register(op.slots[i]);
        visit(TransferRow{e.mask, packs ? whole : part, packs ? part : whole, op.element_bytes});
      }
      return;
    default:
      for (uint32_t i = 0; i + 2 < op.slot_count; i += 3)
        for (uint32_t byte = 0, left; (left = op.slots[i + 2] - byte) > 0; byte += std::min(left, 8u))
          visit(TransferRow{e.mask,
                            {no_slot, ptx::Space::local, op.slots[i + 1] + byte},
                            {no_slot, ptx::Space::local, op.slots[i] + byte},
                            std::min(left, 8u)});
  }
}

/// The same of an asynchronous copy that lands, by pieces: the bytes that it copied. Those beyond, up to
/// Landing::bytes, become what comes from nowhere.
template <class Visit>
void each_row(const Landing& landing, Visit visit) {
  for (uint32_t rest = landing.mask; rest;) {
    const uint32_t bytes = landing.copied[std::countr_zero(rest)];
    uint32_t alike = 0;  // lanes stay in their order
    for (; rest && landing.copied[std::countr_zero(rest)] == bytes; rest &= rest - 1) alike |= rest & -rest;
    visit(TransferRow{alike,
                      {no_slot, landing.to_space, 0, landing.to},
                      {no_slot, landing.from_space, 0, landing.from},
                      bytes});
  }
}

/// visit(Transfer) for each lane of these rows.
template <class Moved, class Visit>
void each_transfer(const Moved& moved, Visit visit) {
  each_row(moved, [&](const TransferRow& row) {
    each_lane(row.mask, [&](int lane) {
      visit(Transfer{row.to.of(lane), row.from.of(lane), row.bytes, row.operand});
    });
  });
}

}  // namespace assay::vm
