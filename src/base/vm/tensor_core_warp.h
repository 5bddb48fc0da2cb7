// Tensor-core products of one warp, a tile of 16 rows and 8 columns at a time, many elements at once where
// the operands are finite. The same bits as dot() (tensor_core.h) gives element by element.
#pragma once
#include <cstdint>

#include "src/base/vm/tensor_core.h"

namespace assay::vm {

/// Operands as words, row-major: patterns of floats (low bits), values of integers. A is [16][k], B [k][8],
/// C and D [16][8].
struct MatrixTile {
  static constexpr int most_k = 64;
  alignas(32) int32_t a[16 * most_k], b[most_k * 8], c[16 * 8], d[16 * 8];
  bool a_is_new = true;  ///< set where `a` changes: its decoded form is kept from tile to tile
  // Decoded: value = significand * 2^(exponent - fraction bits), sign inside the significand.
  alignas(32) int32_t a_significand[16 * 32], a_exponent[16 * 32];
  alignas(32) int32_t b_significand[32 * 8], b_exponent[32 * 8];
  bool a_special = false;  ///< an Inf or a NaN among A
};

/// From registers by fragment (matrix_form.h); a[r] are the 32 lanes of register r. A of rows [16 block,
/// 16 block + 16) where the form has more; an 8-row form leaves rows 8 to 15 zero.
void load_a(const MatrixForm&, const uint32_t* const* a, MatrixTile&);
void load_b(const MatrixForm&, const uint32_t* const* b, MatrixTile&);
void load_sum(const MatrixForm&, const uint32_t* const* c, MatrixTile&);
void store_sum(const MatrixForm&, const MatrixTile&, uint32_t* const* d);

/// d = a b + c. Every form but f64.
void multiply(const TensorCoreModel&, const MatrixForm&, MatrixTile&);

}  // namespace assay::vm
