#include "src/campaign/team/leader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "tests/team/thread_team.h"

namespace assay {
namespace leader_test {

TEST(Leader, EveryRequestGetsItsOwnAnswerFromAnyThread) {
  test::ThreadTeam team(4, [](Team& member) {
    serve(member, [&](const std::string& request) {
      std::this_thread::sleep_for(std::chrono::microseconds(std::stoi(request) % 7 * 100));
      return request + " by " + std::to_string(member.rank());
    });
  });
  std::mutex mutex;
  std::set<std::string> by;
  {
    Leader leader(team.first());
    EXPECT_EQ(leader.members(), 3);
    std::vector<std::thread> askers;
    for (int asker = 0; asker < 8; ++asker)
      askers.emplace_back([&, asker] {
        for (int i = 0; i < 20; ++i) {
          const std::string request = std::to_string(100 * asker + i), answer = leader.ask(request);
          const std::lock_guard lock(mutex);
          EXPECT_EQ(answer.substr(0, answer.find(' ')), request);
          by.insert(answer.substr(answer.find(' ')));
        }
      });
    for (std::thread& asker : askers) asker.join();
  }
  EXPECT_EQ(by.size(), 3u) << "all members took part";
}

TEST(Leader, LetsMembersGoThatWereNeverAsked) {
  std::atomic<int> ended = 0;
  {
    test::ThreadTeam team(5, [&](Team& member) {
      serve(member, [](const std::string&) { return std::string(); });
      ++ended;
    });
    const Leader leader(team.first());
  }
  EXPECT_EQ(ended, 4);
}

}  // namespace leader_test
}  // namespace assay
