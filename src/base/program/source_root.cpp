#include "src/base/program/source_root.h"

#include <fmt/format.h>

#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;
std::optional<fs::path> chosen;

/// Of a linked work tree and of a submodule `.git` is a file.
fs::path usual_root() {
  std::error_code failed;
  const fs::path here = fs::current_path(failed);
  for (fs::path at = here; !at.empty(); at = at.parent_path()) {
    if (fs::exists(at / ".git", failed)) return at;
    if (at == at.parent_path()) break;
  }
  return here;
}

bool is_file(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed);
}

fs::path resolved(const fs::path& path) {
  std::error_code failed;
  const fs::path real = fs::weakly_canonical(path, failed);
  return failed ? path.lexically_normal() : real;
}

/// Of a path without its first component.
fs::path tail_of(const fs::path& path) {
  fs::path tail;
  for (auto part = path.empty() ? path.end() : std::next(path.begin()); part != path.end(); ++part)
    tail /= *part;
  return tail;
}

}  // namespace

fs::path source_root() {
  const std::lock_guard lock(mutex);
  return chosen ? *chosen : usual_root();
}

void choose_source_root(const fs::path& folder) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed))
    throw BadInput(fmt::format("--source-root {}: no folder; give the one that holds the kernels' sources",
                               folder.string()));
  const std::lock_guard lock(mutex);
  chosen = resolved(folder);
}

std::string source_name(const std::string& file) {
  if (!file.starts_with('/')) return file;
  const fs::path root = resolved(source_root());
  const auto below = [&](const fs::path& path) -> std::string {
    const fs::path name = path.lexically_relative(root);
    return name.empty() || name.begin()->string() == ".." || name == "." ? "" : name.string();
  };
  const fs::path path = fs::path(file).lexically_normal();
  for (const fs::path& at : {path, resolved(path)})
    if (const std::string name = below(at); !name.empty()) return name;
  if (is_file(path)) return file;
  for (fs::path tail = tail_of(path.relative_path()); !tail.empty(); tail = tail_of(tail))
    if (is_file(root / tail)) return tail.string();
  return file;
}

std::string with_source_names(const std::string& ptx) {
  constexpr std::string_view kDirective = ".file";
  std::string out;
  out.reserve(ptx.size());
  for (size_t begin = 0; begin < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', begin), ptx.size() - 1) + 1;
    const std::string_view line = std::string_view(ptx).substr(begin, end - begin);
    begin = end;
    const size_t word = line.find_first_not_of(" \t"), open = line.find('"'), close = line.rfind('"');
    if (word == line.npos || !line.substr(word).starts_with(kDirective) || close == open) {
      out += line;
      continue;
    }
    const std::string name(line.substr(open + 1, close - open - 1));
    out.append(line.substr(0, open + 1)).append(source_name(name)).append(line.substr(close));
  }
  return out;
}

}  // namespace assay
