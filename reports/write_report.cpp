#include "reports/write_report.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "reports/html.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/sarif.h"
#include "src/numerics/bad_input.h"

namespace assay {

void write_report(const nlohmann::json& result, const std::filesystem::path& out_dir) {
  const std::vector<std::pair<const char*, std::string>> files = {
      {"index.html", render_html(result)},
      {"report.md", render_markdown(result)},
      {"junit.xml", render_junit(result)},
      {"findings.sarif", render_sarif(result)},
      {"result.json", result.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"},
  };
  std::error_code failed;
  std::filesystem::create_directories(out_dir, failed);
  if (failed)
    throw BadInput(fmt::format("{}: cannot make this folder ({}); name another with --out or --report",
                               out_dir.string(), failed.message()));
  for (const auto& [name, text] : files) {
    std::ofstream file(out_dir / name, std::ios::binary);
    file << text;
    if (!file.flush())
      throw BadInput(fmt::format("{}: cannot write this file; check its folder's rights and free space",
                                 (out_dir / name).string()));
  }
}

}  // namespace assay
