// Tensor-core arithmetic: the aligned truncated sum, per architecture. Pure functions on bit patterns, which
// define the bits. Two faster forms of the same are held to them bit for bit: rows of eight in
// tensor_core_warp.cpp, whole tiles in rows/matrix_lanes.cpp. What bounds assume of it is derived in
// kernels/device/product_arithmetic.cpp.
#pragma once
#include <cstdint>
#include <string_view>

#include "src/base/vm/matrix_form.h"

namespace assay::vm {

/// How one architecture sums products. Each wrong variant the tests try is one changed field.
struct TensorCoreModel {
  std::string_view arch;
  int number;                ///< 80, 89, 90
  int fraction_bits;         ///< F
  int products_per_step_16;  ///< f16/bf16
  int products_per_step_tf32;
  int floor_f32, floor_f16;                      ///< smallest alignment exponent, by the format of the sum
  int fraction_bits_fp8, products_per_step_fp8;  ///< of tensor cores that multiply e4m3 and e5m2 themselves
  bool zero_products_in_maximum = false;
  bool flush_inputs = false, flush_results = false;
  bool negative_zero = false;
  bool clamp_overflow = false;
};

/// "sm_80", "sm_89", "sm_90"; throws BadInput naming the known ones.
const TensorCoreModel& tensor_core_model(std::string_view arch);

/// What one form does on one architecture.
struct SumRule {
  int fraction_bits, products_per_step, floor;
  bool short_sum = false;  ///< an f32 sum keeps 13 fraction bits (native fp8)
  /// fp8 by mma.sync on sm_90: operands become f16, pairs of k alternate between two sums, the second from
  /// the first, and C is added at the end, rounded to nearest.
  bool widened = false;
};
SumRule sum_rule(const TensorCoreModel&, const MatrixForm&);
/// The oldest architecture that has the form: 80, 89 or 90.
int first_architecture(const MatrixForm&);

/// One output element of a floating-point form but f64: c + sum a[i] b[i], form.k products in ascending k,
/// operands as bit patterns of form.a and form.b (tf32: the fp32 word, low 13 bits dropped); c and the result
/// are patterns of form.sum, f32 or f16.
uint32_t dot(const TensorCoreModel&, const MatrixForm&, const uint32_t* a, const uint32_t* b, uint32_t c);

/// Where k lies in the two sums of a widened rule.
int widened_place(int k_count, int k);
/// An e4m3 or e5m2 pattern as f16; exact.
uint32_t widen_to_f16(Element, uint32_t pattern);
/// The last addition of a widened rule.
uint32_t add_nearest(Element sum, uint32_t x, uint32_t y);
/// Bits of |value| < 2^128 rounded to f16, to nearest even; a zero result is +0, as tensor cores give it.
uint32_t round_to_f16(double value);

inline constexpr uint32_t kTensorCoreNan = 0x7fffffff, kTensorCoreNanF16 = 0x7fff;

}  // namespace assay::vm
