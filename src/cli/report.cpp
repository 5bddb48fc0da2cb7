// assay report RESULT.json|assay.db: a page, Markdown and JUnit from a result.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "reports/write_report.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/unambiguous_json.h"
#include "src/cli/commands.h"
#include "src/cli/stored_result.h"

namespace assay::cli {
namespace {

struct ReportCommand {
  std::string path, out = "report";
  bool trend = false;

  int run() const {
    const nlohmann::json result = trend ? read_trend(path) : read_result(path);
    try {
      write_report(result, out);
    } catch (const BadInput& error) {  // of what the document says: it does not know its file
      const std::string why = error.what();
      throw BadInput(why.starts_with("result:") ? path + why.substr(std::string("result").size()) : why);
    } catch (const nlohmann::json::exception& error) {
      throw BadInput(fmt::format("{}: a result that assay does not write so: {}", path, json_fault(error)));
    }
    fmt::print("{}\n", (std::filesystem::path(out) / "index.html").string());
    return 0;
  }
};

}  // namespace

void add_report(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("report", "Renders a result as a page, Markdown and JUnit");
  const auto options = std::make_shared<ReportCommand>();
  command
      ->add_option("RESULT", options->path,
                   "What verify, trace, check, fuzz or sweep wrote with --json, or a fuzzing database")
      ->required()
      ->type_name("RESULT.json|assay.db");
  command->add_flag("--trend", options->trend,
                    "All runs of the database: error over bound and findings, by commit");
  command->add_option("--out", options->out, "Folder to write into")->type_name("DIR")->capture_default_str();
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
