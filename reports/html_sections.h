// The parts of a report page. Each function reads one part of a result and returns markup; `pointer` is the
// JSON pointer of that part inside the data that the page carries for its charts.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay::html {

/// Verdict as a coloured label, with a sign so that colour is not needed.
std::string verdict_badge(const std::string& verdict);
/// The command that repeats a run, with a copy button.
std::string replay_line(const std::string& command);

/// Everything about one run. Headings are of `level` and `level + 1`.
std::string verification_sections(const nlohmann::json& verification, const std::string& pointer, int level);
/// Tables, heat maps and findings of a fuzz run.
std::string fuzz_sections(const nlohmann::json& run);

/// Answers, charts and cells of a sweep.
std::string sweep_sections(const nlohmann::json& sweep);
/// What its charts draw: one entry per cell, besides the data of its worst runs.
nlohmann::json sweep_chart_data(const nlohmann::json& sweep);

/// Charts, findings and runs of a trend.
std::string trend_sections(const nlohmann::json& trend);

/// Findings shown in full on one page; the table above them lists all.
inline constexpr int kFindingsInFull = 40;
/// The numbers that the charts draw. Fields longer than kPointsPerField are folded: each point is the largest
/// of `elements_per_point` neighbours.
nlohmann::json chart_data(const nlohmann::json& result);
inline constexpr int kPointsPerField = 2048;

}  // namespace assay::html
