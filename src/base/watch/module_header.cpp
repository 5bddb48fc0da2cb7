#include "src/base/watch/module_header.h"

#include <algorithm>
#include <cstdlib>

#include "src/base/watch/text_characters.h"

namespace assay::watch {

size_t behind_header(std::string_view text) {
  size_t found = 0;
  each_character(text, 0, text.size(), [&](size_t i, char c) {
    for (const std::string_view word : {".version", ".target", ".address_size"})
      if (c == '.' && text.substr(i, word.size()) == word) found = std::min(text.find('\n', i), text.size());
    return c != '{' && c != '(';
  });
  return found;
}

bool is_at_least(const ptx::Module& module, double version) {
  return std::atof(module.version.c_str()) >= version;
}

bool is_older(const ptx::Module& module) {
  const size_t digits = module.target.find_first_of("0123456789");
  const int architecture = digits == module.target.npos ? 0 : std::atoi(module.target.c_str() + digits);
  return architecture < 70 || !is_at_least(module, 6.3);
}

std::string raised(std::string text, const ptx::Module& module) {
  if (is_at_least(module, 9)) return text;
  size_t at = text.npos;
  each_character(text, 0, text.size(), [&](size_t i, char c) {
    if (c == '.' && text.compare(i, 8, ".version") == 0) at = text.find(module.version, i);
    return at == text.npos;
  });
  return at == text.npos ? text : text.replace(at, module.version.size(), "9.0");
}

}  // namespace assay::watch
