// How elements lie over threads where each is a function of its own. Host and device compile this file
// (C++17).
#pragma once

namespace assay::elementwise {

inline constexpr int threads = 256;
inline constexpr int quads = 2;  ///< of a thread: so many times four neighbouring elements
inline constexpr int quad_stride = 4 * threads;
inline constexpr int per_block = quads * quad_stride;

}  // namespace assay::elementwise
