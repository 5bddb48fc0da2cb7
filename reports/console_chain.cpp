#include "reports/console_chain.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/program/source_place.h"

namespace assay {

std::string short_place(const SourceLocation& where) {
  return where.line > 0 ? fmt::format("{}:{}", where.file.substr(where.file.rfind('/') + 1), where.line)
                        : place_with_ptx_line(where);
}

void print_calls(const Console& console, const SourceLocation& where) {
  const std::vector<std::string>& frames = where.frames;
  const auto own = std::find(frames.begin(), frames.end(), fmt::format("{}:{}", where.file, where.line));
  if (own == frames.end() || own + 1 == frames.end()) return;
  std::string calls;
  for (auto call = own + 1; call != frames.end(); ++call) calls += (calls.empty() ? "" : ", ") + *call;
  console.line(console.styled(Style::dim, fmt::format("    {} inlined at {}", *own, calls)));
}

void print_frames(const Console& console, const SourceLocation& where) {
  const std::vector<std::string>& frames = where.frames;
  const auto own = std::find(frames.begin(), frames.end(), fmt::format("{}:{}", where.file, where.line));
  const bool toolkit = own == frames.end();  // whose lines are no frames: all are around it
  for (auto inner = toolkit ? frames.begin() : own; inner != frames.begin();)
    console.line(console.styled(Style::dim, fmt::format("    inside it {}", *--inner)));
  for (auto call = toolkit ? frames.begin() : own + 1; call != frames.end(); ++call)
    console.line(console.styled(Style::dim, fmt::format("    inlined at {}", *call)));
}

}  // namespace assay
