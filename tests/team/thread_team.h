// A team whose members are threads of the test.
#pragma once
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "src/campaign/team/team.h"

namespace assay::test {

class ThreadTeam {
 public:
  /// `size` members; each but the first runs `work` on a thread of its own.
  ThreadTeam(int size, std::function<void(Team&)> work);
  /// Waits until all have ended.
  ~ThreadTeam();
  Team& first() { return *members_[0]; }

 private:
  std::vector<std::unique_ptr<Team>> members_;
  std::vector<std::thread> threads_;
};

}  // namespace assay::test
