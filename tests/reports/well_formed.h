// A small strict reader of markup, for the tests of the renderers.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay::test {

struct Element {
  std::string name;
  std::vector<std::pair<std::string, std::string>>
      attributes;    ///< values as written, references not resolved
  std::string text;  ///< up to the first child, as written
  std::string attribute(std::string_view name) const;
};

/// The elements of a document in order, or in `error` the first place where it is not well-formed: tags that
/// do not nest, attributes without quotes or twice, unknown references, characters that XML 1.0 forbids. With
/// `html`, void elements need no end and the insides of script and style are not read.
std::vector<Element> read_markup(std::string_view document, bool html, std::string* error);

}  // namespace assay::test
