// The published schema of results (reports/schema.json), made from the lists of their fields.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace assay {

nlohmann::ordered_json result_schema();

}  // namespace assay
