#include "src/cli/finding_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/annotations.h"
#include "reports/junit.h"
#include "reports/pull_request.h"
#include "reports/sarif.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/source_root.h"
#include "src/base/tensor/tensor_file.h"
#include "src/case/names.h"
#include "src/cli/first_failure.h"
#include "src/result/finding_kind.h"

namespace assay::cli {
namespace {

constexpr const char* kGitHub = "github";

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const std::string_view name : names_of(FindingKind{})) names.emplace_back(name);
  return names;
}

/// " but KIND": those that do not fail unasked.
std::string excepted() {
  std::string names;
  for (const FindingKindRow& row : finding_kinds())
    if (!row.fails) names += fmt::format("{} {}", names.empty() ? " but" : ",", name_of(row.kind));
  return names;
}

}  // namespace

void FindingOptions::add_to(CLI::App& app) {
  const std::string group = "Continuous integration";
  app.add_option("--fail-on", fail_on_,
                 fmt::format("Kinds of findings that give exit status 1: {}; all, none (default: all{})",
                             fmt::join(kind_names(), ", "), excepted()))
      ->delimiter(',')
      ->type_name("KIND,...")
      ->group(group);
  app.add_option_function<std::string>(
         "--source-root", [](const std::string& folder) { choose_source_root(folder); },
         "Folder that results name source files relative to (default: the git work tree of the working "
         "directory)")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--junit", junit_, "JUnit XML")->type_name("FILE")->group(group);
  app.add_option("--sarif", sarif_, "SARIF 2.1.0, at the kernel's source lines")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--comment", comment_, "Short Markdown, as for a comment on a pull request")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--annotations", annotations_, "Findings as workflow commands for a code host: github")
      ->type_name("HOST")
      ->group(group);
}

std::set<FindingKind> FindingOptions::failing() const {
  const std::vector<std::string> names = kind_names();
  std::vector<std::string> known = names;
  known.insert(known.end(), {"all", "none"});
  std::set<FindingKind> chosen;
  for (const std::string& name : fail_on_) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw BadInput("--fail-on: " + unknown_name("kind of finding", name, known));
    if ((name == "none" || name == "all") && fail_on_.size() > 1)
      throw BadInput(fmt::format("--fail-on: {} stands alone; leave the other kinds out", name));
    if (const auto kind = value_named<FindingKind>(name)) chosen.insert(*kind);
  }
  if (!chosen.empty() || (!fail_on_.empty() && fail_on_.front() == "none")) return chosen;
  for (const FindingKindRow& row : finding_kinds())
    if (row.fails || !fail_on_.empty()) chosen.insert(row.kind);
  return chosen;
}

void FindingOptions::check() const {
  failing();
  if (!annotations_.empty() && annotations_ != kGitHub)
    throw BadInput("--annotations: " + unknown_name("host", annotations_, {kGitHub}));
  for (const std::string* file : {&junit_, &sarif_, &comment_})
    if (!file->empty()) require_writable(*file);
}

void FindingOptions::write(const nlohmann::json& result, const Console& console) const {
  FirstFailure failure;
  const auto file = [&](const std::string& path, auto render) {
    if (!path.empty()) failure.attempt([&] { write_file(path, render(result)); });
  };
  if (!annotations_.empty()) console.text(render_github_annotations(result));
  file(junit_, render_junit);
  file(sarif_, render_sarif);
  file(comment_, render_pull_request);
  failure.rethrow();
}

int FindingOptions::status(const std::vector<Verification>& findings, bool allow_undecided) const {
  std::set<FindingKind> kinds = failing();
  if (allow_undecided)
    for (const FindingKindRow& row : finding_kinds())
      if (row.verdict == Verdict::undecided) kinds.erase(row.kind);
  return std::any_of(findings.begin(), findings.end(), [&](const Verification& v) {
    const std::set<FindingKind> found = kinds_of(v);
    return !v.known.value_or(false) &&
           std::any_of(found.begin(), found.end(), [&](FindingKind kind) { return kinds.contains(kind); });
  });
}

}  // namespace assay::cli
