#include "src/plan/source_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace assay {
namespace {

constexpr std::string_view kBetween = " < ";

std::string folder_of(const std::string& frame) {
  const size_t slash = frame.rfind('/');
  return slash == std::string::npos ? "" : frame.substr(0, slash);
}

}  // namespace

std::string joined_frames(const std::vector<std::string>& frames) {
  return fmt::format("{}", fmt::join(frames, kBetween));
}

std::vector<std::string> frames_of(const SourceLocation& where) {
  std::vector<std::string> frames;
  for (size_t from = 0, to = 0; !where.called_at.empty() && to != std::string::npos; from = to + kBetween.size()) {
    to = where.called_at.find(kBetween, from);
    frames.push_back(where.called_at.substr(from, to - from));
  }
  return frames;
}

std::string source_place(const SourceLocation& where) {
  if (where.file.empty()) return fmt::format("{}, PTX line {}", where.function, where.ptx_line);
  const std::string line = fmt::format("{}:{}", where.file, where.line);
  const std::vector<std::string> frames = frames_of(where);
  const auto here = std::find(frames.begin(), frames.end(), line);
  if (here == frames.end()) return line;
  const std::string own = folder_of(frames.back());
  const auto call = std::find_if(here, frames.end(), [&](const auto& f) { return folder_of(f) == own; });
  return call == here ? line : fmt::format("{}, in {}", *call, line);
}

}  // namespace assay
