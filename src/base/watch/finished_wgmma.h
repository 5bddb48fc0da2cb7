// Which wgmma a wait that leaves later groups in flight surely ends, so that their sums can be read there.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay::watch {

/// wgmma.wait_group N with N > 0 -> the wgmma.mma_async that stand before it in the text, are done behind it
/// on every way there, and share no sums with one that may still be in flight. Indices into the function's
/// body. PTX ISA, "wgmma.wait_group": all but the latest N groups are complete.
std::map<int32_t, std::vector<int32_t>> finished_wgmma(const ptx::Function&);

}  // namespace assay::watch
