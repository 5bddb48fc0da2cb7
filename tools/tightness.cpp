// Writes the page of loose bounds (bench/TIGHTNESS.md) from the JSON of a fuzz run:
//   tightness RUN.json LEAST_CASES > bench/TIGHTNESS.md
// Exit status 1 where a row has no reason.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fuzz/looseness.h"

int main(int count, char** arguments) try {
  if (count != 3) {
    std::fputs("tightness: give the JSON of a fuzz run and the least number of cases of a row\n", stderr);
    return 2;
  }
  const std::string page =
      assay::render_looseness(nlohmann::json::parse(std::ifstream(arguments[1])), std::atoll(arguments[2]));
  std::fputs(page.c_str(), stdout);
  return page.find("\n## no reason known\n") == page.npos ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "tightness: %s: %s\n", arguments[1], error.what());
  return 2;
}
