// Approximate instructions, with the bits the hardware returns. Tables stand in src/vm/tables/.
#pragma once
#include <cstdint>

namespace assay::vm {

uint32_t ex2_approx_ftz_f32(uint32_t x);
uint32_t ex2_approx_f32(uint32_t x);
uint32_t rcp_approx_ftz_f32(uint32_t x);
uint32_t rsqrt_approx_ftz_f32(uint32_t x);
uint32_t lg2_approx_ftz_f32(uint32_t x);

}  // namespace assay::vm
