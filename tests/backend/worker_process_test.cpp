#include "src/backend/worker_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>

namespace assay {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::string text_of(const std::optional<std::vector<std::byte>>& bytes) {
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "died";
}

/// Answers "pid": its process; "die": dies; "throw": throws; "last": answers and asks to be replaced;
/// anything else: the n-th request and its length.
auto make_service() {
  return [count = 0](const std::vector<std::byte>& request) mutable {
    const std::string text = text_of(request);
    ++count;
    if (text == "die") std::raise(SIGKILL);
    if (text == "throw") throw std::runtime_error("from the service");
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
  EXPECT_EQ(ask(worker, "throw"), "died");
  EXPECT_EQ(ask(worker, "abc"), "1 3");
}

TEST(WorkerProcess, ThreadsEachGetTheirOwnAnswer) {
  WorkerProcess worker(make_service);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (size_t size = 1; size <= 8; ++size)
    threads.emplace_back([&, size] {
      const std::string request(size << 14, 'x'), end = " " + std::to_string(size << 14);
      for (int i = 0; i < 50; ++i) {
        const std::string answer = ask(worker, request);
        wrong += answer.size() < end.size() || answer.substr(answer.size() - end.size()) != end;
      }
    });
  for (std::thread& thread : threads) thread.join();
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
