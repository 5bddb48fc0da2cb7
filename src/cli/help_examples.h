// Two examples of every command, at the end of its --help.
#pragma once
#include <string>

namespace assay::cli {

std::string help_examples(const std::string& command);

}  // namespace assay::cli
