// Checks a document against the parts of SARIF 2.1.0 (OASIS Standard, errata 01) that a log of findings uses.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace assay::test {

/// What does not hold, one line each with its path. Objects may have only the properties of the standard that
/// are listed; the rules between objects (rule indices, base ids) are checked too. Empty: valid.
std::vector<std::string> sarif_errors(const nlohmann::json& log);

}  // namespace assay::test
