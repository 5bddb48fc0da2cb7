#include "src/cli/progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace assay::cli {
namespace {

constexpr int kWidth = 30;
constexpr std::chrono::milliseconds kRedraw{100}, kBetweenLines{10'000};

/// Columns of the terminal: a longer line would wrap, and could not be taken away again.
size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressBar::ProgressBar()
    : terminal_(isatty(STDERR_FILENO) != 0), last_(terminal_ ? Clock::time_point{} : Clock::now()) {}

void ProgressBar::show(double fraction, const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_) return show_line(text);
  if (shown_ && now - last_ < kRedraw) return;
  last_ = now;
  shown_ = true;
  const int full = std::clamp(static_cast<int>(fraction * kWidth), 0, kWidth);
  const std::string line = fmt::format("[{:#<{}}{:.<{}}] {}", "", full, "", kWidth - full, text);
  fmt::print(stderr, "\r\x1b[K{}", line.substr(0, columns() - 1));
  std::fflush(stderr);
}

/// Where nothing can be taken away again, a line now and then.
void ProgressBar::show_line(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kBetweenLines) return;
  last_ = now;
  fmt::print(stderr, "assay: {}\n", text);
}

void ProgressBar::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace assay::cli
