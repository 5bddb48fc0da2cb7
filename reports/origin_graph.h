// The way of a bad value as a picture: input elements, where it was born, the lines it went through, the
// output.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay::html {

/// An inline SVG in the page's colours; every box carries its whole text as a title. `origin` as in a result.
std::string origin_graph(const nlohmann::json& origin);

}  // namespace assay::html
