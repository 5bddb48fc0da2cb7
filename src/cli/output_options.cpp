#include "src/cli/output_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "reports/write_report.h"
#include "src/base/tensor/tensor_file.h"
#include "src/cli/first_failure.h"
#include "src/cli/stored_result.h"

namespace assay::cli {

void OutputOptions::add_to(CLI::App& app) {
  const std::string group = "Results";
  app.add_option("--json", json_, "Result as JSON (reports/schema.json); - for standard output")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--report", report_, "Folder for a page, Markdown and JUnit")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--allow-undecided", allow_undecided_,
               "Exit with 0 where nothing but undecided elements was seen")
      ->group(group);
}

void OutputOptions::check(std::string_view kind) const {
  if (!json_.empty() && json_ != "-") {
    require_writable(json_);
    if (!kind.empty()) require_replaceable(json_, kind);
  }
  if (!report_.empty()) require_writable_folder(report_);
}

void OutputOptions::write(const nlohmann::json& result) const {
  const auto replace = nlohmann::json::error_handler_t::replace;  // a name of a file may be no UTF-8
  FirstFailure failure;
  if (json_ == "-") fmt::print("{}\n", result.dump(1, ' ', false, replace));
  if (!json_.empty() && json_ != "-")
    failure.attempt([&] { write_file(json_, result.dump(1, ' ', false, replace) + "\n"); });
  if (!report_.empty()) failure.attempt([&] { write_report(result, report_); });
  failure.rethrow();
}

std::filesystem::path OutputOptions::beside_json(const std::string& ending) const {
  return json_.empty() || json_ == "-" ? "" : json_ + ending;
}

Console OutputOptions::console() const {
  return Console(json_ == "-" ? stderr : stdout);
}

int OutputOptions::status(Verdict verdict) const {
  if (verdict == Verdict::pass) return 0;
  if (verdict == Verdict::domain) return 2;
  return verdict == Verdict::undecided && allow_undecided_ ? 0 : 1;
}

}  // namespace assay::cli
