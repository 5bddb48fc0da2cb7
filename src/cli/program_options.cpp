#include "src/cli/program_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "src/base/numerics/bad_input.h"

namespace assay::cli {

void ProgramOptions::add_to(CLI::App& app) {
  CLI::Option* file =
      app.add_option("FILE", choice_.path, "A launch file: JSON that says what to launch (examples/launch)");
  file->excludes(app.add_option("--launch", choice_.path, "The same")->type_name("FILE"));
  app.add_option("--ptx", choice_.ptx, "PTX in place of what the launch file names")->type_name("FILE ...");
  app.add_option("--size", sizes_, "Sizes of the launch file, as in n=1000,rows=8")
      ->type_name("NAME=N,...")
      ->delimiter(',');
  app.add_option("--vary", choice_.vary,
                 "Other values of tensors drawn at random: x=spike,y=zeros (fuzzing names them)")
      ->type_name("TENSOR=HOW,...");
  app.add_option("--seed", choice_.seed, "Of tensors drawn at random")->capture_default_str();
}

Capsule ProgramOptions::load() {
  choice_.sizes.clear();
  for (const std::string& text : sizes_) {
    const size_t equals = text.find('=');
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const bool read = equals != text.npos && equals > 0 &&
                      std::from_chars(text.data() + equals + 1, end, value).ptr == end &&
                      equals + 1 < text.size();
    if (!read || value < 0)
      throw BadInput(fmt::format("--size {}: expected NAME=NUMBER, as in n=1000", text));
    choice_.sizes.emplace_back(text.substr(0, equals), value);
  }
  return choice_.load();
}

}  // namespace assay::cli
