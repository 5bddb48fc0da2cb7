// A time after which a thread's work is given up (abandon.h).
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "src/base/numerics/abandon.h"

namespace assay {

/// While it lives this thread's work is given up after so many seconds, or where the flag says so that the
/// thread was lent before.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds)
      : lent_(&over_), watch_([this, seconds](const std::stop_token& stop) { watch(seconds, stop); }) {}

 private:
  static constexpr double kLongest = 1e9;  ///< a clock's nanoseconds hold it
  static constexpr std::chrono::milliseconds kLook{20};

  void watch(double seconds, const std::stop_token& stop) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::min(seconds, kLongest)));
    std::unique_lock lock(mutex_);
    while (Clock::now() < end && !(before_ && *before_ != 0)) {
      wake_.wait_until(lock, stop, std::min(end, Clock::now() + kLook), [] { return false; });
      if (stop.stop_requested()) return;
    }
    over_ = 1;
  }

  const std::atomic<int>* before_ = abandon_flag;
  std::atomic<int> over_{0};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  LentFlag lent_;
  std::jthread watch_;  ///< ends before the others
};

}  // namespace assay
