// Where the elements of a tensor-core instruction lie as one warp executes it: in a register or in shared
// memory.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "src/base/vm/code.h"
#include "src/base/vm/matrix_descriptor.h"
#include "src/base/vm/matrix_form.h"

namespace assay::vm {

struct Warp;

struct ElementPlace {
  int slot = -1;  ///< index into Op::slots; -1: shared memory
  int lane = 0, bit = 0;
  uint64_t shared = 0;  ///< byte
};

/// What a wgmma or a sparse product reads from registers beside fragments.
struct MatrixSources {
  uint64_t a_descriptor = 0, b_descriptor = 0;
  bool adds = true;          ///< D = A B + C
  uint64_t shared_base = 0;  ///< of the warp's block in Block::shared
  std::array<uint32_t, 32> metadata{};
};
MatrixSources matrix_sources(const Warp&, const Op&);

class MatrixElements {
 public:
  /// Reads the descriptors of a wgmma from the warp's registers.
  MatrixElements(const Warp&, const Op&);
  /// The same from what the registers of warp `warp` of the block held.
  MatrixElements(const Op&, uint32_t warp, const MatrixSources&);

  const MatrixForm& form() const { return form_; }
  /// False: D = A B, C takes no part.
  bool adds() const { return adds_; }
  /// Element `at` of those that the row has: all k, of a sparse A a_depth() of them.
  ElementPlace a(int row, int at) const;
  /// Its k.
  int column_of_a(int row, int at) const {
    return form_.sparse ? sparse_column(form_, metadata_.data(), row, at) : at;
  }
  ElementPlace b(int k, int column) const;
  ElementPlace c(int row, int column) const { return sum(row, column, first_c_); }
  ElementPlace d(int row, int column) const { return sum(row, column, 0); }
  struct Asked {
    bool a = true, b = true, c = true;
  };
  /// visit('A', row, k, format, place), visit('B', k, column, ...), visit('C', row, column, ...) for all that
  /// the instruction takes, of the operands that are asked; C last.
  template <class Visit>
  void each_operand(Visit visit, Asked asked = {true, true, true}) const {
    for (int k = 0; k < form_.k && (asked.a || asked.b); ++k) {
      for (int row = 0; asked.a && row < form_.rows && k < form_.a_depth(); ++row)
        visit('A', row, column_of_a(row, k), form_.a, a(row, k));
      for (int n = 0; asked.b && n < form_.columns(); ++n) visit('B', k, n, form_.b, b(k, n));
    }
    for (int row = 0; asked.c && adds_ && row < form_.rows; ++row)
      for (int n = 0; n < form_.columns(); ++n) visit('C', row, n, form_.sum, c(row, n));
  }
  /// visit(row, column, place) for the elements of D.
  template <class Visit>
  void each_sum(Visit visit) const {
    for (int row = 0; row < form_.rows; ++row)
      for (int n = 0; n < form_.columns(); ++n) visit(row, n, d(row, n));
  }

 private:
  /// Of elements of D and C, row by row, with the first register of either as 0; kept by form.
  static const std::vector<ElementPlace>& sums_of(const MatrixForm&);
  ElementPlace sum(int row, int column, int first) const {
    ElementPlace at = (*sums_)[static_cast<size_t>(row * form_.columns() + column)];
    at.slot += first;
    return at;
  }
  MatrixForm form_;
  const std::vector<ElementPlace>* sums_;
  bool adds_ = true;
  int first_a_, first_b_, first_c_;
  uint32_t first_row_ = 0;  ///< of the warp in its warpgroup
  MatrixDescriptor a_matrix_{}, b_matrix_{};
  uint64_t shared_base_ = 0;
  std::array<uint32_t, 32> metadata_{};
};

/// Row of A, counted in its warpgroup, where the warp's rows begin.
int first_row_of(const Warp&);

/// visit(operand, byte of shared memory) for each 16 bytes that a wgmma reads there: 'A' the warp's rows, 'B'
/// all.
template <class Visit>
void each_shared_piece(const Warp& warp, const Op& op, Visit visit) {
  const MatrixForm form = MatrixForm::of(op.immediate);
  const MatrixSources sources = matrix_sources(warp, op);
  const auto pieces = [&](char operand, uint64_t descriptor, bool mn_major, int first, int count, int depth) {
    const MatrixDescriptor matrix = decode_descriptor(descriptor);
    // K-major: a line to a row (column); MN-major: a line to a k, eight rows (columns) to a piece.
    const int lines = mn_major ? depth : count,
              per_line = mn_major ? count / 8 : depth * format_of(form.a).bits / 128;
    for (int line = 0; line < lines; ++line)
      for (int piece = 0; piece < per_line; ++piece)
        visit(operand, sources.shared_base +
                           uint64_t{piece_address(
                               matrix, mn_major, static_cast<uint32_t>(mn_major ? line : first + line),
                               static_cast<uint32_t>(mn_major ? first / 8 + piece : piece))});
  };
  if (form.a_in_shared)
    pieces('A', sources.a_descriptor, form.a_by_column, first_row_of(warp), 16, form.a_depth());
  pieces('B', sources.b_descriptor, form.b_by_row, 0, form.columns(), form.k);
}

}  // namespace assay::vm
