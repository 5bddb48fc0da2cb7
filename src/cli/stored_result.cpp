#include "src/cli/stored_result.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "fuzz/database.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/unambiguous_json.h"
#include "src/result/trend.h"

namespace assay::cli {
namespace {

nlohmann::json parse_result(const std::string& path, const std::string& bytes) {
  try {
    return nlohmann::json::parse(bytes);
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(fmt::format("{}: neither a result in JSON nor an assay.db: {}", path, json_fault(error)));
  }
}

}  // namespace

bool is_database(const std::string& where) {
  return is_postgres_url(where) || read_file(where).starts_with("SQLite format 3");
}

nlohmann::json read_result(const std::string& path) {
  if (!is_database(path)) return parse_result(path, read_file(path));
  const auto run = Database(path, Access::read).latest_run();
  if (!run) throw BadInput(fmt::format("{}: holds no fuzz run yet", path));
  return to_json(*run);
}

void require_replaceable(const std::string& path, std::string_view kind) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none) || std::filesystem::file_size(path, none) == 0) return;
  const nlohmann::json known = nlohmann::json::parse(read_file(path), nullptr, false);
  const bool has_kind = known.is_object() && known.contains("kind") && known["kind"].is_string();
  const std::string held = has_kind ? known["kind"] : "";
  if (held == kind) return;
  throw BadInput(fmt::format(
      "--json {}: this file holds {}, which a result of kind '{}' would replace: name "
      "another file, or remove this one",
      path, held.empty() ? "no result of assay" : fmt::format("a result of kind '{}'", held), kind));
}

nlohmann::json read_trend(const std::string& path) {
  if (!is_database(path))
    throw BadInput(
        fmt::format("{}: --trend needs a fuzzing database, as 'assay fuzz --db FILE' writes it", path));
  const std::vector<StoredRun> runs = Database(path, Access::read).runs();
  if (runs.empty()) throw BadInput(fmt::format("{}: holds no fuzz run yet", path));
  return trend_of(runs);
}

Baseline read_baseline(const std::string& path) {
  if (is_database(path)) return {path, Database(path, Access::read).verifications()};
  try {
    return baseline_of(path, parse_result(path, read_file(path)));
  } catch (const BadInput& error) {
    const std::string why = error.what();
    throw BadInput(why.starts_with(path) ? why : fmt::format("{}: {}", path, why));
  }
}

}  // namespace assay::cli
