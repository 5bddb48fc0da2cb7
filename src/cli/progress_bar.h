// A bar on standard error, redrawn at most ten times a second; where standard error is no terminal a line
// every ten seconds.
#pragma once
#include <chrono>
#include <string>

namespace assay::cli {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `fraction` 0 to 1; `text` stands after the bar.
  void show(double fraction, const std::string& text);
  /// Takes the bar away, so that a line can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void show_line(const std::string& text);

  const bool terminal_;
  bool shown_ = false;
  Clock::time_point last_;
};

}  // namespace assay::cli
