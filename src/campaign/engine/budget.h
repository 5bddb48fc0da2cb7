// What a campaign may spend, and whether someone wants it to end.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

namespace assay {

class Budget {
 public:
  /// `time_s`: seconds from now on; 0: no limit. `interrupted` is set from outside, as by a signal
  /// (interrupt.h); null: nobody does. `free_s`: seconds so far that are not counted, as of compiling; null:
  /// all are.
  Budget(double time_s, const std::atomic<int>* interrupted, std::function<double()> free_s = nullptr)
      : time_s_(time_s), interrupted_(interrupted), free_s_(std::move(free_s)) {
    if (free_s_) free_before_s_ = free_s_();
  }

  /// Since the beginning, by the clock.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  bool timed() const { return time_s_ > 0; }
  bool interrupted() const { return interrupted_ && *interrupted_ != 0; }
  /// No job should begin any more.
  bool over() const { return interrupted() || late_by() >= 0; }
  /// Seconds beyond the time, below 0 before that is over.
  double late_by() const { return timed() ? spent() - time_s_ : -HUGE_VAL; }
  /// That are left until the time is over by at most a share `beyond` of it; without a limit of time any
  /// number.
  double left(double beyond) const { return timed() ? beyond * time_s_ - late_by() : HUGE_VAL; }
  /// Of the time, 0 to 1, or where that has no limit of the jobs, `done` of `all`.
  double fraction(int64_t done, int64_t all) const {
    return timed() ? std::clamp(spent() / time_s_, 0.0, 1.0)
                   : static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, all));
  }

 private:
  double spent() const { return seconds() - (free_s_ ? free_s_() - free_before_s_ : 0); }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double time_s_;
  const std::atomic<int>* interrupted_;
  std::function<double()> free_s_;
  double free_before_s_ = 0;
};

}  // namespace assay
