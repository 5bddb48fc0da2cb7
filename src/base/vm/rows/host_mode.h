// The host's own rounding modes and flushing, for the lane sets of processors that have fused multiply-add.
#pragma once
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {

#ifdef __AVX2__
/// MXCSR while it lives. Operands that are subnormal count as zeros of their sign, and results that are tiny
/// after rounding, as if the exponent had no bound, become such (Intel SDM 10.2.3.3, 10.2.3.4, 4.9.1.5): what
/// PTX's .ftz does on an H200. The memory clobbers keep the arithmetic of a loop over cells between the two.
class HostMode {
 public:
  HostMode(Round round, bool flush) {
    asm volatile("stmxcsr %0" : "=m"(before_)::"memory");
    constexpr uint32_t masked = 0x1f80, flushing = 0x8040;
    const uint32_t direction = round == Round::zero   ? 3
                               : round == Round::up   ? 2
                               : round == Round::down ? 1
                                                      : 0;
    const uint32_t during = masked | direction << 13 | (flush ? flushing : 0);
    asm volatile("ldmxcsr %0" ::"m"(during) : "memory");
  }
  ~HostMode() { asm volatile("ldmxcsr %0" ::"m"(before_) : "memory"); }
  HostMode(const HostMode&) = delete;
  HostMode& operator=(const HostMode&) = delete;

 private:
  uint32_t before_;
};
#endif

}  // namespace assay::vm::ASSAY_LANES
