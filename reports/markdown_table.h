// Tables of Markdown and what stands in their cells.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::markdown {

/// A code span: its fence is longer than any run of backticks inside; one line; "|" escaped for tables.
std::string code(std::string_view text);
/// A line of a table. Cells are Markdown.
std::string row(const std::vector<std::string>& cells);
/// Its head: the first columns are texts, the others numbers.
std::string head(const std::vector<std::string>& names, size_t texts);
/// A field of an object in four digits.
std::string short_field(const nlohmann::json& object, const char* name);

}  // namespace assay::markdown
