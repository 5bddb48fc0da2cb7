// What was noted, as JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "src/base/watch/watched_program.h"

namespace assay::watch {

nlohmann::json to_json(const WatchCounts&);
nlohmann::json to_json(const NotedBirth&);

}  // namespace assay::watch
