// assay run -- PROGRAM: a program of the CUDA runtime without a GPU, each of its launches judged.
#include <fmt/format.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "reports/markup.h"
#include "reports/print_verification.h"
#include "src/base/document/shell_word.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/vm/checks/checks.h"
#include "src/cli/commands.h"
#include "src/cli/finding_options.h"
#include "src/cli/first_failure.h"
#include "src/cli/output_options.h"
#include "src/cli/started_program.h"
#include "src/result/fuzz_run.h"

namespace assay::cli {
namespace {

struct RunCommand {
  std::string arch = "sm_90", checks = "all", digests, capture, when = "nonfinite", kernel;
  bool repeats = false, copies = false;
  std::vector<std::string> program;
  OutputOptions output;
  FindingOptions findings;

  FuzzRun result_of(const nlohmann::json& answer) const {
    FuzzRun run;
    run.backend = "vm " + arch;
    for (const auto& [kernel, launches] : answer.at("launches").items())
      run.kernels.push_back(kernel), run.cases += launches.get<int64_t>();
    run.seconds = answer.at("seconds");
    for (const nlohmann::json& finding : answer.at("findings")) {
      Verification v = verification_from_json(finding);
      v.replay = "assay run";
      if (arch != "sm_90") v.replay += " --arch " + arch;
      if (checks != "all") v.replay += " --checks " + checks;
      if (repeats) v.replay += " --repeats";
      if (copies) v.replay += " --copies";
      v.replay += " --";
      for (const std::string& word : program) v.replay += " " + shell_word(word);
      run.findings.push_back(std::move(v));
    }
    run.passed = run.cases - static_cast<int64_t>(run.findings.size());
    return run;
  }

  /// On the GPU, a Python program: what it launches is kept by the package in its own Python (start.py).
  int run_capturing() const {
    const AnswerFile file;
    std::map<std::string, std::string> variables = {
        {"ASSAY_CAPTURE", nlohmann::json{{"path", std::filesystem::absolute(capture).string()},
                                         {"when", when},
                                         {"kernel", kernel},
                                         {"result", file.path().string()}}
                              .dump()}};
    const char* const held = std::getenv("CUDA_INJECTION64_PATH");
    if (held && *held)
      output.console().line(
          fmt::format("CUDA_INJECTION64_PATH is {}, of a profiler: it keeps its place, and of launches that "
                      "are not Triton's only "
                      "those are kept whose PTX lies in a library",
                      held));
    else
      variables["CUDA_INJECTION64_PATH"] = (standin_folder() / "libassay_capture.so").string();
    const int status = start_program(program, variables, "");
    const nlohmann::json answer = file.read();
    if (answer.is_null())
      throw BadInput(
          fmt::format("{}: {}; it kept nothing: --capture wants a program in Python, with the package assay "
                      "installed there",
                      program[0], ending_text(status)));
    for (const nlohmann::json& kept : answer.at("kept")) output.console().line(kept.get<std::string>());
    for (const nlohmann::json& why : answer.at("left_out"))
      output.console().line("  left out: " + why.get<std::string>());
    const auto kept = static_cast<int64_t>(answer.at("kept").size());
    output.console().line(fmt::format("{} kept of {} that were looked at; {}: {}",
                                      counted(kept, "launch", "launches"), answer.at("seen").get<int64_t>(),
                                      program[0], ending_text(status)));
    output.write(answer);
    return status == 0 && (when != "nonfinite" || answer.at("kept").empty()) ? 0 : 1;
  }

  static void tell_notes(const Console& console, const nlohmann::json& notes) {
    constexpr size_t kMost = 8;
    for (size_t i = 0; i < std::min(notes.size(), kMost); ++i)
      console.line("note: " + notes[i].get<std::string>());
    if (notes.size() > kMost)
      console.line(fmt::format("note: the same of {} further allocations", notes.size() - kMost));
  }

  int run() {
    if (!capture.empty()) return run_capturing();
    findings.check();
    output.check();
    vm::parse_checks(checks);
    const AnswerFile file;
    nlohmann::json options = {{"arch", arch},
                              {"checks", checks},
                              {"repeats", repeats},
                              {"copies", copies},
                              {"origins", checks != "none"},
                              {"result", file.path().string()}};
    if (!digests.empty()) options["digests"] = digests;
    const int status = start_program(program, {{"ASSAY_RUN", options.dump()}}, standin_folder().string());
    const nlohmann::json answer = file.read();
    if (answer.is_null()) {
      if (WIFSIGNALED(status))
        throw BadInput(fmt::format("{} was ended by signal {}", program[0], WTERMSIG(status)));
      throw BadInput(fmt::format(
          "{} asked for nothing of the CUDA runtime: is it linked with -cudart shared?", program[0]));
    }
    const FuzzRun result = result_of(answer);
    const Console console = output.console();
    for (const Verification& v : result.findings) print_verification(console, v);
    tell_notes(console, answer.at("notes"));
    const std::string ended = ending_text(status);
    const bool passed = result.findings.empty() && status == 0 && answer.at("said").empty();
    console.line(fmt::format(
        "\n{}  {} of {} on vm {} in {:.1f} s, {:.3g} lane-instructions; {}{}; {}: {}",
        console.styled(style_of(passed ? Verdict::pass : Verdict::finding), passed ? "pass" : "finding"),
        counted(result.cases, "launch", "launches"),
        counted(static_cast<int64_t>(result.kernels.size()), "kernel", "kernels"), arch, result.seconds,
        answer.at("lane_instructions").get<double>(),
        counted(static_cast<int64_t>(result.findings.size()), "finding", "findings"),
        result.findings.empty() && !answer.at("said").empty() ? ", calls refused (above)" : "", program[0],
        ended));
    const nlohmann::json json = to_json(result);
    FirstFailure failure;
    failure.attempt([&] { output.write(json); });
    failure.attempt([&] { findings.write(json, console); });
    failure.rethrow();
    if (findings.status(result.findings, output.allow_undecided()) != 0) return 1;
    return status == 0 && answer.at("said").empty() ? 0 : 1;
  }
};

}  // namespace

void add_run(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "run", "Runs a program of the CUDA runtime without a GPU: every launch on the machine, judged");
  const auto o = std::make_shared<RunCommand>();
  command->add_option("PROGRAM", o->program, "And its arguments, behind --; linked with nvcc -cudart shared")
      ->required();
  command->add_option("--arch", o->arch, "The GPU that it sees: sm_80, sm_89, sm_90")->capture_default_str();
  command->add_option("--checks", o->checks, "As of assay check; none: launches run as they are")
      ->capture_default_str();
  command->add_flag("--repeats", o->repeats, "Each launch also in other orders, with other poison");
  command->add_flag("--copies", o->copies,
                    "A finding where the program copies to the host what nothing has written; else a note");
  command
      ->add_option(
          "--digests", o->digests,
          "Writes a digest of every allocation as it was freed; tools/gpu_digests.c writes the same of a "
          "run on a GPU")
      ->type_name("FILE");
  const auto capture =
      command
          ->add_option("--capture", o->capture,
                       "On the GPU: launches of a Python program kept as launch files, as assay.capture does")
          ->type_name("FOLDER");
  command
      ->add_option("--when", o->when, "Which launches are kept: nonfinite (the first), always, or every Nth")
      ->needs(capture)
      ->capture_default_str();
  command->add_option("--kernel", o->kernel, "Only kernels whose name matches this regular expression")
      ->needs(capture);
  o->output.add_to(*command);
  o->findings.add_to(*command);
  command->callback([o, &status] { status = o->run(); });
}

}  // namespace assay::cli
