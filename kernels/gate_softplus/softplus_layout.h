// How the rows of H K columns of gate_softplus lie over blocks and threads. Host and device compile this file
// (C++17).
#pragma once

namespace assay::gate_softplus {

inline constexpr int threads = 256;
inline constexpr int tokens_per_block = 128;
inline constexpr int partial_bytes = 16;  ///< what a block leaves of each column (SoftplusSums)

}  // namespace assay::gate_softplus
