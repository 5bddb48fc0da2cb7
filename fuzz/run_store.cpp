#include "fuzz/run_store.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// A server that is away at the end of a run is waited for so long.
constexpr std::chrono::seconds kWaitedFor{60};

}  // namespace

void RunStore::write(WriteQueue::Write write) {
  if (!queue_) return;
  const bool was_away = !queue_->why_away().empty();
  try {
    queue_->add(std::move(write));
  } catch (const BadInput& error) {
    return give_up(error.what());
  }
  if (queue_->why_away().empty() == was_away) listener_.database_away(queue_->why_away());
}

void RunStore::finish() {
  if (!queue_ || queue_->waiting() == 0) return;
  try {
    if (queue_->finish(kWaitedFor)) return listener_.database_away("");
    give_up(fmt::format("{}; {} writes were not stored", queue_->why_away(), queue_->waiting()));
  } catch (const BadInput& error) {
    give_up(error.what());
  }
}

void RunStore::give_up(const std::string& why) {
  queue_.reset();
  lost_ = why;
  listener_.database_lost(why);
}

}  // namespace assay
