// Source lines of PTX instructions.
#pragma once
#include <string>

#include "reports/result.h"
#include "src/ptx/program.h"

namespace assay {

SourceLocation location_of(const ptx::Module&, int32_t function, int32_t instruction);
/// The line's text where the file can be read (as written in the PTX, or below the working directory),
/// trimmed; else "".
std::string source_text(const SourceLocation&);
/// The instruction as PTX spells it: "ex2.approx.f32 %f3, %f2".
std::string instruction_text(const ptx::Function&, const ptx::Instruction&);
ChainLink link_of(const ptx::Module&, int32_t function, int32_t instruction);

/// Where the sources of an instruction were computed: the definitions of its registers, `depth` steps back,
/// nearest first, one link per source line. From the text alone: a register with several definitions gives
/// the last before it.
std::vector<ChainLink> definitions_before(const ptx::Module&, int32_t function, int32_t instruction,
                                          int depth);

}  // namespace assay
