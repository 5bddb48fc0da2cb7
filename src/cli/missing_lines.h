// A hint that saves a run.
#pragma once
#include <string>

namespace assay::cli {

/// Where a PTX file has no source lines, one line on standard error says how it gets them. Of a folder
/// nothing.
void note_missing_lines(const std::string& ptx);

}  // namespace assay::cli
