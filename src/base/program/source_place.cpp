#include "src/base/program/source_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

std::string folder_of(const std::string& frame) {
  const size_t slash = frame.rfind('/');
  return slash == std::string::npos ? "" : frame.substr(0, slash);
}

}  // namespace

std::string source_place(const SourceLocation& where) {
  if (where.file.empty()) return fmt::format("{}, PTX line {}", where.function, where.ptx_line);
  const std::string line = fmt::format("{}:{}", where.file, where.line);
  const std::vector<std::string>& frames = where.frames;
  const auto here = std::find(frames.begin(), frames.end(), line);
  if (here == frames.end()) return line;
  const std::string own = folder_of(frames.back());
  const auto call = std::find_if(here, frames.end(), [&](const auto& f) { return folder_of(f) == own; });
  return call == here ? line : fmt::format("{}, in {}", *call, line);
}

std::string place_with_ptx_line(const SourceLocation& where) {
  return fmt::format("{} (PTX line {})", where.file.empty() ? where.function : source_place(where),
                     where.ptx_line);
}

}  // namespace assay
