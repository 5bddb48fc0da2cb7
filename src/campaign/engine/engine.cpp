#include "src/campaign/engine/engine.h"

#include "src/base/numerics/threads.h"

namespace assay {

int workers(int asked) {
  return static_cast<int>(threads_or_all(asked));
}

void Engine::run(int asked, const std::function<Task()>& next) {
  error_ = nullptr;
  in_flight_ = 0;
  on_threads(threads_or_all(asked), [&] { work(next); });
  if (error_) std::rethrow_exception(error_);
}

void Engine::work(const std::function<Task()>& next) {
  try {
    do_tasks(next);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  changed_.notify_all();
}

void Engine::do_tasks(const std::function<Task()>& next) {
  std::unique_lock lock(mutex_);
  while (!error_) {
    const Task task = next();
    if (!task) {
      if (in_flight_ == 0) return;
      changed_.wait(lock);
      continue;
    }
    ++in_flight_;
    lock.unlock();
    const Merge merge = task();
    lock.lock();
    if (error_) return;
    merge();
    --in_flight_;
    changed_.notify_all();
  }
}

}  // namespace assay
