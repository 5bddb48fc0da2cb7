#include "src/cli/fuzz_program.h"

#include <fmt/format.h>

#include "src/base/document/shell_word.h"
#include "src/campaign/program_fuzz/program_fuzz.h"
#include "src/cli/engine_options.h"
#include "src/cli/progress_bar.h"
#include "src/result/one_per_defect.h"

namespace assay::cli {

FuzzRun fuzz_launch_file(const std::string& path, const std::string& ptx, const ProgramFuzzBudget& budget,
                         const EngineOptions& engines, const Console& console) {
  const LaunchFile file(path, ptx.empty() ? std::vector<std::string>{} : std::vector{ptx});
  ProgramFuzzOptions options{
      .time_s = budget.time_s, .cases = budget.cases, .seed = budget.seed, .jobs = budget.jobs};
  options.check.machine = options.check.origin.machine = engines.make(1).machine;
  options.replay = "assay check " + shell_word(path) + (ptx.empty() ? "" : " --ptx " + shell_word(ptx)) +
                   engines.replay_suffix();
  options.interrupted = budget.interrupted;
  console.line(
      fmt::format("fuzzing {} on vm {}, seed {}", file.name(), options.check.machine.arch, options.seed));
  ProgressBar bar;
  FuzzRun run = fuzz_program(
      file, options,
      {.progress =
           [&](double fraction, int64_t cases, size_t found) {
             bar.show(fraction, fmt::format("{} runs, {} finding{}", cases, found, found == 1 ? "" : "s"));
           },
       .found =
           [&](const Verification& v) {
             bar.clear();
             console.line(fmt::format("{} {}\n  {}", console.styled(Style::bad, "found"), v.cause,
                                      Console::command(v.replay)));
             if (v.checks && !v.checks->findings.empty() && !v.cause.starts_with("trap/"))
               console.line("  " + v.checks->findings.front().message);
             else if (v.trap)
               console.line("  " + v.trap->message);
             else if (v.origin)
               console.line("  " + v.origin->sentence);
             else if (!v.properties_failed.empty())
               console.line("  " + v.properties_failed.front());
             console.flush();
           }});
  bar.clear();
  run.min_cases = budget.min_cases;
  if (*budget.interrupted != 0)
    run.ended_early = "interrupted";
  else if (run.cases < budget.min_cases)
    run.too_few.push_back({file.name(), run.cases});
  for (const PropertyRow& row : run.properties)
    run.kernel_properties.push_back({file.name(), row.name, row.checked, row.failed});
  run.coverage.push_back({"kernel", file.name(), run.cases});
  if (budget.baseline != nullptr) mark_familiar(*budget.baseline, run.findings);
  run.findings = one_per_defect(std::move(run.findings));
  return run;
}

}  // namespace assay::cli
