#include "src/base/program/source_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "src/base/ptx/inlined_frames.h"

namespace assay {
namespace {

std::string folder_of(const std::string& frame) {
  const size_t slash = frame.rfind('/');
  return slash == std::string::npos ? "" : frame.substr(0, slash);
}

const std::string& file_or_function(const SourceLocation& where) {
  return where.file.empty() ? where.function : where.file;
}

}  // namespace

std::string source_place(const SourceLocation& where) {
  if (where.line <= 0) {
    const std::string& of = file_or_function(where);
    return where.ptx_line > 0 ? fmt::format("{}, PTX line {}", of, where.ptx_line) : of;
  }
  const std::string line = fmt::format("{}:{}", where.file, where.line);
  const std::vector<std::string>& frames = where.frames;
  if (frames.empty()) return line;
  // A line of the toolkit is no frame: all of them are around it.
  const auto known = std::find(frames.begin(), frames.end(), line);
  const auto here = known == frames.end() ? frames.begin() : known;
  const std::string own = folder_of(frames.back());
  const auto call = std::find_if(here, frames.end(), [&](const auto& f) { return folder_of(f) == own; });
  return *call == line ? line : fmt::format("{}, in {}", *call, line);
}

std::string place_with_ptx_line(const SourceLocation& where) {
  return fmt::format("{} (PTX line {})", where.line > 0 ? source_place(where) : file_or_function(where),
                     where.ptx_line);
}

SourceLocation own_place(const SourceLocation& where) {
  const std::vector<std::string>& frames = where.frames;  // none of them is the toolkit's
  if (frames.empty() || !ptx::is_of_toolkit(where.file)) return where;
  SourceLocation own = where;
  const size_t colon = frames.front().rfind(':');
  own.file = frames.front().substr(0, colon);
  std::from_chars(frames.front().data() + colon + 1, frames.front().data() + frames.front().size(), own.line);
  return own;
}

std::string place_key(const SourceLocation& toolkit_or_own) {
  const SourceLocation where = own_place(toolkit_or_own);
  return where.line > 0 ? fmt::format("{}:{}", where.file, where.line)
                        : fmt::format("{}:ptx:{}", file_or_function(where), where.ptx_line);
}

bool is_nowhere(const SourceLocation& where) {
  return where.file.empty() && where.function.empty();
}

}  // namespace assay
