#include "tests/team/thread_team.h"

#include <deque>
#include <mutex>
#include <utility>

namespace assay::test {
namespace {

struct Mail {
  std::mutex mutex;
  std::vector<std::deque<TeamMessage>> boxes;
};

class Member final : public Team {
 public:
  Member(std::shared_ptr<Mail> mail, int rank) : mail_(std::move(mail)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(mail_->boxes.size()); }
  void send(int to, const std::string& text) override {
    const std::lock_guard lock(mail_->mutex);
    mail_->boxes[static_cast<size_t>(to)].push_back({rank_, text});
  }
  std::optional<TeamMessage> receive() override {
    const std::lock_guard lock(mail_->mutex);
    std::deque<TeamMessage>& box = mail_->boxes[static_cast<size_t>(rank_)];
    if (box.empty()) return std::nullopt;
    TeamMessage message = std::move(box.front());
    box.pop_front();
    return message;
  }

 private:
  std::shared_ptr<Mail> mail_;
  int rank_;
};

}  // namespace

ThreadTeam::ThreadTeam(int size, std::function<void(Team&)> work) {
  const auto mail = std::make_shared<Mail>();
  mail->boxes.resize(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) members_.push_back(std::make_unique<Member>(mail, rank));
  for (int rank = 1; rank < size; ++rank)
    threads_.emplace_back([this, work, rank] { work(*members_[static_cast<size_t>(rank)]); });
}

ThreadTeam::~ThreadTeam() {
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace assay::test
