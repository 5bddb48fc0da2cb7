// A unified diff applied to files in memory: a kernel with a known defect. A hunk that does not stand in the
// file to the letter, at its line, is bad input.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/defect.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// First line (from 0) of the old side in "@@ -12,7 +12,7 @@".
size_t old_line(const std::string& header) {
  const size_t minus = header.find('-');
  const int line = minus == header.npos ? 0 : std::atoi(header.c_str() + minus + 1);
  if (line < 1) throw BadInput(fmt::format("patch: cannot read '{}'", header));
  return static_cast<size_t>(line - 1);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> apply_patch(
    std::vector<std::pair<std::string, std::string>> files, std::string_view patch) {
  const std::vector<std::string> diff = lines_of(patch);
  std::vector<std::string> lines;
  std::pair<std::string, std::string>* file = nullptr;
  std::ptrdiff_t shift = 0;  // lines added so far in this file
  bool changed = false;
  const auto finish = [&] {
    if (file) file->second = joined(lines);
  };
  for (size_t i = 0; i < diff.size();) {
    if (diff[i].starts_with("--- ") && i + 1 < diff.size() && diff[i + 1].starts_with("+++ ")) {
      finish();
      std::string path = diff[i + 1].substr(4, diff[i + 1].find('\t') - 4);
      if (path.starts_with("b/")) path = path.substr(2);
      const auto found =
          std::find_if(files.begin(), files.end(), [&](const auto& f) { return f.first == path; });
      if (found == files.end()) throw BadInput(fmt::format("patch: no file {}", path));
      file = &*found;
      lines = lines_of(file->second);
      shift = 0;
      i += 2;
    } else if (file && diff[i].starts_with("@@ ")) {
      size_t at = old_line(diff[i]) + static_cast<size_t>(shift);
      for (++i; i < diff.size() && !diff[i].starts_with("@@ ") && !diff[i].starts_with("--- "); ++i) {
        const char kind = diff[i].empty() ? ' ' : diff[i][0];
        const std::string text = diff[i].empty() ? "" : diff[i].substr(1);
        if (kind == '+') {
          lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at++), text);
          ++shift, changed = true;
          continue;
        }
        if (kind == '\\') continue;
        if (at >= lines.size() || lines[at] != text)
          throw BadInput(fmt::format("patch: {}:{} is not '{}'", file->first, at + 1, text));
        if (kind == '-') {
          lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
          --shift, changed = true;
        } else {
          ++at;
        }
      }
    } else {
      ++i;
    }
  }
  finish();
  if (!changed) throw BadInput("patch: it changes nothing");
  return files;
}

}  // namespace assay
