#include "src/cli/check_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "src/base/numerics/bad_input.h"

namespace assay::cli {

void CheckOptions::add_to(CLI::App& app) {
  app_ = &app;
  std::string names;
  for (const vm::CheckRow& row : vm::check_rows()) names += ", " + std::string(row.name);
  const std::string group = "Checks on the machine";
  app.add_option("--checks", checks_,
                 "all (for runs of at most 200 million lane-instructions), none, or some of" +
                     names.substr(1) + " (whatever the run costs)")
      ->group(group)
      ->capture_default_str();
  app.add_flag(
         "--strict-reads", strict_reads_,
         "Trap at the first read of a register or byte that was never written, whether it matters or not")
      ->group(group);
  app.add_option("--formula", formula_,
                 "Whether the formula is right, by runs beside exact arithmetic: auto (for runs of at most "
                 "100 million lane-instructions), always, never")
      ->group(group)
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_option("--rounding", rounding_,
                 "Whether the declared roundings explain the errors, by statistics: auto (where it takes "
                 "seconds), always, never")
      ->group(group)
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
}

vm::Checks CheckOptions::parsed() const {
  vm::Checks checks = vm::parse_checks(checks_);
  checks.strict_reads = strict_reads_;
  return checks;
}

uint64_t CheckOptions::most_instructions() const {
  return checks_ != "all" || strict_reads_ ? UINT64_MAX : VerifyOptions().check_instructions;
}

std::string CheckOptions::replay_suffix() const {
  return (checks_ == "all" ? "" : " --checks " + checks_) + (strict_reads_ ? " --strict-reads" : "");
}

void CheckOptions::refuse_of_claims(const std::string& launch_file) const {
  for (const char* option : {"--formula", "--rounding"})
    if (app_->count(option) > 0)
      throw BadInput(
          fmt::format("{}: {} is of kernels with a claim, and a launch file has none; leave it out",
                      launch_file, option));
}

void CheckOptions::apply(VerifyOptions& options) const {
  options.checks = parsed();
  options.check_instructions = most_instructions();
  options.rounding_work = rounding_ == "auto" ? kUsualRoundingWork : rounding_ == "always" ? HUGE_VAL : 0;
  options.power = true;
  if (formula_ != "auto") options.formula_instructions = formula_ == "always" ? UINT64_MAX : 0;
}

}  // namespace assay::cli
