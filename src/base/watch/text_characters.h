// PTX text character by character, without comments and strings.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

namespace assay::watch {

/// Just after the comment or string that begins at `i`; `i` itself where none does.
inline size_t skip_quoted(std::string_view text, size_t i) {
  const std::string_view two = text.substr(i, 2);
  if (two == "//") return std::min(text.find('\n', i), text.size());
  if (two == "/*") return std::min(text.find("*/", i + 2), text.size() - 2) + 2;
  if (two[0] == '"') return std::min(text.find('"', i + 1), text.size() - 1) + 1;
  return i;
}

/// visit(position, character) for the characters of text[from, to) outside comments and strings; ends where
/// it returns false.
template <class Visit>
void each_character(std::string_view text, size_t from, size_t to, Visit visit) {
  for (size_t i = from; i < to;) {
    const size_t behind = skip_quoted(text, i);
    if (behind != i) {
      i = behind;
      continue;
    }
    if (!visit(i, text[i])) return;
    ++i;
  }
}

}  // namespace assay::watch
