#include "src/verification/verify/program_choice.h"

#include <fmt/format.h>

#include <map>

#include "src/base/numerics/bad_input.h"
#include "src/capsule/variation.h"

namespace assay {

const LaunchFile& ProgramChoice::file() {
  if (file_) return *file_;
  if (path.empty())
    throw BadInput("name a launch file, as in assay check saxpy.json (examples/launch has some)");
  if (path.ends_with(".ptx"))
    throw BadInput(
        fmt::format("{}: PTX alone does not say what to launch; give a launch file beside it: assay "
                    "check LAUNCH.json --ptx {}",
                    path, path));
  return file_.emplace(path, ptx);
}

Capsule ProgramChoice::load() {
  std::map<std::string, int64_t> chosen;
  for (const auto& [name, value] : sizes) chosen[name] = value;
  if (!file().accepts(chosen))
    throw BadInput(path + ": its \"accepts\" leaves these sizes out; choose others with --size");
  Capsule capsule = file().make(chosen, seed);
  if (!vary.empty()) assay::vary(capsule, vary);
  return capsule;
}

void ProgramChoice::describe(const Capsule& capsule, Verification& v) const {
  v.program->file = path, v.program->seed = capsule.seed;
  for (const auto& [name, value] : capsule.sizes) v.program->sizes.push_back({name, value});
  v.replay = "assay check " + path;
  for (const std::string& name : ptx) v.replay += " --ptx " + name;
  std::string chosen;
  for (const auto& [name, value] : sizes)
    chosen += fmt::format("{}{}={}", chosen.empty() ? "" : ",", name, value);
  if (!chosen.empty()) v.replay += " --size " + chosen;
  if (!vary.empty()) v.replay += " --vary " + vary;
  if (seed != 1) v.replay += fmt::format(" --seed {}", seed);
}

}  // namespace assay
