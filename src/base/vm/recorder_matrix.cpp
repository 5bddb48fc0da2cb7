// Tensor-core sums: every output element depends on its row of A, its column of B and its c.
#include <cmath>
#include <cstring>

#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/recorder.h"
#include "src/base/vm/tensor_core.h"

namespace assay::vm {
namespace {

/// How an operand of the format is logged: fp8 as the f16 of the same value.
ptx::Type logged_type(Element e) {
  const ptx::Type type = format_of(e).type;
  return type == ptx::Type::none ? ptx::Type::f16 : type;
}

uint64_t logged_bits(Element e, uint64_t pattern) {
  return e == Element::e4m3 || e == Element::e5m2 ? widen_to_f16(e, static_cast<uint32_t>(pattern)) : pattern;
}

}  // namespace

struct Recorder::MatrixTerm {
  uint64_t bits = 0;  ///< as logged
  ProvenanceCell cell;
};

/// Operands of one warp-wide instruction, by element.
struct Recorder::MatrixTerms {
  int k = 0, columns = 0;
  ptx::Type a_type = ptx::Type::none, b_type = ptx::Type::none, sum_type = ptx::Type::none;
  std::vector<MatrixTerm> a, b;  ///< [row][k], [k][column]
  MatrixTerm c;                  ///< of the element at hand
  const MatrixTerm& a_at(int row, int i) const { return a[static_cast<size_t>(row * k + i)]; }
  const MatrixTerm& b_at(int i, int n) const { return b[static_cast<size_t>(i * columns + n)]; }
};

/// An operand element: its bits before the instruction ran, and its cell.
Recorder::MatrixTerm Recorder::matrix_term(const Warp& warp, const Op& op, Element element,
                                           const ElementPlace& at) {
  const int bits = format_of(element).bits;
  const bool shared = at.slot < 0;
  const BytePlace from = shared
                             ? BytePlace{no_slot, ptx::Space::shared, 0, at.shared}
                             : BytePlace{op.slots[at.slot], {}, at.lane, static_cast<uint64_t>(at.bit / 8)};
  ProvenanceCell cell;
  for (int half = 0; half < std::max(1, bits / 16); ++half) cell = unite(cell, read(warp, from, half));
  const auto s = static_cast<size_t>(at.slot), lane = static_cast<size_t>(at.lane);
  uint64_t pattern = 0;
  if (shared)
    std::memcpy(&pattern, warp.block->shared.data() + at.shared, static_cast<size_t>(bits / 8));
  else
    pattern = bits == 64 ? before_wide_slots_[s][lane] : before_slots_[s][lane] >> at.bit;
  if (bits < 64) pattern &= (uint64_t{1} << bits) - 1;
  return {logged_bits(element, pattern), cell};
}

void Recorder::keep_slots(const Warp& warp, const Op& op, uint32_t) {
  const bool wide = MatrixForm::of(op.immediate).sum == Element::f64;
  before_slots_.resize(op.slot_count);
  if (wide) before_wide_slots_.resize(op.slot_count);
  for (int i = 0; i < op.slot_count; i++)
    if (wide)
      std::memcpy(before_wide_slots_[static_cast<size_t>(i)].data(), warp.wide(op.slots[i]), 256);
    else
      std::memcpy(before_slots_[static_cast<size_t>(i)].data(), warp.word(op.slots[i]), 128);
}

void Recorder::matrix(const Warp& warp, const Op& op, uint32_t) {
  const MatrixElements elements(warp, op);
  const MatrixForm& form = elements.form();
  MatrixTerms m;
  m.k = form.k;
  m.columns = form.columns();
  m.a_type = logged_type(form.a), m.b_type = logged_type(form.b), m.sum_type = logged_type(form.sum);
  const int sum_bits = format_of(form.sum).bits;
  std::vector<Dependence> rows(form.rows, kNothing), columns(static_cast<size_t>(m.columns), kNothing);
  Provenance& p = run_->provenance;
  for (int row = 0; row < form.rows; row++)
    for (int k = 0; k < m.k; k++) {
      m.a.push_back(matrix_term(warp, op, form.a, elements.a(row, k)));
      auto& all = rows[static_cast<size_t>(row)];
      all = p.unite(all, m.a.back().cell.dependence);
    }
  for (int k = 0; k < m.k; k++)
    for (int n = 0; n < m.columns; n++) {
      m.b.push_back(matrix_term(warp, op, form.b, elements.b(k, n)));
      auto& all = columns[static_cast<size_t>(n)];
      all = p.unite(all, m.b.back().cell.dependence);
    }
  // Sums of every element before any cell of D changes: D may lie where C does.
  struct Made {
    ElementPlace at;
    ProvenanceCell cell;
  };
  std::vector<Made> made;
  for (int row = 0; row < form.rows; row++)
    for (int n = 0; n < m.columns; n++) {
      m.c = elements.adds() ? matrix_term(warp, op, form.sum, elements.c(row, n)) : MatrixTerm{};
      const Dependence all = p.unite(p.unite(rows[static_cast<size_t>(row)], columns[static_cast<size_t>(n)]),
                                     m.c.cell.dependence);
      const ElementPlace at = elements.d(row, n);
      const Slot slot = op.slots[at.slot];
      const uint64_t result = sum_bits == 64
                                  ? warp.wide(slot)[at.lane]
                                  : warp.word(slot)[at.lane] >> at.bit & (sum_bits == 16 ? 0xffff : ~0u);
      const bool logs = !format_of(form.sum).integer && is_nonfinite(m.sum_type, result);
      made.push_back({at, {logs ? log_sum(warp, op, m, row, n, at.lane, result, all) : 0, all}});
    }
  for (const Made& one : made)
    for (int half = 0; half < sum_bits / 16; half++)
      cell(warp, op.slots[one.at.slot], one.at.bit / 16 + half, one.at.lane) = one.cell;
}

/// Logs one element that is not finite with the terms that decide: NaN operands, else the first 0 * Inf, else
/// the infinite terms, else (finite operands that overflow) c and the largest product; k ascending.
Tag Recorder::log_sum(const Warp& warp, const Op& op, const MatrixTerms& m, int row, int n, int lane,
                      uint64_t result, Dependence all) {
  constexpr int kTerms = 4;  // products shown at most
  const double c = value_of(m.sum_type, m.c.bits);
  enum { has_nan, zero_times_infinity, infinite, finite } deciding = finite;
  auto a_value = [&](int k) { return value_of(m.a_type, m.a_at(row, k).bits); };
  auto b_value = [&](int k) { return value_of(m.b_type, m.b_at(k, n).bits); };
  auto product_class = [&](int k) {
    const double a = a_value(k), b = b_value(k);
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
    const MatrixTerm &a = m.a_at(row, k), &b = m.b_at(k, n);
    operands[count++] = {a.bits, m.a_type, 0, at, a.cell.tag, a.cell.dependence};
    operands[count++] = {b.bits, m.b_type, 1, at, b.cell.tag, b.cell.dependence};
  };
  if (deciding == finite) {
    int largest = 0;
    double magnitude = -1;
    for (int k = 0; k < m.k; k++) {
      const double x = std::fabs(a_value(k) * b_value(k));
      if (x > magnitude) magnitude = x, largest = k;
    }
    add_product(largest);
  } else {
    for (int k = 0; k < m.k; k++)
      if (product_class(k) == deciding) add_product(k);
  }
  if (deciding == finite || (deciding == has_nan && std::isnan(c)) || (deciding == infinite && std::isinf(c)))
    operands[count++] = {m.c.bits, m.sum_type, 2, 0, m.c.cell.tag, m.c.cell.dependence};
  return log(event_at(warp, op, lane, m.sum_type, result, all), operands, count);
}

}  // namespace assay::vm
