// Findings as workflow commands, which a code host's runner turns into annotations of source lines.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay {

/// GitHub's form: one line per finding, "::error file=..,line=..,title=..::text"; a known one is a notice, an
/// undecided one a warning. Throws BadInput where the document is no result.
std::string render_github_annotations(const nlohmann::json& result);

}  // namespace assay
