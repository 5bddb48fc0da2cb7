// Which statements decide whether an instruction runs.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/ptx/program.h"
#include "src/result/origin.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

/// Of the instruction's guard, of branches around it and of loops that it stands in, the nearest first: the
/// comparison, then what made the numbers that it compares, the statement nearest to it first. A statement
/// once; the instruction's own, arguments and constants are left out. From the text alone: a register with
/// several definitions gives the last before it.
std::vector<ChainLink> deciding_statements(const ptx::Module&, int32_t function, int32_t instruction,
                                           const SourceText&);

/// Of loops that it stands in alone: where they end, and what made the numbers that say so.
std::vector<ChainLink> loop_statements(const ptx::Module&, int32_t function, int32_t instruction,
                                       const SourceText&);

/// Of what decides about a place in the program's modules, by its function and its line of PTX; none where
/// that is in none.
std::vector<ChainLink> deciding_statements(const Program&, const SourceLocation&, const SourceText&);

}  // namespace assay
