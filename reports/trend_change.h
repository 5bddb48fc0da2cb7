// What the last run of a trend has changed against the one before it, in one sentence.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay {

/// "run 3, 1a2b3c4, against run 2, 0f9e8d7 of 2026-11-17: 1 new finding (gla/violation/o), 0 gone; gla bf16
/// 0.75 to 4 of its bound": findings and the ratios that moved by more than a tenth. "": fewer than two runs.
std::string trend_change(const nlohmann::json& trend);

/// "run 3, 1a2b3c4"
std::string trend_run_text(const nlohmann::json& runs, size_t run);

}  // namespace assay
