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
  app.add_option("--mutant", choice_.mutant, "With one instruction changed, as assay mutate names it")
      ->type_name("ID");
  add_drawing_to(app, true);
}

void ProgramOptions::add_drawing_to(CLI::App& app, bool with_seed) {
  const std::string group = "A launch file";
  app.add_option("--size", sizes_, "Sizes of the launch file, as in n=1000,rows=8")
      ->type_name("NAME=N,...")
      ->delimiter(',')
      ->group(group);
  app.add_option("--vary", choice_.vary,
                 "Other values of tensors drawn at random: x=spike,y=zeros (fuzzing names them)")
      ->type_name("TENSOR=HOW,...")
      ->group(group);
  if (with_seed)
    app.add_option("--seed", choice_.seed, "Of tensors drawn at random")->group(group)->capture_default_str();
}

void ProgramOptions::choose(const std::string& path, const std::string& ptx, const std::string& mutant) {
  choice_.path = path, choice_.mutant = mutant;
  if (!ptx.empty()) choice_.ptx = {ptx};
}

void ProgramOptions::refuse_drawing(const std::string& kernel) const {
  if (!sizes_.empty() || !choice_.vary.empty())
    throw BadInput(fmt::format("{}: --size and --vary are of launch files, and this is none", kernel));
}

Capsule ProgramOptions::load(bool large_stay) {
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
  return choice_.load(large_stay);
}

}  // namespace assay::cli
