// Some blocks of a grid: "0,5,last", "0..3", "last-7..last". The same text serves launches of any size.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace assay {

/// Linear block numbers, ascending, each once, of a grid of `blocks` blocks. Numbers beyond the grid are left
/// out. Throws BadInput for a text that is none, for a range that runs backwards, and where more than 2^20
/// blocks are named.
std::vector<uint64_t> chosen_blocks(const std::string& text, uint64_t blocks);

}  // namespace assay
