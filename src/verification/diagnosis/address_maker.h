// Which statement says where an instruction reads.
#pragma once
#include <optional>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/ptx/program.h"
#include "src/result/origin.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

/// Of the statements that the instruction's address is computed in, a few steps back, its own left out, the
/// one that stands nearest to it in the source. Arguments and constants are none. From the text alone: a
/// register with several definitions gives the last before it.
std::optional<ChainLink> address_maker(const ptx::Module&, int32_t function, int32_t instruction,
                                       const SourceText&);

/// Of the same statements, and of all that stand behind them, the nearest that knows the block and not the
/// thread and does more than add: it says which sequence or head is read.
std::optional<ChainLink> block_address_maker(const ptx::Module&, int32_t function, int32_t instruction,
                                             const SourceText&);

/// Both, as far as they are there, of an instruction of the program's modules, found by its function and its
/// line of PTX.
std::vector<ChainLink> address_makers(const Program&, const SourceLocation&, const SourceText&);

}  // namespace assay
