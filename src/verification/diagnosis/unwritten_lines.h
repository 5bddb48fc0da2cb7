// Which lines may be why nothing wrote memory of a buffer: of the store that should have, not of the read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/machine.h"
#include "src/result/suspect_line.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

/// Bytes of an output or a workspace.
struct UnwrittenMemory {
  std::string buffer;
  uint64_t offset = 0;
  uint32_t bytes = 0;
};

/// The likeliest first. Where places of the buffer are written more than once: the store nearest to the
/// bytes, and what makes its address. Else the guards that kept a store away, what deals out the blocks where
/// some write nothing, and the loops and the address of the nearest store; of a buffer into which nothing
/// stored, what keeps threads from the stores that there are. `seconds`: counted ones, at most, of replays
/// with guards turned around.
std::vector<SuspectLine> lines_behind_unwritten(const Program&, const TensorMap& inputs,
                                                const vm::MachineOptions&, const UnwrittenMemory&,
                                                const SourceText&, double seconds);

}  // namespace assay
