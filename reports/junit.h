// A result as JUnit XML, the form that CI systems read.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay {

/// Fuzz run: one testsuite per kernel; in it one testcase per property that the run checked, one per finding
/// (it fails, with its replay line). Undecided cases are a failing testcase of their own. Verification: one
/// testcase per output. Throws BadInput where the document is neither.
std::string render_junit(const nlohmann::json& result);

}  // namespace assay
