#include "src/cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace assay::cli {
namespace {

constexpr int kWidth = 30;
constexpr std::chrono::milliseconds kRedraw{100};

}  // namespace

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressBar::show(double fraction, const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || (shown_ && now - last_ < kRedraw)) return;
  last_ = now;
  shown_ = true;
  const int full = std::clamp(static_cast<int>(fraction * kWidth), 0, kWidth);
  fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}] {}", "", full, "", kWidth - full, text);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace assay::cli
