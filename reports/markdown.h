// A result as Markdown, for pull requests and terminals.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay {

/// GitHub-flavoured Markdown of a verification or a fuzz run. Throws BadInput where the document is neither.
std::string render_markdown(const nlohmann::json& result);

}  // namespace assay
