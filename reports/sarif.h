// Findings as SARIF 2.1.0, the form in which code hosts show them at their source lines.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay {

/// One result per finding (a verification that passed has none), at the origin's or the trap's source line
/// where one is known. Throws BadInput where the document is neither a verification nor a fuzz run.
std::string render_sarif(const nlohmann::json& result);

}  // namespace assay
