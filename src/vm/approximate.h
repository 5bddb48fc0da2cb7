// Approximate instructions, with the bits an NVIDIA H200 (sm_90) returns. Arguments and results are fp32 bit
// patterns. Recorded tables stand in src/vm/tables/. ex2, rcp and rsqrt were compared with the hardware on
// all 2^32 inputs of both forms, lg2 on all of [2, 4) (tools/fidelity).
#pragma once
#include <cstdint>

namespace assay::vm {

uint32_t ex2_approx_ftz_f32(uint32_t x);
uint32_t ex2_approx_f32(uint32_t x);
uint32_t rcp_approx_ftz_f32(uint32_t x);
uint32_t rcp_approx_f32(uint32_t x);
uint32_t rsqrt_approx_ftz_f32(uint32_t x);
uint32_t rsqrt_approx_f32(uint32_t x);
/// Recorded on [2, 4) only; throws BadInput for a finite positive argument outside.
uint32_t lg2_approx_ftz_f32(uint32_t x);

}  // namespace assay::vm
