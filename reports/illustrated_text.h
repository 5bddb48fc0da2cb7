// Markdown with pictures in files beside it.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

struct IllustratedText {
  std::string markdown;
  std::vector<std::pair<std::string, std::string>> pictures;  ///< (file name, SVG), named in the text

  /// Adds the picture and its link; `name` becomes a file name of its own, whatever it holds.
  void add_picture(std::string name, const std::string& caption, std::string svg);
};

}  // namespace assay
