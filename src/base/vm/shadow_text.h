// What exact shadows know of a program's text beside its literals (literals.h): found once for all runs of an
// entry.
#pragma once
#include <set>

#include "src/base/vm/code.h"

namespace assay::vm {

struct ShadowText {
  std::set<Slot> float_slots;  ///< of immediates that an operation on f32, or a move of 32 bits, reads
  bool makes_wide = false;     ///< some result is an f64
};
const ShadowText& shadow_text(const Code&);

}  // namespace assay::vm
