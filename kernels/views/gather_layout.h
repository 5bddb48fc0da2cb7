// Host and device compile this file (C++17).
#pragma once

namespace assay::views {

inline constexpr int gather_threads = 128;  ///< of a block, an element each

}  // namespace assay::views
