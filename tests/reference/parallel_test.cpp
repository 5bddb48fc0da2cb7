#include "reference/parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace assay {
namespace {

TEST(ParallelFor, runs_every_task_once_whatever_the_threads) {
  for (int threads : {1, 2, 5})
    for (int64_t count : {0, 1, 4, 100}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      parallel_for(count, threads, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
      for (const auto& n : runs) EXPECT_EQ(n, 1);
    }
}

TEST(ParallelFor, passes_an_exception_on_to_the_caller) {
  EXPECT_THROW(parallel_for(10, 3,
                            [](int64_t i) {
                              if (i == 4) throw std::runtime_error("task 4");
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace assay
