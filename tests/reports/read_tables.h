// Readers of the tables that the renderers write, for their tests.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay::test {

using Rows = std::vector<std::vector<std::string>>;

/// RFC 4180: fields may be quoted, a quote inside is doubled, lines end with CR LF. Throws std::runtime_error
/// where the text is no such table.
Rows read_csv(const std::string& text);

/// The rows of the first table of Markdown whose head begins with `head`; cells without the blanks around
/// them, escapes resolved.
Rows read_markdown_table(const std::string& text, std::string_view head);

/// The exact values of the numbers of each table row of a page, behind the element with the id.
Rows read_page_numbers(const std::string& page, std::string_view id);

/// The rows of all tables in a page or a part of one, heads too: of each cell what a reader sees, without
/// tags, references resolved.
Rows read_page_rows(std::string_view markup);

}  // namespace assay::test
