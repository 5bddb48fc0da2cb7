#include "src/campaign/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "src/campaign/engine/budget.h"
#include "src/campaign/engine/in_order.h"

namespace assay {
namespace {

TEST(Engine, DoesEveryJobOnceAndMergesOneAtATime) {
  for (const int workers : {1, 4}) {
    Engine engine;
    int begun = 0, inside = 0;
    std::multiset<int> merged;
    engine.run(workers, [&]() -> Task {
      EXPECT_EQ(inside++, 0);
      --inside;
      if (begun == 500) return nullptr;
      return [&, i = begun++] {
        return Merge([&, i] {
          EXPECT_EQ(inside++, 0);
          merged.insert(i);
          --inside;
        });
      };
    });
    EXPECT_EQ(merged.size(), 500u);
    EXPECT_EQ(std::set<int>(merged.begin(), merged.end()).size(), 500u);
  }
}

/// Jobs come in batches; each knows the sum of the batches before it.
int64_t in_batches(int workers) {
  Engine engine;
  InOrder<int64_t> records;
  int64_t begun = 0, sum = 0, known = 0;
  engine.run(workers, [&]() -> Task {
    if (begun == 60) return nullptr;
    if (begun % 6 == 0) {
      if (records.taken() < begun) return nullptr;  // more may come when those in flight are merged
      known = sum;
    }
    return [&, i = begun++, now = known] {
      return Merge([&, i, record = (now * 31 + i) % 1009] {
        records.add(i, record);
        while (const auto next = records.next()) sum = (sum * 7 + *next) % 100'003;
      });
    };
  });
  EXPECT_EQ(records.taken(), 60);
  return sum;
}

TEST(Engine, WaitsForRecordsThatTheNextJobsDependOn) {
  const int64_t one = in_batches(1);
  for (const int workers : {2, 5}) EXPECT_EQ(in_batches(workers), one);
}

/// Waits for `done`, not for ever.
bool comes(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return done();
}

TEST(Engine, AWorkerThatFoundNothingToDoWorksAgain) {
  Engine engine;
  int begun = 0, merged = 0;
  std::atomic<int> idle = 0, together = 0;
  engine.run(2, [&]() -> Task {
    if (begun == 3 || (begun == 1 && merged == 0)) {
      ++idle;
      return nullptr;
    }
    return [&, first = begun++ == 0] {
      if (!first) ++together;
      EXPECT_TRUE(comes([&] { return first ? idle > 0 : together == 2; }));
      return Merge([&] { ++merged; });
    };
  });
  EXPECT_EQ(merged, 3);
}

TEST(Engine, EndsWithTheFirstExceptionOfATaskAMergeOrTheChoice) {
  for (const int where : {0, 1, 2}) {
    Engine engine;
    int begun = 0;
    std::atomic<int> done = 0;
    try {
      engine.run(3, [&]() -> Task {
        if (begun == 1000) return nullptr;
        if (where == 0 && begun == 10) throw std::runtime_error("here");
        return [&, i = begun++] {
          if (where == 1 && i == 10) throw std::runtime_error("here");
          ++done;
          return Merge([where, i] {
            if (where == 2 && i == 10) throw std::runtime_error("here");
          });
        };
      });
      ADD_FAILURE() << "nothing was thrown, " << where;
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "here");
    }
    EXPECT_LT(done, 1000) << where;
  }
}

TEST(Engine, AnInterruptionEndsWithTheJobsInFlightAndLosesNoRecord) {
  Engine engine;
  std::atomic<int> signal = 0;
  const Budget budget(0, &signal);
  int begun = 0, merged = 0;
  engine.run(4, [&]() -> Task {
    if (budget.over()) return nullptr;
    if (++begun == 25) signal = 2;
    return [&] { return Merge([&] { ++merged; }); };
  });
  EXPECT_EQ(begun, 25);
  EXPECT_EQ(merged, 25);
}

TEST(Engine, ATaskMayLookAtWhatMergesChange) {
  Engine engine;
  int begun = 0;
  int64_t sum = 0, seen = 0;
  engine.run(4, [&]() -> Task {
    if (begun++ >= 200) return nullptr;
    return [&] {
      engine.exclusively([&] { seen = std::max(seen, sum); });
      return Merge([&] { ++sum; });
    };
  });
  EXPECT_EQ(sum, 200);
  EXPECT_LT(seen, 200);
}

}  // namespace
}  // namespace assay
