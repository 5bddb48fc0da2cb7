// Makes nvcc's PTX portable: the lowest .version that assembles, and no path of the machine that built it.
#pragma once
#include <string>
#include <string_view>

namespace assay {

/// `.version` becomes 7.0 (CUDA 11.0: the first with bf16, cp.async, mma.sync of sm_80 and inlined line
/// information);
/// `.file` paths become relative to `source_root`, those of toolkit headers to their include folder; comments
/// go; a `.loc` inside a toolkit header goes too, so that an instruction keeps the line of ours that it came
/// from. Throws BadInput where the text is not nvcc's.
std::string prepare_ptx(std::string_view text, std::string_view source_root);

}  // namespace assay
