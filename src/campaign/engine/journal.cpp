#include "src/campaign/engine/journal.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "src/base/numerics/bad_input.h"

namespace assay {

using nlohmann::json;

namespace {

/// Texts may hold a source's bytes, which need not be UTF-8.
std::string line_of(const json& entry) {
  return entry.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

Journal::Journal(std::filesystem::path path, std::string kind, const std::string& identity)
    : path_(std::move(path)), kind_(std::move(kind)) {
  if (path_.empty()) return;
  if (std::filesystem::exists(path_)) read(identity);
  // Written anew, so that a line cut off by a kill is gone before the next one is appended.
  const std::filesystem::path fresh = path_.string() + ".new";
  file_.open(fresh, std::ios::binary);
  file_ << line_of({{kind_, identity}});
  for (const auto& [job, record] : std::exchange(records_, {})) add(job, record);
  std::error_code failed;
  if (file_.flush()) std::filesystem::rename(fresh, path_, failed);
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
  if (!first.is_object() || !first.contains(kind_))
    throw BadInput(fmt::format("{}: is no journal of a campaign '{}'; remove it or name another --json",
                               path_.string(), kind_));
  if (first[kind_] != identity)
    throw BadInput(
        fmt::format("{}: holds another campaign '{}', or one by another build of this program; remove it or "
                    "name another --json",
                    path_.string(), kind_));
  while (std::getline(in, line)) {
    json entry = parsed();
    if (!entry.is_object()) break;
    records_[entry.at("job").get<std::string>()] = std::move(entry.at("record"));
  }
}

const json* Journal::find(const std::string& job) const {
  const auto found = records_.find(job);
  return found == records_.end() ? nullptr : &found->second;
}

void Journal::add(const std::string& job, const json& record) {
  if (path_.empty()) return;
  file_ << line_of({{"job", job}, {"record", record}});
  if (!file_.flush())
    throw BadInput(fmt::format("{}: cannot write this file; check its free space", path_.string()));
  records_[job] = record;
}

void Journal::remove() {
  if (path_.empty()) return;
  file_.close();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

Task journaled(Journal& journal, std::string job, std::function<json()> work,
               std::function<void(const json&)> merge) {
  if (const json* record = journal.find(job))
    return [record, merge = std::move(merge)] { return Merge([record, merge] { merge(*record); }); };
  return [&journal, job = std::move(job), work = std::move(work), merge = std::move(merge)] {
    return Merge([&journal, job, record = work(), merge] {
      if (record.is_null()) return;
      journal.add(job, record);
      merge(record);
    });
  };
}

}  // namespace assay
