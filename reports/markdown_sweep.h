// A sweep as Markdown with pictures beside it.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "reports/illustrated_text.h"

namespace assay {

/// Answers, pictures, a table of all cells.
IllustratedText sweep_markdown(const nlohmann::json& sweep);

}  // namespace assay
