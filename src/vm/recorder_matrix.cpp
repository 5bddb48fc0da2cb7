// Tensor-core sums: every output element depends on its row of A, its column of B and its c.
#include <cmath>

#include "src/vm/recorder.h"
#include "src/vm/tensor_core.h"

namespace assay::vm {

/// Operands of one warp-wide sum, by element.
struct Recorder::MatrixTerms {
  int k = 0;
  ptx::Type type = ptx::Type::none;
  uint64_t a[16][16], b[16][8];
  ShadowCell a_cell[16][16], b_cell[16][8];
  uint32_t c_bits = 0;  ///< of the element at hand
  ShadowCell c_cell;
};

void Recorder::matrix(Warp& warp, const Op& op) {
  MatrixTerms m;
  m.k = static_cast<int>(op.immediate);
  m.type = op.type;
  const bool words = op.type == ptx::Type::tf32;
  const int span = words ? 4 : 8, na = 2 * m.k / span, nb = m.k / span;
  auto place = [&](int slot, int lane,
                   auto&& put) {  // put(offset along k, bits, cell) of each element in the register
    const uint32_t word = before_slots_[slot][lane];
    const ShadowCell* c = cells(warp, op.slots[slot], lane);
    const int t = lane % 4;
    if (words) {
      put(t, word,
          ShadowCell{c[0].tag ? c[0].tag : c[1].tag,
                     run_->provenance.unite(c[0].dependence, c[1].dependence)});
    } else {
      put(2 * t, word & 0xffff, c[0]);
      put(2 * t + 1, word >> 16, c[1]);
    }
  };
  for (int lane = 0; lane < 32; lane++) {
    for (int r = 0; r < na; r++)
      place(4 + r, lane, [&](int at, uint32_t bits, ShadowCell cell) {
        const int row = lane / 4 + 8 * (r & 1), k = span * (r >> 1) + at;
        m.a[row][k] = bits, m.a_cell[row][k] = cell;
      });
    for (int r = 0; r < nb; r++)
      place(4 + na + r, lane, [&](int at, uint32_t bits, ShadowCell cell) {
        m.b[span * r + at][lane / 4] = bits, m.b_cell[span * r + at][lane / 4] = cell;
      });
  }
  Dependence rows[16] = {}, columns[8] = {};
  Provenance& p = run_->provenance;
  for (int k = 0; k < m.k; k++) {
    for (int row = 0; row < 16; row++) rows[row] = p.unite(rows[row], m.a_cell[row][k].dependence);
    for (int n = 0; n < 8; n++) columns[n] = p.unite(columns[n], m.b_cell[k][n].dependence);
  }
  const int first_c = 4 + na + nb;
  for (int r = 0; r < 4; r++)
    for (int lane = 0; lane < 32; lane++) {
      const int row = lane / 4 + 8 * (r >> 1), n = 2 * (lane % 4) + (r & 1);
      const ShadowCell* c = cells(warp, op.slots[first_c + r], lane);
      m.c_bits = before_slots_[first_c + r][lane];
      m.c_cell = {c[0].tag ? c[0].tag : c[1].tag, p.unite(c[0].dependence, c[1].dependence)};
      const Dependence united = p.unite(p.unite(rows[row], columns[n]), m.c_cell.dependence);
      const uint32_t result = warp.word(op.slots[r])[lane];
      const Tag tag =
          (result & 0x7f800000u) == 0x7f800000u ? log_sum(warp, op, m, row, n, lane, result, united) : 0;
      ShadowCell* d = cells(warp, op.slots[r], lane);
      d[0] = d[1] = {tag, united};
    }
}

/// Logs one element that is not finite with the terms that decide: NaN operands, else the first 0 * Inf, else
/// the infinite terms, else (finite operands that overflow) c and the largest product; k ascending.
Tag Recorder::log_sum(Warp& warp, const Op& op, const MatrixTerms& m, int row, int n, int lane,
                      uint32_t result, Dependence united) {
  constexpr int kTerms = 4;  // products shown at most
  LoggedEvent e = event_at(warp, op, lane);
  e.result_bits = result;
  e.result_type = ptx::Type::f32;
  e.dependence = united;
  const double c = value_of(ptx::Type::f32, m.c_bits);
  enum { has_nan, zero_times_infinity, infinite, finite } deciding = finite;
  auto product_class = [&](int k) {
    const double a = value_of(m.type, m.a[row][k]), b = value_of(m.type, m.b[k][n]);
    if (std::isnan(a) || std::isnan(b)) return has_nan;
    if (std::isnan(a * b)) return zero_times_infinity;
    return std::isinf(a) || std::isinf(b) ? infinite : finite;
  };
  for (int k = 0; k < m.k; k++) deciding = std::min(deciding, product_class(k));
  deciding = std::min(deciding, std::isnan(c) ? has_nan : std::isinf(c) ? infinite : finite);
  LoggedOperand operands[2 * kTerms + 1];
  int count = 0;
  auto add_product = [&](int k) {
    if (count + 2 > 2 * kTerms) return;
    const auto at = static_cast<uint8_t>(k);
    operands[count++] = {m.a[row][k], m.type, 0, at, m.a_cell[row][k].tag, m.a_cell[row][k].dependence};
    operands[count++] = {m.b[k][n], m.type, 1, at, m.b_cell[k][n].tag, m.b_cell[k][n].dependence};
  };
  if (deciding == finite) {
    int largest = 0;
    double magnitude = -1;
    for (int k = 0; k < m.k; k++) {
      const double x = std::fabs(value_of(m.type, m.a[row][k]) * value_of(m.type, m.b[k][n]));
      if (x > magnitude) magnitude = x, largest = k;
    }
    add_product(largest);
  } else {
    for (int k = 0; k < m.k; k++)
      if (product_class(k) == deciding) add_product(k);
  }
  if (deciding == finite || (deciding == has_nan && std::isnan(c)) || (deciding == infinite && std::isinf(c)))
    operands[count++] = {m.c_bits, ptx::Type::f32, 2, 0, m.c_cell.tag, m.c_cell.dependence};
  const bool nan = is_nan(ptx::Type::f32, result);
  e.born = nan ? deciding != has_nan : deciding == finite;
  for (int i = 0; i < count; i++)  // a tag left on a finite operand says nothing
    if (!is_nonfinite(operands[i].type, operands[i].bits)) operands[i].tag = 0;
  return log(e, operands, count);
}

}  // namespace assay::vm
