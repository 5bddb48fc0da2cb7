// assay report RESULT.json|assay.db: a page, Markdown and JUnit from a result.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "fuzz/database.h"
#include "reports/result.h"
#include "reports/write_report.h"
#include "src/cli/commands.h"
#include "src/numerics/bad_input.h"
#include "src/tensor/tensor_file.h"

namespace assay::cli {
namespace {

bool is_sqlite(const std::string& bytes) {
  return bytes.starts_with("SQLite format 3");
}

nlohmann::json read_result(const std::string& path) {
  const std::string bytes = read_file(path);
  if (is_sqlite(bytes)) {
    const auto run = Database(path).latest_run();
    if (!run) throw BadInput(fmt::format("{}: holds no fuzz run yet", path));
    return to_json(*run);
  }
  try {
    return nlohmann::json::parse(bytes);
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(fmt::format("{}: neither a result in JSON nor an assay.db: {}", path, error.what()));
  }
}

struct ReportCommand {
  std::string path, out = "report";

  int run() const {
    write_report(read_result(path), out);
    fmt::print("{}\n", (std::filesystem::path(out) / "index.html").string());
    return 0;
  }
};

}  // namespace

void add_report(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("report", "Renders a result as a page, Markdown and JUnit");
  const auto options = std::make_shared<ReportCommand>();
  command->add_option("RESULT", options->path, "A result written with --json, or a fuzzing database")
      ->required()
      ->type_name("RESULT.json|assay.db");
  command->add_option("--out", options->out, "Folder to write into")->type_name("DIR")->capture_default_str();
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
