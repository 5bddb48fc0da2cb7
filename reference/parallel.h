// Independent tasks over threads. Results must not depend on which thread ran what.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "src/base/numerics/abandon.h"
#include "src/base/numerics/threads.h"

namespace assay {

/// Calls task(0) .. task(count - 1), each once, on at most `threads` threads (the caller's among them). The
/// first exception thrown is thrown again here, after the others have ended.
inline void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& task) {
  std::atomic<int64_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  auto work = [&, flag = abandon_flag] {
    const LentFlag lent(flag);
    for (int64_t i = next++; i < count; i = next++) {
      try {
        require_wanted();
        task(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  on_threads(static_cast<uint64_t>(std::clamp<int64_t>(threads, 1, std::max<int64_t>(count, 1))), work);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace assay
