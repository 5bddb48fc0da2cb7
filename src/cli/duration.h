// Durations as people write them.
#pragma once
#include <string>

namespace assay::cli {

/// "60", "60s", "5m", "2h" as seconds. Throws BadInput naming --time.
double parse_duration(const std::string& text);

}  // namespace assay::cli
