// Work for the other members of a team: asked by the first one's threads, done there.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/campaign/team/team.h"

namespace assay {

class Leader {
 public:
  /// The team outlives it, and is used by nobody else meanwhile.
  explicit Leader(Team&);
  /// Lets the others go: their serve() returns.
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  /// How many requests can be under way at once.
  int members() const { return team_.size() - 1; }
  /// Gives it to a member that has nothing to do, and waits for the answer. From any thread.
  std::string ask(std::string request);

 private:
  void carry();

  Team& team_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> free_;
  std::deque<TeamMessage> outgoing_;  ///< `from` is whom they go to
  std::map<int, std::string> answers_;
  bool over_ = false;
  std::thread carrier_;
};

/// Of every other member: answers requests until the leader has no more.
void serve(Team&, const std::function<std::string(const std::string&)>& answer);

}  // namespace assay
