// Tables, lists and headings of a report page.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::html {

struct Column {
  std::string_view name;
  bool number = false;  ///< aligned right
};

/// `text` is markup.
std::string heading(int level, std::string_view text);
/// One entry of a list of facts; nothing where the markup is empty.
std::string fact(std::string_view name, const std::string& markup);
/// Under its heading a list of lines; nothing where there is none.
std::string list_section(const nlohmann::json& lines, int level, std::string_view title);

/// Table with a head; `caption` and `rows` are markup, the caption may be empty. Scrolls sideways where it is
/// too wide.
std::string table(const std::string& caption, const std::vector<Column>& columns, const std::string& rows);
/// <th scope="row"> of markup.
std::string row_head(const std::string& markup);
std::string text_cell(std::string_view text);
std::string mono_cell(std::string_view text);
/// Short decimal, exact in its value attribute.
std::string number_cell(const nlohmann::json& value, bool bad = false);
/// Exact decimal and, in the next cell, hexadecimal floating point.
std::string exact_cells(const nlohmann::json& value);

}  // namespace assay::html
