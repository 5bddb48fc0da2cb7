// A report page: one self-contained HTML file that opens without a network (its content policy forbids any
// load).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay {

/// Page of a verification, of a fuzz run or of a sweep, as written by to_json (reports/schema.json). Throws
/// BadInput where the document is neither.
std::string render_html(const nlohmann::json& result);

}  // namespace assay
