#include "src/cli/program_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "src/base/numerics/bad_input.h"
#include "src/capsule/variation.h"

namespace assay::cli {

void ProgramOptions::add_to(CLI::App& app) {
  CLI::Option* file =
      app.add_option("FILE", path_, "A launch file: JSON that says what to launch (examples/launch)");
  file->excludes(app.add_option("--launch", path_, "The same")->type_name("FILE"));
  app.add_option("--ptx", ptx_, "PTX in place of what the launch file names")->type_name("FILE ...");
  app.add_option("--size", sizes_, "Sizes of the launch file, as in n=1000,rows=8")
      ->type_name("NAME=N,...")
      ->delimiter(',');
  app.add_option("--vary", vary_,
                 "Other values of tensors drawn at random: x=spike,y=zeros (fuzzing names them)")
      ->type_name("TENSOR=HOW,...");
  app.add_option("--seed", seed_, "Of tensors drawn at random")->capture_default_str();
}

std::map<std::string, int64_t> ProgramOptions::chosen_sizes() const {
  std::map<std::string, int64_t> chosen;
  for (const std::string& text : sizes_) {
    const size_t equals = text.find('=');
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const bool read = equals != text.npos && equals > 0 &&
                      std::from_chars(text.data() + equals + 1, end, value).ptr == end &&
                      equals + 1 < text.size();
    if (!read || value < 0)
      throw BadInput(fmt::format("--size {}: expected NAME=NUMBER, as in n=1000", text));
    chosen[text.substr(0, equals)] = value;
  }
  return chosen;
}

const LaunchFile& ProgramOptions::file() {
  if (file_) return *file_;
  if (path_.empty())
    throw BadInput("name a launch file, as in assay check saxpy.json (examples/launch has some)");
  if (path_.ends_with(".ptx"))
    throw BadInput(
        fmt::format("{}: PTX alone does not say what to launch; give a launch file beside it: assay "
                    "check LAUNCH.json --ptx {}",
                    path_, path_));
  return file_.emplace(path_, ptx_);
}

Capsule ProgramOptions::load() {
  const std::map<std::string, int64_t> sizes = chosen_sizes();
  if (!file().accepts(sizes))
    throw BadInput(path_ + ": its \"accepts\" leaves these sizes out; choose others with --size");
  Capsule capsule = file().make(sizes, seed_);
  if (!vary_.empty()) vary(capsule, vary_);
  return capsule;
}

void ProgramOptions::describe(const Capsule& capsule, Verification& v) const {
  v.program->file = path_, v.program->seed = capsule.seed;
  for (const auto& [name, value] : capsule.sizes) v.program->sizes.push_back({name, value});
  v.replay = "assay check " + path_;
  for (const std::string& ptx : ptx_) v.replay += " --ptx " + ptx;
  if (!sizes_.empty()) {
    v.replay += " --size ";
    for (size_t i = 0; i < sizes_.size(); ++i) v.replay += (i ? "," : "") + sizes_[i];
  }
  if (!vary_.empty()) v.replay += " --vary " + vary_;
  if (seed_ != 1) v.replay += fmt::format(" --seed {}", seed_);
}

}  // namespace assay::cli
