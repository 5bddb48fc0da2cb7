#include "reports/markdown_table.h"

#include <algorithm>
#include <cstdint>

#include "reports/markup.h"

namespace assay::markdown {

std::string code(std::string_view text) {
  size_t longest = 0, run = 0;
  std::string line;
  for (const char c : text) {
    longest = std::max(longest, run = c == '`' ? run + 1 : 0);
    if (c == '|') line += '\\';
    line += static_cast<uint8_t>(c) < 0x20 ? ' ' : c;
  }
  if (line.empty()) return "";
  const std::string fence(longest + 1, '`'), space = longest > 0 ? " " : "";
  return fence + space + line + space + fence;
}

std::string row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + cell + " |";
  return out + "\n";
}

std::string head(const std::vector<std::string>& names, size_t texts) {
  std::string out = row(names) + "|";
  for (size_t i = 0; i < names.size(); ++i) out += i < texts ? "---|" : "---:|";
  return out + "\n";
}

std::string short_field(const nlohmann::json& object, const char* name) {
  return short_decimal(field_of(object, name));
}

}  // namespace assay::markdown
