// Independent tasks over threads. Results must not depend on which thread ran what.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "src/base/numerics/abandon.h"

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
  std::vector<std::thread> pool;
  try {
    for (int64_t i = 1; i < std::min<int64_t>(threads, count); ++i) pool.emplace_back(work);
  } catch (const std::system_error&) {  // the system's limit of threads: fewer do the same
  }
  work();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace assay
