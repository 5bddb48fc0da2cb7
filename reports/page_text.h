// The fixed parts of a report page, carried whole inside the program (cmake/embed_text.cmake).
#pragma once
#include <cstddef>
#include <string_view>

namespace assay::text {

std::string_view style();   ///< reports/page/style.css
std::string_view charts();  ///< reports/page/charts.js
std::string_view vega();    ///< Vega, from the package libjs-vega (cmake/bundle_vega.cmake)

}  // namespace assay::text
