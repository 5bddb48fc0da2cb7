// Tensor-core arithmetic: the aligned truncated sum, per architecture. Pure functions on bit patterns.
#pragma once
#include <cstdint>
#include <string_view>

#include "src/numerics/format.h"

namespace assay::vm {

/// How one architecture sums products. Each wrong variant the tests try is one changed field.
struct TensorCoreModel {
  std::string_view arch;
  int fraction_bits;        ///< F
  int products_per_step_16; ///< f16/bf16
  int products_per_step_tf32;
  int floor_f32, floor_f16; ///< smallest alignment exponent
  bool zero_products_in_maximum = false;
  bool flush_inputs = false, flush_results = false;
  bool negative_zero = false;
  bool clamp_overflow = false;
};

/// "sm_80", "sm_89", "sm_90"; throws BadInput naming the known ones.
const TensorCoreModel& tensor_core_model(std::string_view arch);

/// One output element: c + sum a[i] b[i], k products in ascending k, operands as bit patterns of `format`
/// (bf16, fp16: 16 bits; tf32: the fp32 word, low 13 bits dropped); c and the result are fp32 bits.
uint32_t dot_f32(const TensorCoreModel&, Dtype format, int k, const uint32_t* a, const uint32_t* b, uint32_t c);

/// A whole warp-wide mma in register fragments: a[register][lane] and so on; `d` may alias `c`.
/// m16n8k16 bf16/fp16: A 4, B 2 registers; m16n8k8 bf16/fp16: A 2, B 1; m16n8k8 tf32: A 4, B 2; m16n8k4 tf32: A 2, B 1. C, D 4.
void mma_m16n8_f32(const TensorCoreModel&, Dtype format, int k, const uint32_t (*a)[32], const uint32_t (*b)[32],
                   const uint32_t (*c)[32], uint32_t (*d)[32]);

}  // namespace assay::vm
