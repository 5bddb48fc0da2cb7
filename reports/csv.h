// A result as comma-separated values (RFC 4180), one table per result: outputs of a verification, tightness
// rows of a fuzz run, cells of a sweep, runs of a trend. Numbers are the document's own: the shortest decimal
// that reads back exactly.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay {

/// Throws BadInput where the document is no result.
std::string render_csv(const nlohmann::json& result);

}  // namespace assay
