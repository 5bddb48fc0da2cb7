#include "src/base/numerics/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>

namespace assay {
namespace {

TEST(OnThreads, DoesTheWorkOnceOnEachTheCallersAmongThem) {
  for (const uint64_t count : {1, 2, 5}) {
    std::atomic<uint64_t> calls{0}, of_caller{0};
    const auto caller = std::this_thread::get_id();
    on_threads(count, [&] { ++calls, of_caller += std::this_thread::get_id() == caller; });
    EXPECT_EQ(calls, count);
    EXPECT_EQ(of_caller, 1u);
  }
}

TEST(OnThreads, WhatTheCallersShareThrowsComesAfterTheOthersHaveEnded) {
  std::atomic<int> ended{0};
  const auto caller = std::this_thread::get_id();
  const auto work = [&] {
    if (std::this_thread::get_id() == caller) throw std::runtime_error("mine");
    std::this_thread::yield();
    ++ended;
  };
  EXPECT_THROW(on_threads(4, work), std::runtime_error);
  EXPECT_EQ(ended, 3);
}

TEST(ThreadsOrAll, AreAsManyAsTheHostHasWhereNoneAreAskedFor) {
  EXPECT_EQ(threads_or_all(3), 3u);
  EXPECT_EQ(threads_or_all(0), std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace assay
