// Fills and copies between launches, as launches of code of our own: whatever follows a program's values,
// races and roundings follows them through these as through any kernel.
#pragma once
#include <cstdint>

#include "src/base/program/program.h"

namespace assay {

/// Appends a step that writes the lowest `width` (1, 2 or 4) bytes of `pattern` over and over; the driver's
/// cuMemsetD8, D16 and D32. `bytes` is a multiple of `width`, and so is the offset; 0: no step. Throws
/// BadInput where not.
void add_fill(Program&, const PointerArgument& to, int64_t bytes, uint32_t pattern, int width);

/// Appends a step that copies `bytes` bytes between buffers, or within one where they do not overlap. 0: no
/// step. Aliases and layouts of the buffers are in the program already.
void add_copy(Program&, const PointerArgument& from, const PointerArgument& to, int64_t bytes);

}  // namespace assay
