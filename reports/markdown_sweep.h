// A sweep as Markdown with pictures beside it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace assay {

struct IllustratedText {
  std::string markdown;
  std::vector<std::pair<std::string, std::string>> pictures;  ///< (file name, SVG), named in the text
};

/// Answers, pictures, a table of all cells.
IllustratedText sweep_markdown(const nlohmann::json& sweep);

}  // namespace assay
