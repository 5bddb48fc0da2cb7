#include "reports/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace assay {
namespace {

bool wants_colour(std::FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(fileno(stream)) && !(no_colour && *no_colour) &&
         !(terminal && std::string_view(terminal) == "dumb");
}

constexpr const char* kCodes[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[1;32m", "\x1b[1;31m", "\x1b[1;33m"};

}  // namespace

Style style_of(Verdict verdict) {
  return verdict == Verdict::pass ? Style::good : verdict == Verdict::finding ? Style::bad : Style::doubtful;
}

Console::Console(std::FILE* stream) : stream_(stream), colour_(wants_colour(stream)) {}

std::string Console::styled(Style style, std::string_view text) const {
  if (!colour_ || style == Style::plain) return std::string(text);
  return fmt::format("{}{}\x1b[0m", kCodes[static_cast<size_t>(style)], text);
}

void Console::line(const std::string& text) const {
  fmt::print(stream_, "{}\n", text);
}

void Console::flush() const {
  std::fflush(stream_);
}

void Console::text(const std::string& lines) const {
  fmt::print(stream_, "{}", lines);
}

void Console::table(const std::vector<std::vector<std::string>>& rows, size_t first_right) const {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string text;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      if (i) text += "  ";
      text += i >= first_right ? fmt::format("{:>{}}", rows[r][i], widths[i])
                               : fmt::format("{:<{}}", rows[r][i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    line(r == 0 ? styled(Style::dim, text) : text);
  }
}

PassingLine::PassingLine(const std::string& text) : shown_(isatty(STDERR_FILENO)) {
  if (!shown_) return;
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
}

PassingLine::~PassingLine() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace assay
