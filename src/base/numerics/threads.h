// Work that several threads share.
#pragma once
#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace assay {

/// Calls work() on `count` threads at once, the caller's among them, and returns when all have; on fewer
/// where the system allows no more. What `work` throws on the caller's thread comes once the others have
/// ended; on theirs it must not throw.
template <class Work>
void on_threads(uint64_t count, const Work& work) {
  std::vector<std::jthread> others;
  try {
    for (uint64_t t = 1; t < count; ++t) others.emplace_back([&] { work(); });
  } catch (const std::system_error&) {  // the system's limit of threads
  }
  work();
}

/// As many as asked for; 0: as the host has.
inline uint64_t threads_or_all(int asked) {
  return asked > 0 ? static_cast<uint64_t>(asked) : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace assay
