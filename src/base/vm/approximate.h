// Approximate instructions of PTX (ISA 9.7.3 and 9.7.4) with the bits that an H200 returns. Arguments and
// results are bit patterns. Each is the sequence of machine instructions that ptxas 13.0 makes of the form
// for sm_90, around one operation of the special-function unit.
#pragma once
#include <cstdint>

namespace assay::vm {

uint32_t ex2_approx_ftz_f32(uint32_t x);
uint32_t ex2_approx_f32(uint32_t x);
uint32_t rcp_approx_ftz_f32(uint32_t x);
uint32_t rcp_approx_f32(uint32_t x);
uint32_t rsqrt_approx_ftz_f32(uint32_t x);
uint32_t rsqrt_approx_f32(uint32_t x);
uint32_t sqrt_approx_ftz_f32(uint32_t x);
uint32_t sqrt_approx_f32(uint32_t x);
uint32_t lg2_approx_ftz_f32(uint32_t x);
uint32_t lg2_approx_f32(uint32_t x);
uint32_t sin_approx_f32(uint32_t x);  ///< .ftz gives the same
uint32_t cos_approx_f32(uint32_t x);  ///< .ftz gives the same
uint32_t tanh_approx_f32(uint32_t x);

uint32_t div_approx_ftz_f32(uint32_t a, uint32_t b);
uint32_t div_approx_f32(uint32_t a, uint32_t b);
uint32_t div_full_ftz_f32(uint32_t a, uint32_t b);
uint32_t div_full_f32(uint32_t a, uint32_t b);

uint16_t ex2_approx_f16(uint16_t x);
uint16_t ex2_approx_ftz_bf16(uint16_t x);
uint16_t tanh_approx_f16(uint16_t x);
uint16_t tanh_approx_bf16(uint16_t x);

/// The float that a 16-bit float is.
uint32_t widened_f16(uint16_t x);
static inline uint32_t widened_bf16(uint16_t x) {
  return static_cast<uint32_t>(x) << 16;
}

uint64_t rcp_approx_ftz_f64(uint64_t x);
uint64_t rsqrt_approx_ftz_f64(uint64_t x);
uint64_t rsqrt_approx_f64(uint64_t x);

}  // namespace assay::vm
