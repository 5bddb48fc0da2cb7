#include "src/campaign/defects/defect_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "fuzz/properties.h"
#include "fuzz/trial.h"
#include "kernels/compile_ptx.h"
#include "src/base/numerics/fnv.h"
#include "src/verification/compare/digest.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/verify.h"

namespace assay {
namespace {

/// Its best-named cause's score; 0 where none is.
double named_by(const Verification& v) {
  return v.diagnosis.empty() ? 0 : v.diagnosis.front().score;
}

/// A failed property alone says that something is wrong, not what.
constexpr double kSaysWhat = 0.7;

/// Keeps the first shrunk finding whose cause is named well, and ends the run with it; for `patience_s` after
/// a finding of which less can be said the run goes on, and the best is kept.
class FirstFinding : public Listener {
 public:
  FirstFinding(double patience_s, const std::atomic<int>* interrupted)
      : patience_s_(patience_s), interrupted_(interrupted) {}

  void progress(const FuzzProgress& progress) override {
    if (!finding) cases = progress.cases;
    if (finding && progress.seconds > found_at_s_ + patience_s_) stop = 1;
    if (interrupted_ && *interrupted_ != 0) stop = interrupted_->load();
    now_s_ = progress.seconds;
  }
  void shrunk(const Verification&, const Verification& smaller) override {
    if (stop != 0 || smaller.verdict != Verdict::finding) return;
    if (named_by(smaller) >= kSaysWhat) stop = 1;
    if (!finding) found_at_s_ = now_s_;
    if (!finding || named_by(smaller) > named_by(*finding)) finding = smaller;
  }

  std::atomic<int> stop = 0;
  int64_t cases = 0;
  std::optional<Verification> finding;

 private:
  const double patience_s_;
  const std::atomic<int>* interrupted_;
  double now_s_ = 0, found_at_s_ = 0;
};

/// Fuzzing for `time_s`, and on for as long as compiling held it up.
std::optional<Verification> first_finding(const Kernel& kernel, const DefectTrialOptions& options,
                                          DefectTrial& trial) {
  const int jobs = std::max(1, options.jobs);
  double left = options.time_s;
  for (uint64_t round = 0; left >= 1; ++round) {
    FirstFinding first(options.time_s / 4, options.interrupted);
    FuzzOptions fuzzing;
    fuzzing.time_s = left;
    fuzzing.cases = options.cases;
    fuzzing.seed = options.seed + (round << 32);
    fuzzing.jobs = options.jobs;
    fuzzing.db = "";
    fuzzing.far = options.backend->name().starts_with("vm");
    fuzzing.interrupted = &first.stop;
    fuzzing.origin.machine = options.machine;
    const double before = seconds_compiling();
    const FuzzRun run = fuzz({&kernel}, *options.backend, fuzzing, first);
    const double compiling = seconds_compiling() - before;
    trial.cases += first.finding ? first.cases : run.cases;
    trial.seconds += run.seconds;
    trial.seconds_compiling += compiling;
    if (first.finding) return first.finding;
    if (options.interrupted && *options.interrupted != 0) break;
    left = options.cases > 0 ? 0 : std::min(left, compiling / jobs);
  }
  return std::nullopt;
}

std::string text_of(const SourceLocation& where) {
  return where.file.empty() ? "" : fmt::format("{}:{}", where.file, where.line);
}

/// Of the instruction, or of a call that it was inlined at.
bool is_expected(const SourceLocation& where, const std::vector<LineRange>& expected) {
  std::vector<std::string> frames = where.frames;
  frames.push_back(text_of(where));
  return std::any_of(expected.begin(), expected.end(), [&](const LineRange& range) {
    for (int line = range.first; line <= range.last; ++line)
      if (std::count(frames.begin(), frames.end(), fmt::format("{}:{}", range.file, line))) return true;
    return false;
  });
}

/// All that counts as the patched place: the declared lines and those that the patch changes, each with the
/// rest of its statement. A loop's or a condition's head is one with the statement without braces that it
/// controls: of an unrolled loop the head leaves no instruction.
std::vector<LineRange> patched_statements(const Defect& defect) {
  std::vector<LineRange> all = expected_lines(defect);
  const SourceText source(defect.id());
  for (const LineRange& range : patched_lines(defect))
    for (int line = range.first; line <= range.last; ++line) {
      SourceLocation where;
      where.file = range.file, where.line = line;
      const SourceRange statement = source.statement_around(where);
      all.push_back({statement.file, statement.first, statement.last});
    }
  return all;
}

/// Where the formula is said to differ, and how: in words that the defect's own are part of.
bool names_fingerprint(const Diagnosis& first, const Defect& defect) {
  const std::vector<std::string> texts = expected_fingerprints(defect);
  return first.cause == "formula-differs" &&
         std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
           return first.explanation.find(text) != std::string::npos;
         });
}

void judge_finding(const Verification& v, const Defect& defect, DefectTrial& trial) {
  trial.token = v.token;
  const std::vector<std::string> causes = expected_causes(defect);
  if (!v.diagnosis.empty()) trial.cause = v.diagnosis.front().cause;
  trial.cause_right = std::count(causes.begin(), causes.end(), trial.cause) > 0 ||
                      (!v.diagnosis.empty() && names_fingerprint(v.diagnosis.front(), defect));
  trial.nonfinite = v.cause.starts_with("nonfinite/");
  std::vector<SourceLocation> named;
  const bool of_formula = trial.cause == "formula-differs" && !v.lines.empty();  // behind an overflow, too
  if (!of_formula && (v.origin || v.trap)) named.push_back(v.origin ? v.origin->where : v.trap->where);
  const bool beside =
      v.origin && v.origin->kind == OriginKind::unwritten_memory;  // of the store, not the read
  if (of_formula || !v.origin || beside)
    for (const SuspectLine& line : v.lines) named.push_back(line.at.where);
  for (const SourceLocation& where : named) trial.lines.push_back(text_of(where));
  if (!named.empty()) trial.line = trial.lines.front();
  const auto any = [&](const std::vector<LineRange>& expected) {
    return std::any_of(named.begin(), named.end(),
                       [&](const SourceLocation& where) { return is_expected(where, expected); });
  };
  trial.line_declared = any(expected_lines(defect));
  trial.line_right = trial.nonfinite ? trial.line_declared : any(patched_statements(defect));
}

/// What is wrong, and of what is not finite where it was born; not why.
Verification judged(const Case& c, const Kernel& kernel, Backend& backend,
                    const vm::MachineOptions& machine) {
  VerifyOptions options;
  options.origin.machine = machine;
  options.origin.nearest_inputs = 0, options.meaning_seconds = 0;
  options.checks = vm::Checks{};
  Verification v = verify(c, kernel, backend, options);
  if (was_run(v)) judge_properties(v, kernel, backend);
  return v;
}

/// The finding of a token, as its replay explains it; none: it is none any more.
std::optional<Verification> explained_again(const std::string& token, const DefectTrialOptions& options) {
  Trial again;
  again.case_ = parse_token(token), again.kernel = &find_kernel(again.case_.kernel);
  for (const Property& property : properties()) again.properties.push_back(&property);
  FuzzOptions as_found;
  as_found.origin.machine = options.machine;
  const TrialReport report = run_trial(again, *options.backend, as_found);
  if (!report.rejected.empty() || report.verification.verdict != Verdict::finding) return std::nullopt;
  return fully_traced(report, report.verification, *options.backend, as_found);
}

std::string output_digest(const Case& c, const Kernel& kernel, Backend& backend) {
  const ResolvedCase resolved = resolve_unchecked(c, find_operator(kernel.operator_name));
  const TensorMap inputs = draw_inputs(resolved);
  const Outcome outcome = backend.run(program_of(kernel, resolved, inputs), inputs);
  return outcome.trap ? "-" : fmt::format("{:016x}", digest(outcome.outputs));
}

}  // namespace

std::string digest_of(const Defect& defect) {
  return fmt::format("{:016x}", fnv1a(defect.patch));
}

TokenReplay replay_token(const std::string& token, Backend& backend, const vm::MachineOptions& machine) {
  TokenReplay replay;
  Case c = parse_token(token);
  const Kernel& kernel = find_kernel(c.kernel);
  const Verification again = judged(c, kernel, backend, machine);
  replay.verdict = again.verdict, replay.cause = again.cause;
  replay.digest = "-";
  if (again.verdict != Verdict::domain && c.blocks.empty()) replay.digest = output_digest(c, kernel, backend);
  c.kernel = c.kernel.substr(0, c.kernel.find('@'));
  const Verification clean = judged(c, find_kernel(c.kernel), backend, machine);
  replay.clean_verdict = clean.verdict, replay.clean_cause = clean.cause;
  return replay;
}

DefectTrial try_defect(const Defect& defect, const DefectTrialOptions& options) {
  DefectTrial trial;
  trial.defect = defect.id();
  trial.patch = digest_of(defect);
  const std::optional<Verification> finding = first_finding(find_kernel(trial.defect), options, trial);
  if (!finding) return trial;
  std::optional<Verification> later;  // of what fuzzing had no time left to explain
  if (finding->unexplained) later = explained_again(finding->token, options);
  judge_finding(later ? *later : *finding, defect, trial);
  trial.token = finding->token;
  trial.replay = replay_token(trial.token, *options.backend, options.machine);
  return trial;
}

DefectTrial explain_token(const Defect& defect, const std::string& token, const DefectTrialOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const double compiling = seconds_compiling();
  DefectTrial trial;
  trial.defect = defect.id();
  trial.patch = digest_of(defect);
  const std::optional<Verification> again = explained_again(token, options);
  if (again) judge_finding(*again, defect, trial);
  trial.cases = 1;
  trial.seconds_compiling = seconds_compiling() - compiling;
  trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (again) trial.replay = replay_token(token, *options.backend, options.machine);
  return trial;
}

nlohmann::json to_json(const DefectTrial& t) {
  return {{"defect", t.defect},
          {"patch", t.patch},
          {"found", t.found()},
          {"cases", t.cases},
          {"seconds", t.seconds},
          {"seconds_compiling", t.seconds_compiling},
          {"token", t.token},
          {"replay",
           {{"verdict", name_of(t.replay.verdict)},
            {"cause", t.replay.cause},
            {"digest", t.replay.digest},
            {"clean_verdict", name_of(t.replay.clean_verdict)},
            {"clean_cause", t.replay.clean_cause}}},
          {"cause", t.cause},
          {"cause_right", t.cause_right},
          {"nonfinite", t.nonfinite},
          {"line", t.line},
          {"lines", t.lines},
          {"line_declared", t.line_declared},
          {"line_right", t.line_right}};
}

DefectTrial defect_trial_from_json(const nlohmann::json& json) {
  DefectTrial t;
  json.at("defect").get_to(t.defect);
  json.at("patch").get_to(t.patch);
  json.at("cases").get_to(t.cases);
  json.at("seconds").get_to(t.seconds);
  json.at("seconds_compiling").get_to(t.seconds_compiling);
  json.at("token").get_to(t.token);
  const nlohmann::json& replay = json.at("replay");
  t.replay.verdict =
      value_named<Verdict>(replay.at("verdict").get<std::string>()).value_or(Verdict::undecided);
  replay.at("cause").get_to(t.replay.cause);
  replay.at("digest").get_to(t.replay.digest);
  t.replay.clean_verdict =
      value_named<Verdict>(replay.at("clean_verdict").get<std::string>()).value_or(Verdict::undecided);
  replay.at("clean_cause").get_to(t.replay.clean_cause);
  json.at("cause").get_to(t.cause);
  json.at("cause_right").get_to(t.cause_right);
  json.at("nonfinite").get_to(t.nonfinite);
  json.at("line").get_to(t.line);
  json.at("lines").get_to(t.lines);
  json.at("line_declared").get_to(t.line_declared);
  json.at("line_right").get_to(t.line_right);
  return t;
}

}  // namespace assay
