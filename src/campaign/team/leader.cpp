#include "src/campaign/team/leader.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace assay {
namespace {

/// Nobody spins while there is nothing to carry: a look takes microseconds, a case milliseconds at least.
class Patience {
 public:
  void reset() { pause_ = kLeast; }
  void wait() {
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(2 * pause_, kMost);
  }

 private:
  static constexpr std::chrono::microseconds kLeast{50}, kMost{2000};
  std::chrono::microseconds pause_ = kLeast;
};

/// The empty message ends a member's work; requests are never empty.
const std::string kNoMore;

}  // namespace

Leader::Leader(Team& team) : team_(team) {
  for (int member = team.size() - 1; member > 0; --member) free_.push_back(member);
  carrier_ = std::thread([this] { carry(); });
}

Leader::~Leader() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  carrier_.join();
  for (int member = 1; member < team_.size(); ++member) team_.send(member, kNoMore);
}

std::string Leader::ask(std::string request) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !free_.empty(); });
  const int member = free_.back();
  free_.pop_back();
  outgoing_.push_back({member, std::move(request)});
  changed_.wait(lock, [&] { return answers_.contains(member); });
  std::string answer = std::move(answers_.extract(member).mapped());
  free_.push_back(member);
  changed_.notify_all();
  return answer;
}

/// The one thread that uses the team.
void Leader::carry() {
  Patience patience;
  for (;;) {
    std::deque<TeamMessage> outgoing;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      outgoing.swap(outgoing_);
    }
    for (const TeamMessage& message : outgoing) team_.send(message.from, message.text);
    bool came = false;
    while (std::optional<TeamMessage> message = team_.receive()) {
      const std::lock_guard lock(mutex_);
      answers_[message->from] = std::move(message->text);
      came = true;
    }
    if (came) changed_.notify_all();
    if (came || !outgoing.empty())
      patience.reset();
    else
      patience.wait();
  }
}

void serve(Team& team, const std::function<std::string(const std::string&)>& answer) {
  for (Patience patience;; patience.wait())
    while (const std::optional<TeamMessage> request = team.receive()) {
      if (request->text == kNoMore) return;
      team.send(request->from, answer(request->text));
      patience.reset();
    }
}

}  // namespace assay
