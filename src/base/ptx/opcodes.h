// The names of PTX instructions, whether or not the machine has them: to tell what is missing from what is
// misspelt.
#pragma once
#include <string_view>

namespace assay::ptx {

/// True for the first part of an opcode ("tcgen05" of "tcgen05.alloc...") that PTX ISA 9.0 lists.
bool is_instruction_name(std::string_view base);

}  // namespace assay::ptx
