#include "reports/write_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "reports/csv.h"
#include "reports/html.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/markdown_sweep.h"
#include "reports/markdown_trend.h"
#include "reports/markup.h"
#include "reports/sarif.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"

namespace assay {
namespace {

/// (name, text) of every form of the result. A sweep judges no single case: it has no JUnit and no SARIF; a
/// trend has neither of them.
std::vector<std::pair<std::string, std::string>> files_of(const nlohmann::json& result) {
  std::vector<std::pair<std::string, std::string>> files = {
      {"index.html", render_html(result)},
      {"table.csv", render_csv(result)},
      {"result.json", result.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"},
  };
  if (const std::string kind = result_kind(result); kind == "sweep" || kind == "trend") {
    IllustratedText text = kind == "sweep" ? sweep_markdown(result) : trend_markdown(result);
    files.emplace_back("report.md", std::move(text.markdown));
    std::move(text.pictures.begin(), text.pictures.end(), std::back_inserter(files));
    return files;
  }
  files.emplace_back("report.md", render_markdown(result));
  files.emplace_back("junit.xml", render_junit(result));
  files.emplace_back("findings.sarif", render_sarif(result));
  return files;
}

}  // namespace

void write_report(const nlohmann::json& result, const std::filesystem::path& out_dir) {
  const std::vector<std::pair<std::string, std::string>> files = files_of(result);
  std::error_code failed;
  std::filesystem::create_directories(out_dir, failed);
  if (failed)
    throw BadInput(fmt::format("{}: cannot make this folder ({}); name another with --out or --report",
                               out_dir.string(), failed.message()));
  for (const auto& [name, text] : files) write_file((out_dir / name).string(), text);
}

}  // namespace assay
