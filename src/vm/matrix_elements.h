// Where the elements of a tensor-core instruction lie as one warp executes it: in a register or in shared
// memory.
#pragma once
#include <cstdint>

#include "src/vm/code.h"
#include "src/vm/matrix_descriptor.h"
#include "src/vm/matrix_form.h"

namespace assay::vm {

struct Warp;

struct ElementPlace {
  int slot = -1;  ///< index into Op::slots; -1: shared memory
  int lane = 0, bit = 0;
  uint64_t shared = 0;  ///< byte
};

/// What a wgmma reads from registers beside fragments.
struct MatrixSources {
  uint64_t a_descriptor = 0, b_descriptor = 0;
  bool adds = true;  ///< D = A B + C
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
  ElementPlace a(int row, int k) const;
  ElementPlace b(int k, int column) const;
  ElementPlace c(int row, int column) const { return sum(row, column, first_c_); }
  ElementPlace d(int row, int column) const { return sum(row, column, 0); }

 private:
  ElementPlace sum(int row, int column, int first) const;
  MatrixForm form_;
  bool adds_ = true;
  int first_a_, first_b_, first_c_;
  uint32_t first_row_ = 0;  ///< of the warp in its warpgroup
  MatrixDescriptor a_matrix_{}, b_matrix_{};
};

}  // namespace assay::vm
