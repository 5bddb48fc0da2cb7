#include "reports/console_chain.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

std::string short_place(const SourceLocation& where) {
  const std::string file = where.file.substr(where.file.rfind('/') + 1);
  return where.line > 0 ? fmt::format("{}:{}", file, where.line)
                        : fmt::format("{} PTX line {}", file, where.ptx_line);
}

void print_frames(const Console& console, const SourceLocation& where) {
  const std::vector<std::string>& frames = where.frames;
  auto call = std::find(frames.begin(), frames.end(), fmt::format("{}:{}", where.file, where.line));
  for (call += call != frames.end(); call != frames.end(); ++call)
    console.line(console.styled(Style::dim, fmt::format("    inlined at {}", *call)));
}

}  // namespace assay
