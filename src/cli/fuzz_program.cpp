#include "src/cli/fuzz_program.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/document/shell_word.h"
#include "src/campaign/engine/interrupt.h"
#include "src/campaign/program_fuzz/program_fuzz.h"
#include "src/cli/engine_options.h"
#include "src/cli/finding_options.h"
#include "src/cli/first_failure.h"
#include "src/cli/output_options.h"
#include "src/cli/program_options.h"
#include "src/cli/progress_bar.h"

namespace assay::cli {

int fuzz_launch_file(const std::string& path, const std::string& ptx, const ProgramFuzzBudget& budget,
                     const EngineOptions& engines, const OutputOptions& output,
                     const FindingOptions& findings) {
  const LaunchFile file(path, ptx.empty() ? std::vector<std::string>{} : std::vector{ptx});
  ProgramFuzzOptions options{
      .time_s = budget.time_s, .cases = budget.cases, .seed = budget.seed, .jobs = budget.jobs};
  options.check.machine = options.check.origin.machine = engines.make(1).machine;
  options.replay = "assay check " + shell_word(path) + (ptx.empty() ? "" : " --ptx " + shell_word(ptx)) +
                   engines.replay_suffix();
  const Interrupt interrupt;
  options.interrupted = &interrupt.signal();
  const Console console = output.console();
  console.line(
      fmt::format("fuzzing {} on vm {}, seed {}", file.name(), options.check.machine.arch, options.seed));
  ProgressBar bar;
  const FuzzRun run = fuzz_program(
      file, options,
      {.progress =
           [&](double fraction, int64_t cases, size_t found) {
             bar.show(fraction, fmt::format("{} runs, {} finding{}", cases, found, found == 1 ? "" : "s"));
           },
       .found =
           [&](const Verification& v) {
             bar.clear();
             console.line(fmt::format("{} {}\n  {}", console.styled(Style::bad, "found"), v.cause, v.replay));
             if (v.checks && !v.checks->findings.empty())
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
  std::vector<std::vector<std::string>> rows{{"property", "checked", "failed"}};
  for (const PropertyRow& row : run.properties)
    rows.push_back({row.name, std::to_string(row.checked), std::to_string(row.failed)});
  console.line("");
  console.table(rows, 1);
  const char* const verdict = !run.findings.empty() ? "FINDING" : interrupt.signal() ? "incomplete" : "pass";
  console.line(
      fmt::format("\n{}  {} runs in {:.1f} s: {} passed, {} draws too large or without a launch; "
                  "{} finding{}; seed {}",
                  verdict, run.cases, run.seconds, run.passed, run.domain, run.findings.size(),
                  run.findings.size() == 1 ? "" : "s", run.seed));
  const nlohmann::json result = to_json(run);
  FirstFailure failure;
  failure.attempt([&] { output.write(result); });
  failure.attempt([&] { findings.write(result, console); });
  failure.rethrow();
  if (findings.status(run.findings, output.allow_undecided()) != 0) return 1;
  return interrupt.signal() != 0 ? 128 + interrupt.signal() : 0;
}

}  // namespace assay::cli
