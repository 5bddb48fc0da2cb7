// How du is summed over chunks. Host and device compile this file (C++17).
#pragma once

namespace assay::rwkv6 {

inline constexpr int bonus_elements = 8;  ///< of a block
inline constexpr int bonus_parts = 16;    ///< threads of an element: each adds every 16th chunk
static_assert(bonus_elements * bonus_parts == 128);

}  // namespace assay::rwkv6
