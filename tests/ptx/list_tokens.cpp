// Prints a dictionary for libFuzzer: the words of PTX that the machine knows.
#include <fmt/format.h>

#include "tests/ptx/token_mutation.h"

int main() {
  for (const std::string& word : assay::ptx::known_words()) fmt::print("\"{}\"\n", word);
  return 0;
}
