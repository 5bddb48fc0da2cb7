// Which halves of its sources an instance reads.
#include <algorithm>
#include <bit>
#include <string_view>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/slice_scan.h"

namespace assay::vm {

void SliceScan::add_arithmetic(const BlockLog& log, const SliceRecord& record, const Op& op, const Found& f) {
  const Row& row = *op.row;
  const bool packed = ptx::is_packed(row.result), narrows = packed && row.sources[0] == ptx::Type::f32;
  for (int i = 0; i < op.source_count; ++i) {
    const Cell cell = cell_of(row.sources[static_cast<size_t>(i)]);
    if (cell != Cell::word && cell != Cell::wide) continue;
    // cvt.rn.bf16x2.f32 d, a, b: a goes to the high half, b to the low one.
    if (narrows && i != 1 - std::countr_zero(f.halves)) continue;
    const uint32_t halves = packed && !narrows ? f.halves : cell == Cell::wide ? 15u : 3u;
    use_register(log, record, f.node, op.s[i], halves, f.lane, row.sources[static_cast<size_t>(i)], i + 1);
  }
}

/// Bit operations: and, or, xor and lop3 keep halves apart; shifts by a literal 16 move
/// one.
void SliceScan::add_bits(const BlockLog& log, const SliceRecord& record, const Op& op, const Found& f) {
  const std::string_view opcode = opcode_of(*log.code, op);
  const auto literal = [&](int i) -> const Immediate* {
    for (const Immediate& m : log.code->immediates)
      if (m.slot == op.s[i]) return &m;
    return nullptr;
  };
  bool by_half = false;
  for (const char* name : {"and.", "or.", "xor.", "not.", "lop3."}) by_half |= opcode.starts_with(name);
  const bool shifts =
      (opcode.starts_with("shl.b32") || opcode.starts_with("shr.")) && op.d_cell == Cell::word;
  if (shifts && literal(1) && literal(1)->bits == 16) {
    const bool left = opcode.starts_with("shl.");
    if (f.halves & (left ? 2u : 1u))
      use_register(log, record, f.node, op.s[0], left ? 1u : 2u, f.lane, ptx::Type::none, 1);
    return;
  }
  for (int i = 0; i < op.source_count; ++i) {
    const Cell cell = cell_of(op.row->sources[static_cast<size_t>(i)]);
    if (cell != Cell::word && cell != Cell::wide) continue;
    const uint32_t all = cell == Cell::wide ? 15u : 3u;
    uint32_t halves = by_half && f.halves & all ? f.halves & all : all;
    if (opcode.starts_with("and.") && op.source_count == 2)
      if (const Immediate* mask = literal(1 - i))
        for (int half = 0; half < 4; ++half)
          if ((mask->bits >> (16 * half) & 0xffff) == 0) halves &= ~(1u << half);
    if (halves)
      use_register(log, record, f.node, op.s[i], halves, f.lane, op.row->sources[static_cast<size_t>(i)], i + 1);
  }
}

/// The row of A, the column of B and the c of one element of D.
void SliceScan::add_matrix(const BlockLog& log, const SliceRecord& record, const Op& op, const Found& f) {
  const uint64_t* details = log.details.data() + record.detail;
  const MatrixElements elements(op, record.warp, {details[0], details[1], details[2] != 0});
  const MatrixForm& form = elements.form();
  const auto use = [&](Element format, const ElementPlace& at, int name) {
    const int bits = format_of(format).bits;
    const uint32_t halves = bits == 64 ? 15u : bits == 32 ? 3u : 1u;
    if (at.slot < 0)
      use_memory(record, f.node, {no_slot, ptx::Space::shared, at.lane, at.shared / 2 * 2}, halves);
    else
      use_register(log, record, f.node, op.slots[at.slot], halves << at.bit / 16, at.lane, format_of(format).type,
                   name);
  };
  for (int row = 0; row < form.rows; ++row)
    for (int n = 0; n < form.columns(); ++n) {
      const ElementPlace made = elements.d(row, n);
      if (op.slots[made.slot] != f.slot || made.lane != f.lane || !(f.halves >> made.bit / 16 & 1)) continue;
      for (int k = 0; k < form.k; ++k) {
        use(form.a, elements.a(row, k), 4 * k);
        use(form.b, elements.b(k, n), 4 * k + 1);
      }
      if (elements.adds()) use(form.sum, elements.c(row, n), 2);
    }
}

}  // namespace assay::vm
