// Report pages as their tests read them.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/reports/well_formed.h"

namespace assay::test {

/// The page of a result without the charting library, which is not ours.
std::string own_text(const nlohmann::json& result);
/// The elements of a page, or of a part of one; the test fails where they are not well-formed.
std::vector<Element> elements(const std::string& markup);

}  // namespace assay::test
