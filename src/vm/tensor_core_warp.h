// What the element-wise and the warp-wide tensor-core arithmetic share: operand layouts and fragment
// coordinates.
#pragma once
#include <cstdint>

#include "src/vm/tensor_core.h"

namespace assay::vm {

/// Bits of an operand word; tf32 drops the low 13 bits of the fp32 word (truncation, not rounding).
struct OperandLayout {
  int fraction_bits, exponent_bits, dropped_bits;
};
inline constexpr OperandLayout kF32Operand{23, 8, 0};
inline constexpr uint32_t kTensorCoreNan = 0x7fffffff;

/// bf16, fp16, tf32; throws BadInput for any other format.
const OperandLayout& operand_layout(Dtype format);
int products_per_step(const TensorCoreModel&, Dtype format);

}  // namespace assay::vm
