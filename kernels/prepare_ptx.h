// Makes nvcc's PTX portable: the lowest .version that assembles, and no path of the machine that built it.
#pragma once
#include <string>
#include <string_view>

namespace assay {

/// `.version` becomes 7.0 (CUDA 11.0: the first with bf16, cp.async, mma.sync of sm_80 and inlined line
/// information), or, for sm_90a, 8.0 (CUDA 12.0: the first with wgmma and tensor maps). `.file` paths become
/// relative to `source_root`, those of toolkit headers to their include folder. Comments go. A `.loc` in a
/// toolkit header or in a file *instruction.cuh, which only wrap single instructions, becomes that of the
/// line outside them that called; function names that no `.loc` needs any more go (they hold a hash of the
/// compiled path). Throws BadInput where the text is not nvcc's.
std::string prepare_ptx(std::string_view text, std::string_view source_root);

}  // namespace assay
