// A process that answers requests, and is replaced when it can answer no more. A guard between the two starts
// each worker from a state in which nothing has touched the GPU.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace assay {

struct Answer {
  std::vector<std::byte> bytes;
  bool replace = false;  ///< end this worker: the next request is for a fresh one
};

class WorkerProcess {
 public:
  /// `make_service` runs in each new worker and returns what answers its requests.
  explicit WorkerProcess(std::function<std::function<Answer(const std::vector<std::byte>&)>()> make_service);
  /// Ends guard and worker once the request under way is answered.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Sends a request and waits for its answer; nothing where the worker died over it. Callers in several
  /// threads are served one after the other.
  std::optional<std::vector<std::byte>> ask(const std::vector<std::byte>& request);

 private:
  std::mutex one_at_a_time_;
  int socket_ = -1;
  pid_t guard_ = -1;
};

}  // namespace assay
