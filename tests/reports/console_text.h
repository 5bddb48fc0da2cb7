// What a printer writes on a console that is no terminal.
#pragma once
#include <cstdio>
#include <string>

#include "reports/console.h"

namespace assay::test {

/// `print` is called with the console.
template <typename Print>
std::string printed(const Print& print) {
  std::FILE* const file = std::tmpfile();
  print(Console(file));
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace assay::test
