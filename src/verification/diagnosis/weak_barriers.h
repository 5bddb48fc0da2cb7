// Barriers of a warp with whose place taken by one of the block the threads no longer race.
#pragma once
#include <vector>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/machine.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

/// One link per source line; those of one line change together. Begun within so many seconds.
std::vector<ChainLink> barriers_too_weak(const Program&, const TensorMap& inputs, const vm::MachineOptions&,
                                         const SourceText&, double seconds);

}  // namespace assay
