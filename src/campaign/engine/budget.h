// What a campaign may spend, and whether someone wants it to end.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace assay {

class Budget {
 public:
  /// `time_s`: seconds from now on; 0: no limit. `interrupted` is set from outside, as by a signal
  /// (interrupt.h); null: nobody does.
  Budget(double time_s, const std::atomic<int>* interrupted) : time_s_(time_s), interrupted_(interrupted) {}

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  bool timed() const { return time_s_ > 0; }
  bool interrupted() const { return interrupted_ && *interrupted_ != 0; }
  /// No job should begin any more.
  bool over() const { return interrupted() || (timed() && seconds() >= time_s_); }
  /// Of the time, 0 to 1, or where that has no limit of the jobs, `done` of `all`.
  double fraction(int64_t done, int64_t all) const {
    return timed() ? std::min(1.0, seconds() / time_s_)
                   : static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, all));
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double time_s_;
  const std::atomic<int>* interrupted_;
};

}  // namespace assay
