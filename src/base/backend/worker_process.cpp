#include "src/base/backend/worker_process.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// A frame is its length and its bytes; this length says that the worker died.
constexpr uint64_t kDied = ~uint64_t{0};

bool send_all(int socket, const void* data, size_t size) {
  const auto* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket, from, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, size_t size) {
  auto* to = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(socket, to, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool send_frame(int socket, const std::vector<std::byte>& bytes) {
  const uint64_t size = bytes.size();
  return send_all(socket, &size, sizeof size) && send_all(socket, bytes.data(), bytes.size());
}

std::optional<std::vector<std::byte>> receive_frame(int socket) {
  uint64_t size = 0;
  if (!receive_all(socket, &size, sizeof size) || size == kDied) return std::nullopt;
  std::vector<std::byte> bytes(size);
  if (!receive_all(socket, bytes.data(), bytes.size())) return std::nullopt;
  return bytes;
}

constexpr int kDone = 0, kReplace = 3, kFailed = 4;

/// Answers until the other end closes (kDone) or the service asks to be replaced.
template <typename Service>
int work(int socket, const Service& service) {
  while (const auto request = receive_frame(socket)) {
    const Answer answer = service(*request);
    if (!send_frame(socket, answer.bytes)) return kDone;
    if (answer.replace) return kReplace;
  }
  return kDone;
}

/// What escapes a service ends its worker, never the program whose stack the worker inherited.
template <typename MakeService>
int work_to_the_end(int socket, const MakeService& make_service) noexcept {
  try {
    return work(socket, make_service());
  } catch (...) {
    return kFailed;
  }
}

/// Starts one worker after the other until one ends for want of requests.
template <typename MakeService>
void guard(int socket, const MakeService& make_service) {
  for (;;) {
    const pid_t worker = fork();
    if (worker < 0) return;
    if (worker == 0) _exit(work_to_the_end(socket, make_service));
    int status = 0;
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == kReplace) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kDone) return;
    if (!send_all(socket, &kDied, sizeof kDied)) return;
  }
}

}  // namespace

WorkerProcess::WorkerProcess(
    std::function<std::function<Answer(const std::vector<std::byte>&)>()> make_service) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw BadInput("no socket for the GPU's process");
  guard_ = fork();
  if (guard_ < 0) {
    close(ends[0]), close(ends[1]);
    throw BadInput("the GPU's process cannot be started: too many processes");
  }
  if (guard_ == 0) {
    // Ctrl-C and timeouts signal the whole group; who asked decides when to end, and closes the socket then.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    // Only its own end: an inherited copy of another backend's socket would keep that backend's worker alive.
    if (ends[1] > 3) close_range(3, static_cast<unsigned>(ends[1]) - 1, 0);
    close_range(static_cast<unsigned>(ends[1]) + 1, ~0u, 0);
    guard(ends[1], make_service);
    _exit(0);
  }
  close(ends[1]);
  socket_ = ends[0];
}

WorkerProcess::~WorkerProcess() {
  close(socket_);
  while (waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<std::vector<std::byte>> WorkerProcess::ask(const std::vector<std::byte>& request) {
  const std::lock_guard lock(one_at_a_time_);
  if (!send_frame(socket_, request)) return std::nullopt;
  return receive_frame(socket_);
}

}  // namespace assay
