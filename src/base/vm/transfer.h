// What travels unchanged: which bytes of registers and memory an instruction carries to which others. Every trace that
// follows values takes moves, packing, selection, shuffles, loads, stores, matrix loads and stores and a call's
// parameters from here.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

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

struct Transfer {
  BytePlace to, from;
  uint32_t bytes = 0;
  int operand = 1;  ///< position in the PTX of the source
};

/// An executed instruction, from the warp that has just executed it or from a log.
struct Executed {
  const Op* op = nullptr;
  uint32_t mask = 0;                      ///< lanes to be looked at
  uint32_t active = 0;                    ///< lanes that took part
  ptx::Space space = ptx::Space::none;    ///< of `address`
  const uint64_t* address = nullptr;      ///< by lane; ldmatrix, stmatrix: of row lane % 8 of matrix lane / 8
  const uint32_t* lane_source = nullptr;  ///< shfl; a lane that reads one without a part in it gets nothing
  uint32_t chosen = 0;                    ///< select: lanes that take source 0
};
inline Executed executed(const Warp& warp, const Op& op, uint32_t mask) {
  const uint32_t chosen = op.row->effect == Effect::select ? warp.mask(op.s[2]) : 0;
  return {&op, mask, mask, warp.space, warp.address, warp.lane_source, chosen};
}

inline uint32_t bytes_of(Cell cell) {
  return cell == Cell::wide ? 8 : cell == Cell::word ? 4 : 0;
}

/// A call or its return: Op::slots holds (from, to, bytes) triples of the lane's local memory.
inline bool copies_parameters(const Op& op) {
  return op.kind == Kind::call || copies_results(op);
}

/// Whether the results are bytes of the sources and nothing else.
inline bool carries(const Op& op) {
  switch (op.row ? op.row->effect : Effect::control) {
    case Effect::move:
    case Effect::select:
      return op.slots || (op.d != no_slot && op.d_cell != Cell::mask);
    case Effect::load:
    case Effect::store:
    case Effect::shuffle:
    case Effect::load_matrix:
    case Effect::store_matrix:
    case Effect::move_matrix:
      return true;
    default:
      return copies_parameters(op);
  }
}

/// Whether the op has an address of its own in Op::s[0] and Warp::address.
inline bool reaches_memory(const Op& op) {
  switch (op.row ? op.row->effect : Effect::control) {
    case Effect::load:
    case Effect::store:
    case Effect::atomic:
    case Effect::load_matrix:
    case Effect::store_matrix:
    case Effect::async_copy:
      return true;
    default:
      return false;
  }
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

/// visit(MemoryAccess) for all that an op reached that the warp has just executed: ldmatrix and stmatrix by rows, cp.async
/// with what it reads now and will write, wgmma by 16 bytes, of its warp together (lane 0).
template <class Visit>
void each_access(const Warp& warp, const Op& op, uint32_t mask, Visit visit) {
  if (!op.row) return;
  const auto each_lane = [&](uint32_t lanes, uint32_t bytes, bool reads, bool writes) {
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      visit(MemoryAccess{lane, warp.space, warp.address[lane], bytes, reads, writes});
    }
  };
  const uint32_t bytes = uint32_t{op.element_bytes} * std::max<uint32_t>(1, op.vector_length);
  const uint32_t rows = op.slot_count >= 4 ? ~0u : (1u << (8 * op.slot_count)) - 1;
  switch (op.row->effect) {
    case Effect::load:
      return each_lane(mask, bytes, true, false);
    case Effect::store:
      return each_lane(mask, bytes, false, true);
    case Effect::atomic:
      return each_lane(mask, bytes, true, true);
    case Effect::load_matrix:
      return each_lane(rows, 16, true, false);
    case Effect::store_matrix:
      return each_lane(rows, 16, false, true);
    case Effect::async_copy:
      for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        visit(MemoryAccess{lane, ptx::Space::shared, warp.address2[lane], op.element_bytes, false, true});
        const uint32_t copied = warp.pending[warp.pending_count - 1].copied[lane];
        if (copied) visit(MemoryAccess{lane, ptx::Space::global, warp.address[lane], copied, true, false});
      }
      return;
    case Effect::matrix:
      if (MatrixForm::of(op.immediate).warpgroup)
        each_shared_piece(warp, op, [&](char operand, uint64_t address) {
          visit(MemoryAccess{0, ptx::Space::shared, address, 16, true, false, operand});
        });
      return;
    default:
      if (op.kind == Kind::warp && op.element_bytes && !carries(op)) each_lane(mask, bytes, true, true);  // mbarrier
  }
}

/// visit(slot, cell) for each register that the op writes.
template <class Visit>
void each_written_register(const Op& op, Visit visit) {
  if (op.d != no_slot) visit(op.d, op.d_cell);
  if (op.d2 != no_slot) visit(op.d2, Cell::mask);
  const Effect effect = op.row ? op.row->effect : Effect::control;
  const bool unpacks = effect == Effect::move && op.immediate == 1;
  const bool loads = effect == Effect::load, matrix = effect == Effect::matrix;
  if (!loads && !unpacks && !matrix && effect != Effect::load_matrix) return;
  const MatrixForm form = matrix ? MatrixForm::of(op.immediate) : MatrixForm{};
  const int count = matrix ? form.sum_registers() : op.slot_count;
  for (int i = 0; i < count; ++i) {
    const bool wide = loads ? (op.immediate >> i & 1) != 0 : matrix && form.sum == Element::f64;
    if (op.slots[i] != no_slot) visit(op.slots[i], wide ? Cell::wide : Cell::word);
  }
}

/// PTX ISA, ldmatrix and stmatrix: lane l has of matrix i row l / 4, elements 2 (l mod 4) and the next; transposed:
/// column l / 4. Untransposed the two are one word.
template <class Visit>
void each_matrix_piece(const Executed& e, Visit visit) {
  const bool transposed = e.op->immediate & 1;
  for (int i = 0; i < e.op->slot_count; ++i)
    for (uint32_t rest = e.mask; rest; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      for (int half = 0; half < (transposed ? 2 : 1); ++half) {
        const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
        const int column = transposed ? lane / 4 : 2 * (lane % 4);
        const BytePlace memory{no_slot, ptx::Space::shared, lane,
                               e.address[8 * i + row] + 2 * static_cast<uint64_t>(column)};
        visit(BytePlace{e.op->slots[i], {}, lane, 2 * static_cast<uint64_t>(half)}, memory, transposed ? 2u : 4u);
      }
    }
}

/// visit(Transfer) for all that an op with carries(op) moves; of places that two lanes write the later one stays.
template <class Visit>
void each_transfer(const Executed& e, Visit visit) {
  const Op& op = *e.op;
  const auto each_lane = [&](auto visit_lane) {
    for (uint32_t rest = e.mask; rest; rest &= rest - 1) visit_lane(std::countr_zero(rest));
  };
  const auto in_register = [](Slot slot, int lane, uint32_t byte = 0) { return BytePlace{slot, {}, lane, byte}; };
  const auto element = [&](int lane, uint32_t i) {
    return BytePlace{no_slot, e.space, lane, e.address[lane] + uint64_t{i} * op.element_bytes};
  };
  switch (op.row->effect) {
    case Effect::load:
      return each_lane([&](int lane) {
        for (uint32_t i = 0; i < op.vector_length; ++i)
          if (op.slots[i] != no_slot) visit(Transfer{in_register(op.slots[i], lane), element(lane, i), op.element_bytes});
      });
    case Effect::store:
      return each_lane([&](int lane) {
        for (uint32_t i = 0; i < op.vector_length; ++i)
          visit(Transfer{element(lane, i), in_register(op.slots[i], lane), op.element_bytes});
      });
    case Effect::load_matrix:
      return each_matrix_piece(e, [&](const BytePlace& to, const BytePlace& from, uint32_t bytes) {
        visit(Transfer{to, from, bytes});
      });
    case Effect::store_matrix:
      return each_matrix_piece(e, [&](const BytePlace& from, const BytePlace& to, uint32_t bytes) {
        visit(Transfer{to, from, bytes});
      });
    case Effect::move_matrix:
      // PTX ISA, movmatrix: half h of lane l is element (2 (l mod 4) + h, l / 4) of the source, which lane
      // 4 (2 (l mod 4) + h) + l / 8 holds in half (l / 4) mod 2.
      return each_lane([&](int lane) {
        for (int half = 0; half < 2; ++half)
          visit(Transfer{in_register(op.d, lane, static_cast<uint32_t>(2 * half)),
                         in_register(op.s[0], 4 * (2 * (lane % 4) + half) + lane / 8,
                                     static_cast<uint32_t>(2 * (lane / 4 % 2))),
                         2});
      });
    case Effect::shuffle:
      return each_lane([&](int lane) {
        const auto from = static_cast<int>(e.lane_source[lane] & 31);
        if (e.active >> from & 1) visit(Transfer{in_register(op.d, lane), in_register(op.s[0], from), 4});
      });
    case Effect::select:
      return each_lane([&](int lane) {
        const int side = e.chosen >> lane & 1 ? 0 : 1;
        visit(Transfer{in_register(op.d, lane), in_register(op.s[side], lane), bytes_of(op.d_cell), side + 1});
      });
    default:
      break;
  }
  const uint32_t width = op.element_bytes;
  if (copies_parameters(op))
    return each_lane([&](int lane) {
      for (uint32_t i = 0; i + 2 < op.slot_count; i += 3)
        for (uint32_t byte = 0, left; (left = op.slots[i + 2] - byte) > 0; byte += std::min(left, 8u))
          visit(Transfer{{no_slot, ptx::Space::local, lane, op.slots[i + 1] + byte},
                         {no_slot, ptx::Space::local, lane, op.slots[i] + byte}, std::min(left, 8u)});
    });
  if (!op.slots)
    return each_lane([&](int lane) {
      visit(Transfer{in_register(op.d, lane), in_register(op.s[0], lane), bytes_of(op.d_cell)});
    });
  each_lane([&](int lane) {
    for (uint32_t i = 0; i < op.slot_count; ++i) {
      const BytePlace whole = in_register(op.immediate == 1 ? op.s[0] : op.d, lane, i * width),
                      part = in_register(op.slots[i], lane);
      if (op.immediate != 1)
        visit(Transfer{whole, part, width});
      else if (op.slots[i] != no_slot)
        visit(Transfer{part, whole, width});
    }
  });
}

/// The same of a cp.async that lands: the bytes that it copied. Those beyond, up to Landing::bytes, become zeros.
template <class Visit>
void each_transfer(const Landing& landing, Visit visit) {
  for (uint32_t rest = landing.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    visit(Transfer{{no_slot, ptx::Space::shared, lane, landing.shared[lane]},
                   {no_slot, ptx::Space::global, lane, landing.global[lane]},
                   landing.copied[lane]});
  }
}

}  // namespace assay::vm
