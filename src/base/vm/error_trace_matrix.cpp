// Tensor-core sums: the exact dot product of the operands' exact values. A tf32 operand means its whole fp32
// word: the bits that the tensor core drops are a rounding of the instruction. Operands of 8 bits and f64
// sums carry no shadow; integers have none.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/vm/error_trace.h"
#include "src/base/vm/matrix_elements.h"

namespace assay::vm {
namespace {

constexpr double kLost[] = {std::numeric_limits<double>::infinity()};

}  // namespace

struct ErrorTrace::Fragments {
  /// Rows x columns with errors, bounds and parts.
  template <int rows, int columns>
  struct Matrix {
    alignas(64) double value[rows][columns], error[rows][columns], bound[rows][columns];
    alignas(64) double part[kMostParts][rows][columns];
    alignas(64) double exact[rows][columns];  ///< value + error, where there are parts
    uint32_t parted = 0;                      ///< a bit per part that is not all zeros

    /// Before the elements of an instruction.
    void begin() {
      for (; parted; parted &= parted - 1) std::memset(part[std::countr_zero(parted)], 0, sizeof part[0]);
    }
  };
  static_assert(kMostParts <= 32);
  std::vector<Matrix<16, 32>> a;  ///< by block of 16 rows
  std::vector<Matrix<32, 8>> b;   ///< by tile of 8 columns
  std::vector<Matrix<16, 8>> c;   ///< [block][tile]

  /// Of sums of 64 terms at most, in double.
  static constexpr double kSumRoundoff = 0x1p-46;

  /// Is an operand of that element of D lost?
  static bool is_lost(const Matrix<16, 32>& a, const Matrix<32, 8>& b, const Matrix<16, 8>& c, int k, int row,
                      int column) {
    bool lost = std::isinf(c.bound[row][column]);
    for (int i = 0; i < k; ++i) lost |= std::isinf(a.bound[row][i]) || std::isinf(b.bound[i][column]);
    return lost;
  }

  /// Lane `lane` of a gathered operand; `sign` is -1 where the instruction negates it.
  template <class M>
  void put(M& m, int row, int column, const Operand& from, int lane, double sign, const ErrorPlan& plan) {
    m.value[row][column] = sign * from.value[lane];
    m.error[row][column] = sign * from.error[lane];
    m.bound[row][column] = from.bound[lane];
    if (plan.strict) m.bound[row][column] += kSumRoundoff * std::fabs(from.error[lane]);
    if (plan.parts == 0) return;
    m.exact[row][column] = m.value[row][column] + m.error[row][column];
    if (from.exact) return;
    for (int p = 0; p < plan.parts; ++p)
      if (const double part = from.part[p][lane]; part != 0)
        m.part[p][row][column] = sign * part, m.parted |= 1u << p;
  }
};

/// An element of a matrix in shared memory as lane 0 of an operand.
void ErrorTrace::gather_shared(const Warp& warp, uint64_t at, Element element, Operand& to) {
  const int bits = format_of(element).bits;
  uint64_t pattern = 0;
  std::memcpy(&pattern, warp.block->shared.data() + at, static_cast<size_t>(bits / 8));
  // The whole word of a tf32 operand.
  to.value[0] = element == Element::tf32 ? std::bit_cast<float>(static_cast<uint32_t>(pattern))
                                         : value_of(element, pattern);
  const ErrorKind kind = error_kind_of(format_of(element).type);
  const Cells& shared = cells_.shared();
  to.be_exact();
  const size_t first = at / 2,
               cell = kind == ErrorKind::none ? Cells::exact : shared.find(first, 1, kind, false);
  if (kind == ErrorKind::none && shared.kind[first] != ErrorKind::none) to.exact = false, to.bound = kLost;
  if (cell == Cells::unfollowed && plan_.strict) to.exact = false, to.bound = kLost;
  if (cell >= Cells::unfollowed) return;
  to.exact = false;
  to.error = &shared.error[cell], to.bound = &shared.bound[cell];
  for (int p = 0; p < plan_.parts; ++p) to.part[p] = shared.part(p) + cell;
}

/// Element `i` of register `slot` in all lanes.
void ErrorTrace::gather_element(Warp& warp, Slot slot, Element element, int i, Operand& to) {
  const ElementFormat& format = format_of(element);
  const ErrorKind kind = error_kind_of(format.type);
  if (kind != ErrorKind::none) return gather(warp, slot, i, kind, true, to);
  to.be_exact();
  for (int lane = 0; lane < 32; ++lane)
    to.value[lane] =
        value_of(element, warp.word(slot)[lane] >> (i * format.bits) & ((1u << format.bits) - 1));
  const uint32_t rounded = plan_.strict ? not_plain(warp, Use{slot, Cell::word}, ~0u) : 0;
  if (!rounded) return;
  to.exact = false, to.bound = to.copied[1];
  for (int lane = 0; lane < 32; ++lane) to.copied[1][lane] = rounded >> lane & 1 ? *kLost : 0;
}

void ErrorTrace::prepare_matrix(Warp& warp, const Op& op, uint32_t) {
  const MatrixElements elements(warp, op);
  const MatrixForm& form = elements.form();
  if (!carries_errors(form)) return;
  if (!fragments_) fragments_ = std::make_shared<Fragments>();
  Fragments& m = *fragments_;
  const int blocks = form.rows == 32 ? 2 : 1, rows = form.rows / blocks;
  m.a.resize(static_cast<size_t>(blocks));
  m.b.resize(form.tiles);
  m.c.resize(static_cast<size_t>(blocks * form.tiles));
  const auto begin = [](auto& matrix) { matrix.begin(); };
  std::ranges::for_each(m.a, begin), std::ranges::for_each(m.b, begin), std::ranges::for_each(m.c, begin);
  const double a_sign = form.negate_a ? -1 : 1, b_sign = form.negate_b ? -1 : 1;
  Operand& from = operands_[0];
  // put(r, lane, i): element i of register Op::slots[first + r] in a lane.
  const auto each_register = [&](int first, int count, Element element, auto put) {
    for (int r = 0; r < count; ++r)
      for (int i = 0; i < 32 / format_of(element).bits; ++i) {
        gather_element(warp, op.slots[first + r], element, i, from);
        for (int lane = 0; lane < 32; ++lane) put(r, lane, i);
      }
  };
  const int first_a = form.sum_registers(), first_b = first_a + form.a_registers(),
            first_c = form.warpgroup ? 0 : first_b + form.b_registers(), of_a = form.a_registers() / blocks,
            of_b = form.b_registers() / form.tiles, of_c = form.sum_registers() / (blocks * form.tiles);
  if (form.sparse) m.a[0] = {};
  each_register(first_a, form.a_registers(), form.a, [&](int r, int lane, int i) {
    const FragmentPlace at = a_place(rows, 32 / format_of(form.a).bits, r % of_a, lane, i);
    m.put(m.a[static_cast<size_t>(r / of_a)], at.row, elements.column_of_a(at.row, at.column), from, lane,
          a_sign, plan_);
  });
  each_register(first_b, form.b_registers(), form.b, [&](int r, int lane, int i) {
    const FragmentPlace at = b_place(32 / format_of(form.b).bits, r % of_b, lane, i);
    m.put(m.b[static_cast<size_t>(r / of_b)], at.row, at.column, from, lane, b_sign, plan_);
  });
  each_register(first_c, form.sum_registers(), form.sum, [&](int r, int lane, int i) {
    const FragmentPlace at = sum_place(form.sum == Element::f16, r % of_c, lane, i);
    if (!elements.adds()) from.value[lane] = 0, from.be_exact();
    m.put(m.c[static_cast<size_t>(r / of_c)], at.row, at.column, from, lane, 1, plan_);
  });
  for (int k = 0; k < form.k && form.warpgroup; ++k) {
    for (int row = 0; row < rows && form.a_in_shared && k < form.a_depth(); ++row) {
      gather_shared(warp, elements.a(row, k).shared, form.a, from);
      m.put(m.a[0], row, elements.column_of_a(row, k), from, 0, a_sign, plan_);
    }
    for (int n = 0; n < form.columns(); ++n) {
      gather_shared(warp, elements.b(k, n).shared, form.b, from);
      m.put(m.b[static_cast<size_t>(n / 8)], k, n % 8, from, 0, b_sign, plan_);
    }
  }
}

void ErrorTrace::matrix(Warp& warp, const Op& op, uint32_t) {
  const MatrixForm form = MatrixForm::of(op.immediate);
  if (!carries_errors(form)) return unfollowed_matrix(warp, op);
  const int blocks = form.rows == 32 ? 2 : 1;
  for (int block = 0; block < blocks; ++block)
    for (int tile = 0; tile < form.tiles; ++tile) matrix_tile(warp, op, form, block, tile);
}

/// 16 rows (of an 8-row form: 8) and 8 columns of D.
void ErrorTrace::matrix_tile(Warp& warp, const Op& op, const MatrixForm& form, int block, int tile) {
  const auto at_tile = static_cast<size_t>(block * form.tiles + tile);
  const auto& a = fragments_->a[static_cast<size_t>(block)];
  const auto& b = fragments_->b[static_cast<size_t>(tile)];
  const auto& c = fragments_->c[at_tile];
  const bool halves = form.sum == Element::f16;
  const ErrorKind kind = halves ? ErrorKind::f16 : ErrorKind::f32;
  const int blocks = form.rows == 32 ? 2 : 1, rows = form.rows / blocks, k = form.k;
  const int sums = form.sum_registers() / (blocks * form.tiles);
  const Slot* slots = op.slots + at_tile * static_cast<size_t>(sums);
  // Eight cells of 32 lanes at most: registers of f32, halves of registers of f16.
  const int runs = halves ? 2 * sums : sums;
  double values[4][32];
  uint8_t places[4][32];  ///< row * 8 + column
  alignas(64) double d[16][8] = {}, local[16][8], error[16][8], bound[16][8];
  for (int run = 0; run < runs; ++run) {
    decode(warp, slots[halves ? run / 2 : run], halves ? run % 2 : 0, kind, values[run]);
    for (int lane = 0; lane < 32; ++lane) {
      const FragmentPlace at =
          halves ? sum_place(true, run / 2, lane, run % 2) : sum_place(false, run, lane, 0);
      d[at.row][at.column] = values[run][lane];
      places[run][lane] = static_cast<uint8_t>(8 * at.row + at.column);
    }
  }
  for (int row = 0; row < rows; ++row)
    lane_kit().combine_sums(
        k, {a.value[row], a.error[row], a.bound[row], b.value[0], b.error[0], b.bound[0], c.value[row],
            c.error[row], c.bound[row], d[row], local[row], error[row], bound[row]});
  if (plan_.strict)  // the sum's own doubles; what its operands may be off by has theirs
    for (int row = 0; row < rows; ++row)
      for (int n = 0; n < 8; ++n)
        bound[row][n] += Fragments::kSumRoundoff * std::fabs(local[row][n]) - std::fabs(local[row][n]);
  alignas(64) double part[kMostParts][16][8];
  // Most constants reach few operands.
  for (int p = 0; p < plan_.parts; ++p)
    if (!((a.parted | b.parted) >> p & 1)) std::memcpy(part[p], c.part[p], sizeof part[p]);
  for (int p = 0; p < plan_.parts; ++p)
    for (int row = 0; row < rows && (a.parted | b.parted) >> p & 1; ++row)
      lane_kit().combine_parts(
          k, {a.exact[row], a.part[p][row], b.exact[0], b.part[p][0], c.part[p][row], part[p][row]});
  const int own = plan_.part_of_op.empty() ? -1 : plan_.part_of_op[op_index(op)];
  for (int run = 0; run < runs; ++run) {
    const int half = halves ? run % 2 : 0;
    const Slot slot = slots[halves ? run / 2 : run];
    Result result;
    for (int lane = 0; lane < 32; ++lane) {
      const int row = places[run][lane] / 8, n = places[run][lane] % 8;
      result.value[lane] = values[run][lane], result.local[lane] = local[row][n];
      result.error[lane] = error[row][n], result.bound[lane] = std::fmax(bound[row][n], 0);
      // What is not lost has a bound, however far sizes grow.
      if (!(bound[row][n] < *kLost))
        result.bound[lane] = Fragments::is_lost(a, b, c, k, row, n) ? *kLost : kLargestBound;
      if (!plan_.probes) continue;
      result.terms[lane] = std::fabs(local[row][n]) + std::fabs(c.error[row][n]);
      for (int i = 0; i < k; ++i)
        result.terms[lane] += std::fabs((b.value[i][n] + b.error[i][n]) * a.error[row][i]) +
                              std::fabs(a.value[row][i] * b.error[i][n]);
    }
    keep(warp, op, slot, half, kind, result, {}, ~0u);
    for (int p = 0; p < plan_.parts; ++p) {
      double sum[32];
      for (int lane = 0; lane < 32; ++lane) {
        sum[lane] =
            part[p][places[run][lane] / 8][places[run][lane] % 8] + (p == own ? result.local[lane] : 0);
      }
      if (plan_.probes) probe(warp, op, p, result, sum);
      std::memcpy(registers(warp).part(p) + cell(slot, half, 0), sum, sizeof sum);
    }
  }
}

/// Integer sums, which are exact, and those that no shadow follows.
void ErrorTrace::unfollowed_matrix(Warp& warp, const Op& op) {
  const bool lost = plan_.strict && not_plain(warp, op, ~0u);
  mark(warp, op, lost ? ErrorKind::lost : ErrorKind::none, ~0u);
}

}  // namespace assay::vm
