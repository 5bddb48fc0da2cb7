// Some blocks of a grid: "0,5,last", "0..3", "last-7..last". The same text serves launches of any size.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace assay {

struct Program;

/// Linear block numbers, ascending, each once, of a grid of `blocks` blocks. Numbers beyond the grid are left
/// out. Throws BadInput for a text that is none, for a range that runs backwards, and where more than 2^20
/// blocks are named.
std::vector<uint64_t> chosen_blocks(const std::string& text, uint64_t blocks);

/// Of launches of `blocks` blocks each. Throws BadInput where none has one of those that the text names, and
/// naming a block or a range that is counted from the first and that none has.
void require_blocks(const std::string& text, const std::vector<uint64_t>& blocks);
/// Of a program whose `blocks` say that some run: those of its launches.
void require_blocks(const Program&);

}  // namespace assay
