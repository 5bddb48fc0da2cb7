#include "tests/reports/read_tables.h"

#include <sstream>
#include <stdexcept>

#include "tests/reports/well_formed.h"

namespace assay::test {
namespace {

/// A quoted field from its first quote on; `at` is moved behind its last.
std::string quoted_field(const std::string& text, size_t& at) {
  std::string field;
  for (++at; at < text.size(); ++at) {
    if (text[at] != '"') {
      field += text[at];
    } else if (at + 1 < text.size() && text[at + 1] == '"') {
      field += text[at++];
    } else {
      ++at;
      return field;
    }
  }
  throw std::runtime_error("CSV: a quote is not closed");
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells = {""};
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size())
      cells.back() += line[++i];
    else if (line[i] == '|')
      cells.emplace_back();
    else
      cells.back() += line[i];
  }
  cells.pop_back();
  for (std::string& cell : cells) {
    cell.erase(0, cell.find_first_not_of(' '));
    cell.erase(cell.find_last_not_of(' ') + 1);
  }
  return cells;
}

/// References of markup as the characters that they stand for.
std::string resolved(std::string_view text) {
  std::string out(text);
  const std::pair<std::string_view, std::string_view> references[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
  for (const auto& [reference, character] : references)
    for (size_t at = out.find(reference); at != out.npos; at = out.find(reference, at + 1))
      out.replace(at, reference.size(), character);
  return out;
}

}  // namespace

Rows read_csv(const std::string& text) {
  Rows rows;
  for (size_t at = 0; at < text.size();) {
    rows.emplace_back();
    for (bool more = true; more;) {
      std::string field;
      if (text[at] == '"') {
        field = quoted_field(text, at);
      } else {
        const size_t end = text.find_first_of(",\r\n\"", at);
        if (end == text.npos || text[end] == '"') throw std::runtime_error("CSV: a field does not end");
        field = text.substr(at, end - at);
        at = end;
      }
      rows.back().push_back(field);
      more = text[at] == ',';
      if (more) ++at;
    }
    if (text.substr(at, 2) != "\r\n") throw std::runtime_error("CSV: a line does not end with CR LF");
    at += 2;
    if (rows.back().size() != rows.front().size()) throw std::runtime_error("CSV: rows of unequal length");
  }
  return rows;
}

Rows read_markdown_table(const std::string& text, std::string_view head) {
  Rows rows;
  bool inside = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (inside && !line.starts_with('|')) break;
    if (inside && !line.starts_with("|--")) rows.push_back(cells_of(line));
    if (!inside && line.starts_with(head)) inside = true;
  }
  return rows;
}

Rows read_page_numbers(const std::string& page, std::string_view id) {
  Rows rows;
  std::string error;
  bool behind = false, in_cell = false;
  for (const Element& element : read_markup(page, true, &error)) {
    if (element.attribute("id") == id) behind = true;
    if (behind && element.name == "tr") rows.emplace_back();
    if (in_cell && element.name == "data" && !rows.empty()) rows.back().push_back(element.attribute("value"));
    in_cell = behind && element.name == "td";
  }
  std::erase_if(rows, [](const auto& row) { return row.empty(); });
  return rows;
}

Rows read_page_rows(std::string_view markup) {
  Rows rows;
  bool in_cell = false;
  while (!markup.empty()) {
    const size_t end = markup.find(markup[0] == '<' ? '>' : '<');
    const std::string_view part = markup.substr(0, markup[0] == '<' ? end + 1 : end);
    markup.remove_prefix(part.size());
    const bool cell = part.starts_with("<td") || part.starts_with("<th ") || part == "<th>";
    if (part == "<tr>") rows.emplace_back();
    if (cell) rows.at(rows.size() - 1).emplace_back();
    if (cell || part == "</td>" || part == "</th>") in_cell = cell;
    if (in_cell && part[0] != '<') rows.back().back() += resolved(part);
  }
  return rows;
}

}  // namespace assay::test
