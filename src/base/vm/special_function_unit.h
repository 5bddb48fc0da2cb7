// The special-function unit of sm_90 (MUFU in its machine code): fp32 bit patterns to fp32 bit patterns, as
// an H200 returns them. Subnormal arguments count as zero except in tanh, subnormal results are zero, NaN is
// 0x7fffffff. PTX forms are made of these operations in approximate.h.
#pragma once
#include <cstdint>

namespace assay::vm::sfu {

uint32_t rcp(uint32_t x);
uint32_t rsq(uint32_t x);
uint32_t sqrt(uint32_t x);
uint32_t lg2(uint32_t x);
uint32_t ex2(uint32_t x);
uint32_t sin(uint32_t turns);  ///< sin(2 pi turns); turns are cut to 2^-25
uint32_t cos(uint32_t turns);
uint32_t tanh(uint32_t x);  ///< a subnormal is its own tanh
/// 1/x and 1/sqrt(x) of a double, of which they read and give the high word only.
uint32_t rcp64h(uint32_t high);
uint32_t rsq64h(uint32_t high);

}  // namespace assay::vm::sfu
