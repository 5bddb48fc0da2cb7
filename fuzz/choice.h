// Drawing with RapidCheck: from any thread, weighted choices inside a draw, and random streams by number.
#pragma once
#include <rapidcheck.h>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/kernel.h"

namespace assay {

template <typename T>
using Weighted = std::vector<std::pair<size_t, T>>;

inline std::mutex one_draw_at_a_time;

/// What `draw` returns where pick, between and chance in it read the stream `random`. RapidCheck keeps the
/// draw that runs in static stacks, which all threads share: there is one draw at a time in the process.
template <typename Draw>
auto drawn_from(const rc::Random& random, const Draw& draw) {
  const std::lock_guard lock(one_draw_at_a_time);
  return rc::gen::exec(draw)(random, rc::kNominalSize).value();
}

/// One of the values, in proportion to its weight.
template <typename T>
T pick(const Weighted<T>& choices) {
  size_t total = 0;
  for (const auto& choice : choices) total += choice.first;
  size_t at = *rc::gen::inRange<size_t>(0, total);
  for (const auto& choice : choices) {
    if (at < choice.first) return choice.second;
    at -= choice.first;
  }
  return choices.back().second;
}

/// Both ends included.
inline int64_t between(int64_t low, int64_t high) {
  return *rc::gen::inRange<int64_t>(low, high + 1);
}
inline bool chance(int percent) {
  return between(1, 100) <= percent;
}

/// SplitMix64's finaliser: neighbouring indices give unrelated streams.
inline uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

inline bool refused(const Case& c, const Kernel& kernel) {
  return kernel.refuses && !kernel.refuses(resolve_unchecked(c, find_operator(kernel.operator_name))).empty();
}

/// Case number `index` of the stream `seed`: the first that `draw` returns and the kernel takes.
template <typename Draw>
Case first_accepted(const Draw& draw, const Kernel& kernel, uint64_t seed, uint64_t index) {
  // A kernel that refuses nearly every case still ends the search; such a case then counts as rejected.
  constexpr uint64_t kMaxAttempts = 1000;
  Case c;
  for (uint64_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    c = drawn_from(rc::Random(mixed(mixed(seed) + index + (attempt << 40))), draw);
    if (!refused(c, kernel)) break;
  }
  return c;
}

}  // namespace assay
