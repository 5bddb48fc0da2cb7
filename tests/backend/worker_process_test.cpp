#include "src/base/backend/worker_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace assay {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::string text_of(const std::optional<std::vector<std::byte>>& bytes) {
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "died";
}

/// Answers "pid": its process; "die": dies; "last": answers and asks to be replaced; anything else: the n-th
/// request and its length.
auto make_service() {
  return [count = 0](const std::vector<std::byte>& request) mutable {
    const std::string text = text_of(request);
    ++count;
    if (text == "die") std::raise(SIGKILL);
    if (text == "throw") throw std::bad_alloc();
    if (text == "pid") return Answer{bytes_of(std::to_string(getpid()))};
    return Answer{bytes_of(std::to_string(count) + " " + std::to_string(text.size())), text == "last"};
  };
}

std::string ask(WorkerProcess& worker, const std::string& request) {
  return text_of(worker.ask(bytes_of(request)));
}

TEST(WorkerProcess, AnswersEachRequestInTurn) {
  WorkerProcess worker(make_service);
  EXPECT_EQ(ask(worker, "abc"), "1 3");
  EXPECT_EQ(ask(worker, ""), "2 0");
  EXPECT_EQ(ask(worker, std::string(50 << 20, 'x')), "3 52428800");
  EXPECT_NE(ask(worker, "pid"), std::to_string(getpid()));
}

TEST(WorkerProcess, IsReplacedWhenItAsksAndWhenItDies) {
  WorkerProcess worker(make_service);
  const std::string first = ask(worker, "pid");
  EXPECT_EQ(ask(worker, "last"), "2 4");
  EXPECT_EQ(ask(worker, "abc"), "1 3");
  const std::string second = ask(worker, "pid");
  EXPECT_NE(second, first);
  EXPECT_EQ(ask(worker, "die"), "died");
  EXPECT_EQ(ask(worker, "abc"), "1 3");
  EXPECT_NE(ask(worker, "pid"), second);
}

TEST(WorkerProcess, LetsNothingEscapeAWorkerThatThrows) {
  WorkerProcess worker(make_service);
  EXPECT_EQ(ask(worker, "throw"), "died");
  EXPECT_EQ(ask(worker, "abc"), "1 3");
}

TEST(WorkerProcess, AnswersEachOfSeveralThreadsItsOwnRequest) {
  WorkerProcess worker(make_service);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (size_t size = 1; size <= 8; ++size)
    callers.emplace_back([&, size] {
      const std::string request(size * 1000, 'x');
      for (int i = 0; i < 50; ++i)
        wrong += !ask(worker, request).ends_with(" " + std::to_string(size * 1000));
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(WorkerProcess, EndsWithItsOwnerThoughAnotherLives) {
  auto first = std::make_unique<WorkerProcess>(make_service);
  WorkerProcess second(make_service);
  const pid_t worker = std::stoi(ask(*first, "pid"));
  EXPECT_EQ(kill(worker, 0), 0);
  first.reset();
  EXPECT_EQ(kill(worker, 0), -1) << "the worker is still there";
  EXPECT_EQ(ask(second, "abc"), "1 3");
}

}  // namespace
}  // namespace assay
