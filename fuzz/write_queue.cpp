#include "fuzz/write_queue.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace assay {

void WriteQueue::add(Write write) {
  waiting_.push_back(std::move(write));
  if (why_away_.empty() || Clock::now() >= next_try_) carry_out();
}

bool WriteQueue::finish(std::chrono::milliseconds most) {
  const Clock::time_point end = Clock::now() + most;
  for (carry_out(); !waiting_.empty() && Clock::now() < end; carry_out())
    std::this_thread::sleep_for(std::min<Clock::duration>(least_pause_, end - Clock::now()));
  return waiting_.empty();
}

/// A try may take seconds, where a host does not answer at all; the campaign waits for it. Ten times as long
/// passes until the next, so that this costs a tenth of its time.
void WriteQueue::carry_out() {
  const Clock::time_point began = Clock::now();
  try {
    for (; !waiting_.empty(); waiting_.pop_front()) waiting_.front()(database_);
    why_away_.clear();
  } catch (const ConnectionLost& error) {
    why_away_ = error.what();
    next_try_ = Clock::now() + std::max<Clock::duration>(least_pause_, 10 * (Clock::now() - began));
  }
}

}  // namespace assay
