// The program's own version, as written into results and printed by --version.
#pragma once
#include <string_view>

namespace assay {

/// "0.1.0"
std::string_view tool_version();
/// Short commit hash at build time with "+" where tracked files differ from it; empty outside a git checkout.
std::string_view tool_commit();

}  // namespace assay
