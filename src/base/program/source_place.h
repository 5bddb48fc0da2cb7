// What is said of a place in a kernel's sources.
#pragma once
#include <string>

#include "src/base/program/outcome.h"

namespace assay {

/// "kernels/gla/chunk.cu:106, in kernels/device/format.cuh:94": before the line itself the innermost call of
/// the kernel's own, in the folder of the file that its entry belongs to; the line alone where it is one of
/// those. Before a line of the CUDA toolkit always. Without a source line "a.ptx, PTX line 12", without a
/// file "FUNCTION, PTX line 12".
std::string source_place(const SourceLocation&);
/// The same with the line of the PTX: "kernels/gla/chunk.cu:106 (PTX line 903)"; "FUNCTION (PTX line 12)".
std::string place_with_ptx_line(const SourceLocation&);
/// Where a person would look: of a line of the CUDA toolkit the innermost call of the kernel's own around it.
SourceLocation own_place(const SourceLocation&);
/// Of the line alone, or of the call that holds a toolkit's, the same from run to run:
/// "kernels/gla/chunk.cu:106", "a.ptx:ptx:12",
/// "FUNCTION:ptx:12".
std::string place_key(const SourceLocation&);
/// Neither a line nor an instruction: of what is found about memory after a run.
bool is_nowhere(const SourceLocation&);

}  // namespace assay
