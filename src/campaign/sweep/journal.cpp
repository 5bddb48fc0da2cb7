#include "src/campaign/sweep/journal.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "src/base/numerics/bad_input.h"

namespace assay {

using nlohmann::json;

Journal::Journal(std::filesystem::path path, const std::string& identity) : path_(std::move(path)) {
  if (std::filesystem::exists(path_)) read(identity);
  // Written anew, so that a line cut off by a kill is gone before the next one is appended.
  const std::filesystem::path fresh = path_.string() + ".new";
  std::ofstream out(fresh, std::ios::binary);
  out << json{{"sweep", identity}}.dump() << "\n";
  const auto kept = std::exchange(points_, {});
  file_ = std::move(out);
  for (const auto& [point, cells] : kept) add(point, cells);
  std::error_code failed;
  if (file_) std::filesystem::rename(fresh, path_, failed);
  if (!file_ || failed)
    throw BadInput(
        fmt::format("{}: cannot write this file; check its folder's rights and free space", path_.string()));
}

void Journal::read(const std::string& identity) {
  std::ifstream in(path_, std::ios::binary);
  std::string line;
  const auto parsed = [&line] { return json::parse(line, nullptr, false); };
  const bool header = static_cast<bool>(std::getline(in, line));
  const json first = header ? parsed() : json();
  if (!first.is_object() || !first.contains("sweep"))
    throw BadInput(
        fmt::format("{}: is no journal of a sweep; remove it or name another --json", path_.string()));
  if (first["sweep"] != identity)
    throw BadInput(fmt::format(
        "{}: holds another sweep, or one by another build of this program; remove it or name another "
        "--json",
        path_.string()));
  while (std::getline(in, line)) {
    const json entry = parsed();
    if (!entry.is_object()) break;
    std::vector<SweepCell> cells;
    for (const json& cell : entry.at("cells")) cells.push_back(sweep_cell_from_json(cell));
    points_[entry.at("point").get<int64_t>()] = std::move(cells);
  }
}

void Journal::add(int64_t point, const std::vector<SweepCell>& cells) {
  json list = json::array();
  for (const SweepCell& cell : cells) list.push_back(to_json(cell));
  file_ << json{{"point", point}, {"cells", std::move(list)}}.dump() << "\n";
  if (!file_.flush())
    throw BadInput(fmt::format("{}: cannot write this file; check its free space", path_.string()));
  points_[point] = cells;
}

void Journal::remove() {
  file_.close();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace assay
