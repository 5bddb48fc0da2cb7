// Names that a PTX file brings along (source files, inlined functions) stand in messages and reports.
#pragma once
#include <string>
#include <string_view>

namespace assay::ptx {

/// Control characters, and bytes that are no UTF-8, as \xNN.
std::string printable(std::string_view name);

}  // namespace assay::ptx
