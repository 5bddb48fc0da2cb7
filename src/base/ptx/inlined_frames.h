// The calls that an instruction's source line was inlined at.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay::ptx {

/// A header of the CUDA toolkit or of a code generator's library: nobody looks for a fault there.
bool is_of_toolkit(const std::string& file);

/// "kernels/gla/chunk.cu:40" of the line at that index of Module::lines and of the calls around it, innermost
/// first; lines of toolkit headers are left out. Empty where nothing was inlined.
std::vector<std::string> inlined_frames(const Module&, int32_t line);

}  // namespace assay::ptx
