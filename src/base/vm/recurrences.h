// Instructions whose results come back to them around a loop, through registers.
#pragma once
#include <cstdint>
#include <vector>

namespace assay::vm {

struct Code;

/// By the registers' names alone: one that is loaded anew each time and then changed in place seems to return
/// (compilers give each value a register of its own, and share one only around a loop); a value that goes
/// through memory does not.
struct Recurrence {
  uint8_t sources = 0;  ///< bit k: what Op::s[k] holds may be made of what Op::d held before
  uint32_t number = 0;  ///< among those that a trace follows
  bool returns() const { return sources != 0; }
};
/// By op.
std::vector<Recurrence> recurrences_of(const Code&);

}  // namespace assay::vm
