// Which memory of a buffer a thread read before anything had written it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/vm/store_search.h"

namespace assay::vm {

struct UnwrittenRead {
  PlacedInstruction load;
  std::string buffer;
  uint64_t offset = 0;  ///< bytes
};

/// Of a launch the first such read of a thread, or where it made none, of its block; of outputs that are no
/// inputs and of workspaces. None where the run traps before, or copies in bulk: who writes what is not
/// followed there.
std::optional<UnwrittenRead> find_unwritten_read(const Program&, const TensorMap& inputs,
                                                 const MachineOptions&, int32_t launch,
                                                 const std::array<uint32_t, 3>& block,
                                                 const std::array<uint32_t, 3>& thread);

}  // namespace assay::vm
