// The workers of a campaign: jobs are asked for, done on threads, and what they gave is merged.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

namespace assay {

/// What becomes of a job's record; one at a time.
using Merge = std::function<void()>;
/// A job. It is done on any thread, several at once, and gives the merge of its record. Null: there is none.
using Task = std::function<Merge()>;

/// As many as asked for; 0: as there are cores.
int workers(int asked);

class Engine {
 public:
  /// Asks next() for tasks and does them on workers(asked) threads (0: as many as there are cores; fewer
  /// where the system has no more), until next() gives none while none is in flight: none may mean "none
  /// before those in flight are merged". next() and merges come one at a time, never beside each other. What
  /// one of them, or a task, throws first ends the run: no further task begins, those in flight end unmerged,
  /// and it is thrown here.
  void run(int asked, const std::function<Task()>& next);

  /// From a task: beside no next() and no merge.
  template <typename Work>
  void exclusively(Work&& work) {
    const std::lock_guard lock(mutex_);
    work();
  }

 private:
  void work(const std::function<Task()>& next);
  void do_tasks(const std::function<Task()>& next);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  int64_t in_flight_ = 0;
};

}  // namespace assay
