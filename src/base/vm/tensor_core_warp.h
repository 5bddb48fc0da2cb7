// Tensor-core products of one warp, a tile of 16 rows and 8 columns at a time, many elements at once where
// the operands are finite. The same bits as dot() (tensor_core.h) gives element by element.
#pragma once
#include <cstdint>

#include "src/base/vm/tensor_core.h"

namespace assay::vm {

/// Operands as words: patterns of floats (low bits), values of integers. A is [k][16], B [k][8] (of a sparse
/// form twice as many k), C and D [8][16]: the rows of a column side by side.
struct MatrixTile {
  static constexpr int most_k = 64;
  alignas(64) int32_t a[most_k * 16];
  alignas(64) int32_t b[2 * most_k * 8], c[8 * 16], d[8 * 16];
  // The decoded forms of A are kept from tile to tile: values, where floats are exact (LaneKit::sum_tile),
  // or significands with their signs, value = significand * 2^(exponent - fraction bits). The exponent of a
  // zero is -4096; beside values those of two elements are the halves of a word.
  bool a_is_new = true;  ///< not decoded to significands
  enum class Wide : uint8_t {
    no,
    yes,
    special
  } a_is_wide = Wide::no;  ///< decoded to values; special: an Inf, a NaN, or sums out of range before
  alignas(64) float a_value[32 * 16];
  alignas(64) float b_value[32 * 8];
  alignas(64) int32_t a_exponents[16 * 16];
  alignas(64) int32_t b_exponents[16 * 8];
  alignas(64) float a_significand[32 * 16];
  alignas(64) int32_t a_exponent[32 * 16];
  alignas(64) float a_class[32 * 16];  ///< beside its significands: which are no finite numbers
  alignas(64) float b_significand[32 * 8];
  alignas(64) int32_t b_exponent[32 * 8];
  bool a_special = false;  ///< an Inf or a NaN among A
  bool kept_is_new = true;
  uint8_t kept[most_k][16];  ///< where in B the elements of a sparse A belong, [k][row]

  /// To be called where `a`, or the metadata of a sparse one, has been written.
  void a_changed() { a_is_new = kept_is_new = true, a_is_wide = Wide::no; }
};

/// From registers by fragment (matrix_form.h); a[r] are the 32 lanes of register r. A of rows [16 block,
/// 16 block + 16) where the form has more; an 8-row form leaves rows 8 to 15 zero.
void load_a(const MatrixForm&, const uint32_t* const* a, MatrixTile&);
void load_b(const MatrixForm&, const uint32_t* const* b, MatrixTile&);
void load_sum(const MatrixForm&, const uint32_t* const* c, MatrixTile&);
void store_sum(const MatrixForm&, const MatrixTile&, uint32_t* const* d);

/// d = a b + c. Every form but f64.
void multiply(const TensorCoreModel&, const MatrixForm&, MatrixTile&);
/// The same of a sparse form, whose A has half of k: in each row the products that it has, in the steps of
/// the dense form with as many.
void multiply_kept(const TensorCoreModel&, const MatrixForm&, const uint32_t* metadata, MatrixTile&);

}  // namespace assay::vm
