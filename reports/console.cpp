#include "reports/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace assay {
namespace {

bool wants_colour(std::FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(fileno(stream)) && !(no_colour && *no_colour) &&
         !(terminal && std::string_view(terminal) == "dumb");
}

/// Columns where no terminal says, and those of the narrowest that is believed.
constexpr size_t kPaper = 100, kNarrowest = 40;
/// A column of text is not folded below so many columns.
constexpr size_t kLeastText = 16;
bool is_wide = false;

/// In lines of at most so many columns, between words; a longer word has a line of its own.
std::vector<std::string> broken(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.size() - at <= width ? text.size() : text.rfind(' ', at + width);
    if (end == text.npos || end <= at) end = std::min(text.find(' ', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(' ', end);
  }
  return lines.empty() ? std::vector<std::string>{""} : lines;
}

size_t longest_word(const std::string& text) {
  size_t longest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  return longest;
}

/// Widths of columns; the widest are narrowed while all together are wider than they should be, but never
/// below what their words need.
std::vector<size_t> widths_within(const std::vector<std::vector<std::string>>& rows, size_t most) {
  std::vector<size_t> widths, least;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    least.resize(widths.size());
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
      least[i] = std::max({least[i], std::min(row[i].size(), kLeastText), longest_word(row[i])});
    }
  }
  size_t all = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (const size_t width : widths) all += width;
  while (all > most) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > least[i] && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    if (widest == widths.size()) break;
    --widths[widest], --all;
  }
  return widths;
}

/// How many columns from `begin` on fit beside each other; at least one.
size_t columns_that_fit(const std::vector<size_t>& widths, size_t begin, size_t most) {
  size_t all = 0, n = 0;
  for (size_t i = begin; i < widths.size(); ++i, ++n) {
    all += widths[i] + (n ? 2 : 0);
    if (all > most && n > 0) break;
  }
  return n;
}

/// A row of a table, its longer texts broken.
std::vector<std::string> lines_of(const std::vector<std::string>& row, const std::vector<size_t>& shown,
                                  const std::vector<size_t>& widths, size_t first_right) {
  std::vector<std::string> lines;
  size_t column = 0;  // where the cell begins
  for (const size_t i : shown) {
    const std::vector<std::string> parts =
        i < row.size() ? broken(row[i], widths[i]) : std::vector<std::string>{""};
    for (size_t n = 0; n < parts.size(); ++n) {
      if (n == lines.size()) lines.emplace_back();
      lines[n].resize(std::max(lines[n].size(), column), ' ');
      lines[n] += i >= first_right ? fmt::format("{:>{}}", parts[n], widths[i]) : parts[n];
    }
    column += widths[i] + 2;
  }
  for (std::string& text : lines) text.erase(text.find_last_not_of(' ') + 1);
  return lines;
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

void Console::set_wide() {
  is_wide = true;
}

bool Console::is_set_wide() {
  return is_wide;
}

size_t Console::width() const {
  if (is_wide) return SIZE_MAX;
  winsize size{};
  if (isatty(fileno(stream_)) && ioctl(fileno(stream_), TIOCGWINSZ, &size) == 0 && size.ws_col >= kNarrowest)
    return size.ws_col;
  return kPaper;
}

std::string Console::command(const std::string& text) {
  constexpr std::string_view kName = "assay ";
  const char* const started = std::getenv("ASSAY_STARTED_AS");  // set by main, or the launcher
  if (!started || !*started || !text.starts_with(kName)) return text;
  return std::string(started) + " " + text.substr(kName.size());
}

void Console::prose(const std::string& text) const {
  if (!isatty(fileno(stream_))) return line(text);
  const size_t indent = std::min(text.find_first_not_of(' '), text.size());
  bool first = true;
  for (const std::string& part : broken(text.substr(indent), width() - std::min(width() / 2, indent + 2))) {
    line(std::string(indent + (first ? 0 : 2), ' ') + part);
    first = false;
  }
}

void Console::help(const std::string& text) const {
  constexpr size_t kColumn = 30;  // in which what options are begins
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string whole = text.substr(begin, end - begin);
    begin = end + 1;
    const bool is_option = whole.starts_with("  ") && whole.size() > kColumn && whole[kColumn - 1] == ' ';
    const size_t indent = is_option ? kColumn : std::min(whole.find_first_not_of(' '), whole.size());
    if (whole.size() <= width() || whole.starts_with("  assay ")) {  // an example is to be pasted
      line(whole);
      continue;
    }
    std::string before = whole.substr(0, indent);
    for (const std::string& part : broken(whole.substr(indent), width() - std::min(width() / 2, indent))) {
      line(before + part);
      before = std::string(indent, ' ');
    }
  }
}

void Console::table(const std::vector<std::vector<std::string>>& rows, size_t first_right) const {
  const std::vector<size_t> widths = widths_within(rows, width());
  const size_t first_group = columns_that_fit(widths, 0, width());
  for (size_t begin = 0; begin < widths.size();) {
    const size_t end =
        begin == 0
            ? first_group
            : begin + std::max<size_t>(
                          1, columns_that_fit(widths, begin, width() - std::min(width() / 2, widths[0] + 2)));
    if (begin > 0) line("");
    std::vector<size_t> shown;
    if (begin > 0) shown.push_back(0);  // what the row is about
    for (size_t i = begin; i < std::min(end, widths.size()); ++i) shown.push_back(i);
    for (size_t r = 0; r < rows.size(); ++r)
      for (const std::string& text : lines_of(rows[r], shown, widths, first_right))
        line(r == 0 ? styled(Style::dim, text) : text);
    begin = end;
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
