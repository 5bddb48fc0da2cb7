// A trend of four runs, for tests of its forms.
#pragma once
#include <nlohmann/json.hpp>

namespace assay::test {

/// A finding that comes with the second run and goes with the fourth, another in the third alone.
nlohmann::json sample_trend();

}  // namespace assay::test
