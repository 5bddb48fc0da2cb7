#include "src/verification/verify/program_choice.h"

#include <fmt/format.h>

#include <map>

#include "kernels/mutant.h"
#include "src/base/document/shell_word.h"
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

Capsule ProgramChoice::load(bool large_stay) {
  std::map<std::string, int64_t> chosen;
  for (const auto& [name, value] : sizes) chosen[name] = value;
  if (!file().accepts(chosen))
    throw BadInput(path + ": its \"accepts\" leaves these sizes out; choose others with --size");
  Capsule capsule = file().make(chosen, seed, large_stay);
  if (!vary.empty()) assay::vary(capsule, vary);
  if (!mutant.empty()) capsule.program = with_mutation(std::move(capsule.program), mutant);
  return capsule;
}

void ProgramChoice::describe(const Capsule& capsule, Verification& v) const {
  v.program->file = path, v.program->seed = capsule.seed;
  for (const auto& [name, value] : capsule.sizes) v.program->sizes.push_back({name, value});
  v.replay = "assay check " + replay_text();
}

std::string ProgramChoice::replay_text() const {
  std::string text = shell_word(path);
  for (const std::string& name : ptx) text += " --ptx " + shell_word(name);
  std::string chosen;
  for (const auto& [name, value] : sizes)
    chosen += fmt::format("{}{}={}", chosen.empty() ? "" : ",", name, value);
  if (!chosen.empty()) text += " --size " + chosen;
  if (!vary.empty()) text += " --vary " + vary;
  if (seed != 1) text += fmt::format(" --seed {}", seed);
  if (!mutant.empty()) text += " --mutant " + mutant;
  return text;
}

}  // namespace assay
