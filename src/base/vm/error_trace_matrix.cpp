// Tensor-core sums: the exact dot product of the operands' exact values. A tf32 operand means its whole fp32
// word: the bits that the tensor core drops are a rounding of the instruction. Operands of 8 bits and f64
// sums carry no shadow; integers have none.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

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
    bool rounded = false;                     ///< some element carries a shadow; else none is off

    /// Before the elements of an instruction: none is off by anything.
    void begin() {
      for (; parted; parted &= parted - 1) std::memset(part[std::countr_zero(parted)], 0, sizeof part[0]);
      if (std::exchange(rounded, false))
        std::memset(error, 0, sizeof error), std::memset(bound, 0, sizeof bound);
    }
    /// Of element (row, column).
    static uint16_t at(const FragmentPlace& place) {
      return static_cast<uint16_t>(place.row * columns + place.column);
    }
  };
  static_assert(kMostParts <= 32);
  using A = Matrix<16, 32>;
  using B = Matrix<32, 8>;
  using C = Matrix<16, 8>;
  std::vector<A> a;  ///< by block of 16 rows
  std::vector<B> b;  ///< by tile of 8 columns
  std::vector<C> c;  ///< [block][tile]

  /// Where the elements of a register lie in their matrix, by lane.
  using LanePlaces = std::array<uint16_t, 32>;
  struct Layout {
    uint64_t form = 0;
    std::vector<LanePlaces> a, b, c;  ///< [register of one matrix][element]
  };
  std::vector<Layout> layouts;
  const Layout& layout_of(const MatrixForm&);

  /// Of sums of 64 terms at most, in double.
  static constexpr double kSumRoundoff = 0x1p-46;

  /// Is an operand of that element of D lost?
  static bool is_lost(const A& a, const B& b, const C& c, int k, int row, int column) {
    bool lost = std::isinf(c.bound[row][column]);
    for (int i = 0; i < k; ++i) lost |= std::isinf(a.bound[row][i]) || std::isinf(b.bound[i][column]);
    return lost;
  }

  /// All lanes of a gathered operand; `sign` is -1 where the instruction negates it.
  template <class M>
  static void put(M& m, const LanePlaces& places, const Operand& from, double sign, const ErrorPlan& plan) {
    double *value = m.value[0], *error = m.error[0], *bound = m.bound[0], *exact = m.exact[0];
    for (size_t lane = 0; lane < 32; ++lane) value[places[lane]] = sign * from.value[lane];
    if (from.exact) {
      for (size_t lane = 0; plan.parts > 0 && lane < 32; ++lane)
        exact[places[lane]] = sign * from.value[lane];
      return;
    }
    for (size_t lane = 0; lane < 32; ++lane) error[places[lane]] = sign * from.error[lane];
    const double own = plan.strict ? kSumRoundoff : 0;
    for (size_t lane = 0; lane < 32; ++lane)
      bound[places[lane]] = from.bound[lane] + own * std::fabs(from.error[lane]);
    m.rounded = true;
    if (plan.parts == 0) return;
    for (size_t lane = 0; lane < 32; ++lane) exact[places[lane]] = value[places[lane]] + error[places[lane]];
    for (uint32_t parts = from.parted; parts; parts &= parts - 1) {
      const int p = std::countr_zero(parts);
      if (is_zero(from.part[p], 32)) continue;
      double* const part = m.part[p][0];
      for (size_t lane = 0; lane < 32; ++lane) part[places[lane]] = sign * from.part[p][lane];
      m.parted |= 1u << p;
    }
  }
  /// Lane 0 alone.
  template <class M>
  static void put_one(M& m, int row, int column, const Operand& from, double sign, const ErrorPlan& plan) {
    m.value[row][column] = sign * from.value[0];
    m.error[row][column] = sign * from.error[0];
    m.bound[row][column] = from.bound[0];
    if (plan.strict) m.bound[row][column] += kSumRoundoff * std::fabs(from.error[0]);
    m.rounded |= !from.exact;
    if (plan.parts == 0) return;
    m.exact[row][column] = m.value[row][column] + m.error[row][column];
    if (from.exact) return;
    for (int p = 0; p < plan.parts; ++p)
      if (const double part = from.part[p][0]; part != 0)
        m.part[p][row][column] = sign * part, m.parted |= 1u << p;
  }
};

const ErrorTrace::Fragments::Layout& ErrorTrace::Fragments::layout_of(const MatrixForm& form) {
  for (const Layout& known : layouts)
    if (known.form == form.bits()) return known;
  const int blocks = form.rows == 32 ? 2 : 1, rows = form.rows / blocks;
  const auto of_registers = [](int count, Element element, const auto& place) {
    std::vector<LanePlaces> made;
    const int per = 32 / format_of(element).bits;
    for (int r = 0; r < count; ++r)
      for (int i = 0; i < per; ++i)
        for (int lane = 0; lane < 32; ++lane) {
          if (lane == 0) made.emplace_back();
          made.back()[static_cast<size_t>(lane)] = place(per, r, lane, i);
        }
    return made;
  };
  Layout made;
  made.form = form.bits();
  made.a = of_registers(form.a_registers() / blocks, form.a, [&](int per, int r, int lane, int i) {
    return A::at(a_place(rows, per, r, lane, i));
  });
  made.b = of_registers(form.b_registers() / form.tiles, form.b,
                        [](int per, int r, int lane, int i) { return B::at(b_place(per, r, lane, i)); });
  made.c = of_registers(
      form.sum_registers() / (blocks * form.tiles), form.sum,
      [&](int, int r, int lane, int i) { return C::at(sum_place(form.sum == Element::f16, r, lane, i)); });
  layouts.push_back(std::move(made));
  return layouts.back();
}

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
  to.be_exact(plan_.parts);
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
  if (kind != ErrorKind::none) return gather(warp, slot, i, kind, true, ~0u, to);
  to.be_exact(plan_.parts);
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
  const Fragments::Layout& layout = m.layout_of(form);
  Operand& from = operands_[0];
  // Registers Op::slots[first], ... of matrices that have as many each as `places` says.
  const auto put_registers = [&](auto& matrices, int first, int count, Element element, double sign,
                                 const std::vector<Fragments::LanePlaces>& places, bool taken) {
    const int per = 32 / format_of(element).bits, of_each = static_cast<int>(places.size()) / per;
    for (int r = 0; r < count; ++r)
      for (int i = 0; i < per; ++i) {
        gather_element(warp, op.slots[first + r], element, i, from);
        if (!taken) std::fill_n(from.value, 32, 0.0), from.be_exact(plan_.parts);
        Fragments::put(matrices[static_cast<size_t>(r / of_each)],
                       places[static_cast<size_t>(r % of_each * per + i)], from, sign, plan_);
      }
  };
  const int first_a = form.sum_registers(), first_b = first_a + form.a_registers(),
            first_c = form.warpgroup ? 0 : first_b + form.b_registers();
  std::vector<Fragments::LanePlaces> sparse;
  if (form.sparse) {
    m.a[0] = {};
    sparse = layout.a;
    for (Fragments::LanePlaces& places : sparse)
      for (uint16_t& at : places)
        at = static_cast<uint16_t>(at / 32 * 32 + elements.column_of_a(at / 32, at % 32));
  }
  put_registers(m.a, first_a, form.a_registers(), form.a, a_sign, form.sparse ? sparse : layout.a, true);
  put_registers(m.b, first_b, form.b_registers(), form.b, b_sign, layout.b, true);
  put_registers(m.c, first_c, form.sum_registers(), form.sum, 1, layout.c, elements.adds());
  for (int k = 0; k < form.k && form.warpgroup; ++k) {
    for (int row = 0; row < rows && form.a_in_shared && k < form.a_depth(); ++row) {
      gather_shared(warp, elements.a(row, k).shared, form.a, from);
      Fragments::put_one(m.a[0], row, elements.column_of_a(row, k), from, a_sign, plan_);
    }
    for (int n = 0; n < form.columns(); ++n) {
      gather_shared(warp, elements.b(k, n).shared, form.b, from);
      Fragments::put_one(m.b[static_cast<size_t>(n / 8)], k, n % 8, from, b_sign, plan_);
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
  const std::vector<Fragments::LanePlaces>& places = fragments_->layout_of(form).c;
  const bool halves = form.sum == Element::f16;
  const ErrorKind kind = halves ? ErrorKind::f16 : ErrorKind::f32;
  const int blocks = form.rows == 32 ? 2 : 1, rows = form.rows / blocks, k = form.k;
  const int sums = form.sum_registers() / (blocks * form.tiles);
  const Slot* slots = op.slots + at_tile * static_cast<size_t>(sums);
  // Eight cells of 32 lanes at most: registers of f32, halves of registers of f16.
  const size_t runs = places.size();
  const auto slot_of = [&](size_t run) { return slots[halves ? run / 2 : run]; };
  const auto half_of = [&](size_t run) { return halves ? static_cast<int>(run % 2) : 0; };
  double values[4][32];
  alignas(64) double d[16][8] = {}, local[16][8], error[16][8], bound[16][8], terms[16][8];
  for (size_t run = 0; run < runs; ++run) {
    decode(warp, slot_of(run), half_of(run), kind, values[run]);
    for (size_t lane = 0; lane < 32; ++lane) d[0][places[run][lane]] = values[run][lane];
  }
  shadow_kit_.combine_tile({rows, k, a.rounded, b.rounded, a.value[0], a.error[0], a.bound[0], b.value[0],
                            b.error[0], b.bound[0], c.value[0], c.error[0], c.bound[0], d[0], local[0],
                            error[0], bound[0], plan_.probes ? terms[0] : nullptr});
  bool unbounded = false;
  for (int row = 0; row < rows; ++row)
    for (int n = 0; n < 8; ++n) {
      if (plan_.strict)  // the sum's own doubles; what its operands may be off by has theirs
        bound[row][n] += Fragments::kSumRoundoff * std::fabs(local[row][n]) - std::fabs(local[row][n]);
      unbounded |= !(bound[row][n] < *kLost);
    }
  alignas(64) double part[kMostParts][16][8];
  const double* parts[kMostParts];  // null: zeros; most reach few operands
  for (int p = 0; p < plan_.parts; ++p) {
    const bool in_a = (a.parted >> p & 1) != 0, in_b = (b.parted >> p & 1) != 0;
    parts[p] = in_a || in_b ? part[p][0] : (c.parted >> p & 1) != 0 ? c.part[p][0] : nullptr;
    if (in_a || in_b)
      shadow_kit_.combine_tile_part({rows, k, in_a, in_b, a.exact[0], a.part[p][0], b.exact[0], b.part[p][0],
                                     c.part[p][0], part[p][0]});
  }
  for (size_t run = 0; run < runs; ++run) {
    const Fragments::LanePlaces& at = places[run];
    Result result;
    std::memcpy(result.value, values[run], sizeof result.value);
    for (size_t lane = 0; lane < 32; ++lane) {
      result.local[lane] = local[0][at[lane]], result.error[lane] = error[0][at[lane]];
      const double known = bound[0][at[lane]];
      result.bound[lane] = known > 0 ? known : 0;
    }
    // What is not lost has a bound, however far sizes grow.
    for (size_t lane = 0; lane < 32 && unbounded; ++lane)
      if (!(bound[0][at[lane]] < *kLost))
        result.bound[lane] =
            Fragments::is_lost(a, b, c, k, at[lane] / 8, at[lane] % 8) ? *kLost : kLargestBound;
    for (size_t lane = 0; lane < 32 && plan_.probes; ++lane) result.terms[lane] = terms[0][at[lane]];
    keep(warp, op, slot_of(run), half_of(run), kind, result, {}, ~0u);
    if (plan_.parts > 0)
      keep_sum_parts(warp, op, cell(slot_of(run), half_of(run), 0), at.data(), parts, result);
  }
}

/// The parts of sums in a row of registers, from those of their tile: lane i has element at[i].
void ErrorTrace::keep_sum_parts(const Warp& warp, const Op& op, size_t first, const uint16_t* at,
                                const double* const* parts, const Result& result) {
  const int own = plan_.part_of_op.empty() ? -1 : plan_.part_of_op[op_index(op)];
  const Probes probes(*this, warp, op, result);
  for (int p = 0; p < plan_.parts; ++p) {
    if (!parts[p] && p != own && !probes.reach(p)) {
      keep_part(warp, first, p, nullptr, ~0u);
      continue;
    }
    alignas(64) double sum[32] = {};
    for (size_t lane = 0; lane < 32 && parts[p]; ++lane) sum[lane] = parts[p][at[lane]];
    for (int lane = 0; lane < 32 && p == own; ++lane) sum[lane] += result.local[lane];
    if (probes.reach(p)) shadow_kit_.add_probe(sum, probes.sizes, probes.place, p);
    keep_part(warp, first, p, sum, ~0u);
  }
}

/// Integer sums, which are exact, and those that no shadow follows.
void ErrorTrace::unfollowed_matrix(Warp& warp, const Op& op) {
  const bool lost = plan_.strict && not_plain(warp, op, ~0u);
  mark(warp, op, lost ? ErrorKind::lost : ErrorKind::none, ~0u);
}

}  // namespace assay::vm
