// Which halves of its sources an instance reads.
#include <algorithm>
#include <bit>

#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/slice_scan.h"

namespace assay::vm {

/// Arithmetic on packed halves, and, or, xor and lop3 keep halves apart; a conversion that packs two floats
/// takes each half from its own source (cvt.rn.bf16x2.f32 d, a, b: a goes to the high half); shifts by a
/// literal 16 move one.
void SliceScan::add_computed(const Op& op, const Found& f) {
  const Signature& signature = block_->code->signature(op);
  const Meaning& meaning = *signature.meaning;
  const Flow flow = signature.flow();
  const auto literal = [&](int i) -> const Immediate* {
    for (const Immediate& m : block_->code->immediates)
      if (m.slot == op.s[i]) return &m;
    return nullptr;
  };
  if (flow == Flow::shift && op.d_cell == Cell::word && literal(1) && literal(1)->bits == 16) {
    const bool left = signature.form.operation == ptx::Operation::shl;
    if (f.halves & (left ? 2u : 1u))
      use_register(f.node, op.s[0], left ? 1u : 2u, f.lane, ptx::Type::none, 1);
    return;
  }
  const bool packed = ptx::is_packed(meaning.result) && ptx::is_float(meaning.sources[0]);
  const bool narrows = packed && meaning.sources[0] == ptx::Type::f32;
  const bool by_half = (packed && !narrows) || flow == Flow::logic;
  const bool masks = signature.form.operation == ptx::Operation::and_;
  for (int i = 0; i < op.source_count; ++i) {
    const Cell cell = cell_of(meaning.sources[static_cast<size_t>(i)]);
    if (cell != Cell::word && cell != Cell::wide) continue;
    if (narrows && i != 1 - std::countr_zero(f.halves)) continue;
    const uint32_t all = cell == Cell::wide ? 15u : 3u;
    uint32_t halves = by_half && f.halves & all ? f.halves & all : all;
    if (const Immediate* mask = masks && op.source_count == 2 ? literal(1 - i) : nullptr)
      for (int half = 0; half < 4; ++half)
        if ((mask->bits >> (16 * half) & 0xffff) == 0) halves &= ~(1u << half);
    if (halves) use_register(f.node, op.s[i], halves, f.lane, meaning.sources[static_cast<size_t>(i)], i + 1);
  }
}

/// The row of A, the column of B and the c of one element of D.
void SliceScan::add_matrix(const Op& op, const Found& f) {
  const uint64_t* details = block_->details.data() + executed_->detail;
  const MatrixElements elements(op, executed_->warp, {details[0], details[1], details[2] != 0});
  const MatrixForm& form = elements.form();
  const auto use = [&](Element format, const ElementPlace& at, int name) {
    const int bits = format_of(format).bits;
    const uint32_t halves = bits == 64 ? 15u : bits == 32 ? 3u : 1u;
    if (at.slot < 0)
      use_memory(f.node, {no_slot, ptx::Space::shared, at.lane, at.shared / 2 * 2}, halves);
    else
      use_register(f.node, op.slots[at.slot], halves << at.bit / 16, at.lane, format_of(format).type, name);
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
