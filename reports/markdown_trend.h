// A trend as Markdown with pictures beside it.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "reports/illustrated_text.h"

namespace assay {

/// A picture of each kernel's error over bound, the findings by the runs that had them, a table of all runs.
IllustratedText trend_markdown(const nlohmann::json& trend);

}  // namespace assay
