// Which halves of its sources an instance reads.
#include <algorithm>

#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/slice_scan.h"

namespace assay::vm {

/// Of a shift that moves a half the distance is no operand.
void SliceScan::add_computed(const Op& op, const Found& f) {
  const Signature& signature = block_->code->signature(op);
  const Code& code = *block_->code;
  const auto [known, is_new] = half_influence_.try_emplace(&op);
  if (is_new) known->second = half_influence(code, op);
  const bool moves_half = signature.flow() == Flow::shift && op.d_cell == Cell::word &&
                          std::any_of(code.immediates.begin(), code.immediates.end(),
                                      [&](const Immediate& m) { return m.slot == op.s[1] && m.bits == 16; });
  for (int i = 0; i < (moves_half ? 1 : op.source_count); ++i) {
    const ptx::Type type = signature.meaning->sources[static_cast<size_t>(i)];
    const Cell cell = cell_of(type);
    if (cell != Cell::word && cell != Cell::wide) continue;
    uint32_t halves = 0;
    for (size_t half = 0; half < bytes_of(cell) / 2; ++half)
      halves |= static_cast<uint32_t>((known->second[static_cast<size_t>(i)][half] & f.halves) != 0) << half;
    if (halves) use_register(f.node, op.s[i], halves, f.lane, moves_half ? ptx::Type::none : type, i + 1);
  }
}

/// The row of A, the column of B and the c of one element of D.
void SliceScan::add_matrix(const Op& op, const Found& f) {
  const MatrixForm& matrix = block_->code->signature(op).matrix;
  const bool reads_more = matrix.warpgroup || matrix.sparse;
  const MatrixElements elements(op, executed_->warp,
                                reads_more ? block_->products[executed_->detail] : MatrixSources{});
  const MatrixForm& form = elements.form();
  const auto use = [&](Element format, const ElementPlace& at, int name) {
    const BytePlace from = place_of(op, at);
    const int bits = format_of(format).bits;
    const uint32_t halves = bits == 64 ? 15u : bits == 32 ? 3u : 1u;
    if (from.slot == no_slot)
      use_memory(f.node, {no_slot, from.space, from.lane, from.at / 2 * 2}, halves, format_of(format).type,
                 name);
    else
      use_register(f.node, from.slot, halves << from.at / 2, from.lane, format_of(format).type, name);
  };
  elements.each_sum([&](int row, int n, const ElementPlace& made) {
    if (op.slots[made.slot] != f.slot || made.lane != f.lane || !(f.halves >> made.bit / 16 & 1)) return;
    for (int i = 0; i < form.a_depth(); ++i) {
      const int k = elements.column_of_a(row, i);
      use(form.a, elements.a(row, i), 4 * k);
      use(form.b, elements.b(k, n), 4 * k + 1);
    }
    if (elements.adds()) use(form.sum, elements.c(row, n), 2);
  });
}

}  // namespace assay::vm
