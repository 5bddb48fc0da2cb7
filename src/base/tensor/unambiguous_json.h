// JSON as files bring it along, read so that nothing is left to chance.
#pragma once
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace assay {

/// JSON leaves open which of two equal keys counts: a document that has two is refused, as is one that nests
/// deeper than 64. Throws BadInput, one line with the path; `otherwise` says what text is that is no JSON.
nlohmann::json parse_unambiguous(std::string_view text, const std::string& path, std::string_view otherwise);

/// What an exception of the JSON library says, shortened, without the library's own name and number of it.
std::string json_fault(const std::exception&);

}  // namespace assay
