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
  bool absent = true;  ///< a zero that a sparse A does not hold
};

/// Operands of one warp-wide instruction, by element.
struct Recorder::MatrixTerms {
  explicit MatrixTerms(const MatrixForm& form)
      : k(form.k),
        a_type(logged_type(form.a)),
        b_type(logged_type(form.b)),
        sum_type(logged_type(form.sum)),
        columns_(form.columns()) {
    for (const char operand : {'A', 'B', 'C'})
      of_[operand - 'A'].resize(static_cast<size_t>(operand == 'B' ? k : form.rows) * width(operand));
  }
  MatrixTerm& at(char operand, int row, int column) {
    return of_[operand - 'A'][static_cast<size_t>(row) * width(operand) + static_cast<size_t>(column)];
  }
  const int k;
  const ptx::Type a_type, b_type, sum_type;

 private:
  size_t width(char operand) const { return static_cast<size_t>(operand == 'A' ? k : columns_); }
  int columns_;
  std::vector<MatrixTerm> of_[3];
};

/// An operand element: its bits before the instruction ran, and its cell.
Recorder::MatrixTerm Recorder::matrix_term(const Warp& warp, const Op& op, Element element,
                                           const ElementPlace& at) {
  const int bits = format_of(element).bits;
  const BytePlace from = place_of(op, at);
  ProvenanceCell cell;
  for (int half = 0; half < std::max(1, bits / 16); ++half) cell = unite(cell, read(warp, from, half));
  uint64_t pattern = 0;
  if (from.slot == no_slot)
    std::memcpy(&pattern, warp.block->shared.data() + at.shared, static_cast<size_t>(bits / 8));
  else
    pattern = before_slots_[static_cast<size_t>(at.slot)][static_cast<size_t>(at.lane)] >> at.bit;
  if (bits < 64) pattern &= (uint64_t{1} << bits) - 1;
  return {logged_bits(element, pattern), cell, false};
}

void Recorder::keep_slots(const Warp& warp, const Op& op, uint32_t) {
  const bool wide = MatrixForm::of(op.immediate).sum == Element::f64;
  before_slots_.resize(op.slot_count);
  for (size_t i = 0; i < op.slot_count; i++) read_lanes(warp, op.slots[i], wide, before_slots_[i]);
}

void Recorder::matrix(const Warp& warp, const Op& op, uint32_t) {
  const MatrixElements elements(warp, op);
  const MatrixForm& form = elements.form();
  // All terms before any cell of D changes: D may lie where C does.
  MatrixTerms m(form);
  std::vector<Dependence> rows(form.rows, kNothing), columns(static_cast<size_t>(form.columns()), kNothing);
  Provenance& p = run_->provenance;
  elements.each_operand([&](char operand, int row, int column, Element element, const ElementPlace& at) {
    const MatrixTerm& term = m.at(operand, row, column) = matrix_term(warp, op, element, at);
    if (operand == 'C') return;
    Dependence& all = operand == 'A' ? rows[static_cast<size_t>(row)] : columns[static_cast<size_t>(column)];
    all = p.unite(all, term.cell.dependence);
  });
  const int sum_bits = format_of(form.sum).bits;
  elements.each_sum([&](int row, int n, const ElementPlace& at) {
    const Dependence operands = p.unite(rows[static_cast<size_t>(row)], columns[static_cast<size_t>(n)]),
                     all = p.unite(operands, m.at('C', row, n).cell.dependence);
    const Slot slot = op.slots[at.slot];
    const uint64_t result = sum_bits == 64
                                ? warp.wide(slot)[at.lane]
                                : warp.word(slot)[at.lane] >> at.bit & (sum_bits == 16 ? 0xffff : ~0u);
    const bool logs = !format_of(form.sum).integer && is_nonfinite(m.sum_type, result);
    const ProvenanceCell made{logs ? log_sum(warp, op, m, row, n, at.lane, result, all) : 0, all};
    for (int half = 0; half < sum_bits / 16; half++) cell(warp, slot, at.bit / 16 + half, at.lane) = made;
  });
}

/// Logs one element that is not finite with the terms that decide: NaN operands, else the first 0 * Inf, else
/// the infinite terms, else (finite operands that overflow) c and the largest product; k ascending.
Tag Recorder::log_sum(const Warp& warp, const Op& op, MatrixTerms& m, int row, int n, int lane,
                      uint64_t result, Dependence all) {
  constexpr int kTerms = 4;  // products shown at most
  const MatrixTerm& summand = m.at('C', row, n);
  const double c = value_of(m.sum_type, summand.bits);
  enum { has_nan, zero_times_infinity, infinite, finite } deciding = finite;
  auto a_value = [&](int k) { return value_of(m.a_type, m.at('A', row, k).bits); };
  auto b_value = [&](int k) { return value_of(m.b_type, m.at('B', k, n).bits); };
  auto product_class = [&](int k) {
    if (m.at('A', row, k).absent) return finite;
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
    const MatrixTerm &a = m.at('A', row, k), &b = m.at('B', k, n);
    operands[count++] = operand(a.bits, m.a_type, 0, a.cell, k);
    operands[count++] = operand(b.bits, m.b_type, 1, b.cell, k);
  };
  if (deciding == finite) {
    int largest = 0;
    double magnitude = -1;
    for (int k = 0; k < m.k; k++) {
      if (m.at('A', row, k).absent) continue;
      const double x = std::fabs(a_value(k) * b_value(k));
      if (x > magnitude) magnitude = x, largest = k;
    }
    add_product(largest);
  } else {
    for (int k = 0; k < m.k; k++)
      if (product_class(k) == deciding) add_product(k);
  }
  if (deciding == finite || (deciding == has_nan && std::isnan(c)) || (deciding == infinite && std::isinf(c)))
    operands[count++] = operand(summand.bits, m.sum_type, 2, summand.cell);
  return log(event_at(warp, op, lane, m.sum_type, result, all), operands, count);
}

}  // namespace assay::vm
