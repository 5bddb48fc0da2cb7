// What exact shadows know of a program's text beside its literals (literals.h): found once for all runs of an
// entry.
#pragma once
#include "src/base/vm/by_slot.h"

namespace assay::vm {

struct ShadowText {
  BySlot<char> is_float;    ///< of immediates: an operation on f32, or a move of 32 bits, reads it
  bool makes_wide = false;  ///< some result is an f64
};
const ShadowText& shadow_text(const Code&);

}  // namespace assay::vm
