// A module of which one entry is wanted.
#pragma once
#include <string>
#include <string_view>

#include "src/base/ptx/program.h"

namespace assay::ptx {

/// As parse_functions, but the bodies of other entries are not read where no function but entries stands in
/// the text: they are declared, and have no instructions. Variables and functions have the same numbers;
/// Module::lines has those of the entry alone.
Module parse_entry(std::string_view text, std::string path, std::string_view entry);

}  // namespace assay::ptx
