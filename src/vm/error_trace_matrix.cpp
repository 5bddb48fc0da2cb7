// Tensor-core sums: the exact dot product of the operands' exact values. A tf32 operand means its whole fp32
// word: the bits that the tensor core drops are a rounding of the instruction.
#include <bit>
#include <cmath>

#include "src/vm/error_trace.h"

namespace assay::vm {

template <int parts_count>
struct ErrorTrace<parts_count>::Fragments {
  static constexpr int stored = parts_count ? parts_count : 1;
  /// Rows x columns with errors, bounds and parts.
  template <int rows, int columns>
  struct Matrix {
    alignas(64) double value[rows][columns], error[rows][columns], bound[rows][columns];
    float parts[rows][columns][stored];
  };
  Matrix<16, 16> a;
  Matrix<16, 8> b, c;

  template <class M>
  static void put(M& m, int row, int column, const Operand& from, int lane) {
    m.value[row][column] = from.value[lane];
    m.error[row][column] = from.error[lane];
    m.bound[row][column] = from.bound[lane];
    if constexpr (parts_count > 0)
      for (int p = 0; p < parts_count; ++p) m.parts[row][column][p] = from.exact ? 0.0f : from.parts[lane][p];
  }
};

template <int parts_count>
void ErrorTrace<parts_count>::prepare_matrix(Warp& warp, const Op& op) {
  if (!fragments_) fragments_ = std::make_shared<Fragments>();
  Fragments& m = *fragments_;
  const int k = static_cast<int>(op.immediate);
  const bool words = op.type == ptx::Type::tf32;
  const int span = words ? 4 : 8, na = 2 * k / span, nb = k / span, halves = words ? 1 : 2;
  const ErrorKind kind = error_kind_of(op.type);
  Operand& from = operands_[0];
  for (int r = 0; r < na + nb; ++r)
    for (int half = 0; half < halves; ++half) {
      gather(warp, op.slots[4 + r], half, kind, from);
      for (int lane = 0; lane < 32; ++lane) {
        const int along = words ? lane % 4 : 2 * (lane % 4) + half;
        if (r < na)
          Fragments::put(m.a, lane / 4 + 8 * (r & 1), span * (r >> 1) + along, from, lane);
        else
          Fragments::put(m.b, span * (r - na) + along, lane / 4, from, lane);
      }
    }
  for (int r = 0; r < 4; ++r) {
    gather(warp, op.slots[4 + na + nb + r], 0, ErrorKind::f32, from);
    for (int lane = 0; lane < 32; ++lane)
      Fragments::put(m.c, lane / 4 + 8 * (r >> 1), 2 * (lane % 4) + (r & 1), from, lane);
  }
}

template <int parts_count>
void ErrorTrace<parts_count>::matrix(Warp& warp, const Op& op) {
  Fragments& m = *fragments_;
  const int k = static_cast<int>(op.immediate);
  double values[4][32];
  for (int r = 0; r < 4; ++r) decode(warp, op.slots[r], 0, ErrorKind::f32, values[r]);
  alignas(64) double d[16][8], local[16][8], error[16][8], bound[16][8];
  for (int row = 0; row < 16; ++row) {
    for (int n = 0; n < 8; ++n) d[row][n] = values[2 * (row / 8) + (n & 1)][4 * (row % 8) + n / 2];
    lane_kit().combine_sums(
        k, {m.a.value[row], m.a.error[row], m.a.bound[row], m.b.value[0], m.b.error[0], m.b.bound[0],
            m.c.value[row], m.c.error[row], m.c.bound[row], d[row], local[row], error[row], bound[row]});
  }
  Cells& cells = registers(warp);
  const int own = parts_count > 0 ? plan_.part_of_op[op_index(op)] : -1;
  for (int r = 0; r < 4; ++r) {
    Result result;
    for (int lane = 0; lane < 32; ++lane) {
      const int row = lane / 4 + 8 * (r >> 1), n = 2 * (lane % 4) + (r & 1);
      const size_t at = cell(op.slots[r], 0, lane);
      const bool good = std::isfinite(error[row][n]);
      if (!good) local[row][n] = error[row][n] = 0, ++counts.ended;
      cells.kind[at] = good ? ErrorKind::f32 : ErrorKind::none;
      cells.kind[at + 32] = ErrorKind::none;
      cells.error[at] = error[row][n], cells.bound[at] = bound[row][n];
      result.value[lane] = values[r][lane], result.local[lane] = local[row][n];
      result.error[lane] = error[row][n];
      if constexpr (parts_count > 0) {
        float sum[parts_count];
        for (int p = 0; p < parts_count; ++p) sum[p] = m.c.parts[row][n][p];
        for (int i = 0; i < k; ++i) {
          const auto a = static_cast<float>(m.a.value[row][i]);
          const auto b = static_cast<float>(m.b.value[i][n] + m.b.error[i][n]);
          for (int p = 0; p < parts_count; ++p) sum[p] += b * m.a.parts[row][i][p] + a * m.b.parts[i][n][p];
        }
        if (own >= 0) sum[own] += static_cast<float>(local[row][n]);
        std::copy_n(sum, parts_count, &cells.parts[at * parts_count]);
      }
    }
    note(warp, op, result, ~0u);
  }
}

template class ErrorTrace<0>;
template class ErrorTrace<16>;

}  // namespace assay::vm
