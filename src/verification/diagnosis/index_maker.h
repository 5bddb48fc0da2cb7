// Which statement declares or moves an index, by the text.
#pragma once
#include <optional>
#include <string>

#include "src/base/ptx/program.h"
#include "src/result/origin.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

/// May the character stand in an identifier?
bool is_word(char);

/// The nearest line above the instruction's statement, or above a call that it was inlined at, that declares
/// or moves an integer which the statement names. By the text: a compiler gives the instructions of such a
/// line to its neighbours. It has no instruction.
std::optional<ChainLink> index_maker(const ptx::Module&, int32_t function, int32_t instruction,
                                     const SourceText&);

}  // namespace assay
