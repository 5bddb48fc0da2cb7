// Against a server of the test's own, where its programs are installed; skipped elsewhere.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "fuzz/database.h"
#include "fuzz/libpq.h"
#include "fuzz/write_queue.h"
#include "src/base/numerics/bad_input.h"
#include "tests/fuzz/postgres_server.h"

namespace assay {
namespace postgres_connection_test {

namespace fs = std::filesystem;

Verification finding(int64_t number) {
  Verification v;
  v.kernel = v.case_.kernel = "gla.chunk";
  v.case_.seed = static_cast<uint64_t>(number);
  v.token = token_of(v.case_);
  v.verdict = Verdict::finding;
  v.cause = "violation/o's";
  return v;
}

FuzzRun run_of(int64_t cases) {
  FuzzRun run;
  run.kernels = {"gla.chunk"};
  run.backend = "vm sm_90";
  run.seed = 0xfedcba9876543210;
  run.cases = cases;
  return run;
}

std::string refusal(const std::string& url) {
  try {
    Database database(url);
  } catch (const BadInput& reason) {
    return reason.what();
  }
  return "accepted";
}

/// Between a client and the server's socket. Once armed, it forwards a COMMIT, takes the server's answer, and
/// hangs up on both: the client cannot know whether it was carried out.
class AnswerLosingProxy {
 public:
  AnswerLosingProxy(const fs::path& folder, const fs::path& server) : server_(server) {
    listener_ = bound(folder / ".s.PGSQL.5432");
    thread_ = std::thread([this] { serve(); });
  }
  ~AnswerLosingProxy() {
    shutdown(listener_, SHUT_RDWR);
    close(listener_);
    thread_.join();
  }
  void arm() { armed_ = true; }
  int lost() const { return lost_; }

 private:
  static sockaddr_un address(const fs::path& path) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    path.string().copy(a.sun_path, sizeof a.sun_path - 1);
    return a;
  }
  static int bound(const fs::path& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un a = address(path);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a), 0) << path;
    EXPECT_EQ(listen(fd, 4), 0);
    return fd;
  }

  void serve() {
    for (int client; (client = accept(listener_, nullptr, nullptr)) >= 0; close(client)) {
      const int server = socket(AF_UNIX, SOCK_STREAM, 0);
      const sockaddr_un a = address(server_);
      if (connect(server, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0) forward(client, server);
      close(server);
    }
  }

  void forward(int client, int server) {
    std::atomic<bool> losing = false;
    std::thread answers([&] {
      char bytes[4096];
      for (ssize_t n; (n = read(server, bytes, sizeof bytes)) > 0;) {
        if (losing) {
          ++lost_;
          break;
        }
        if (write(client, bytes, static_cast<size_t>(n)) != n) break;
      }
      shutdown(client, SHUT_RDWR);
    });
    char bytes[4096];
    for (ssize_t n; (n = read(client, bytes, sizeof bytes)) > 0;) {
      const std::string_view text(bytes, static_cast<size_t>(n));
      if (text.find("COMMIT") != std::string_view::npos && armed_.exchange(false)) losing = true;
      if (write(server, bytes, static_cast<size_t>(n)) != n) break;
    }
    answers.join();
  }

  const fs::path server_;
  int listener_ = -1;
  std::atomic<bool> armed_ = false;
  std::atomic<int> lost_ = 0;
  std::thread thread_;
};

class PostgresConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!PostgresServer::available()) GTEST_SKIP() << "no PostgreSQL server is installed here";
    try {
      libpq();
    } catch (const BadInput& reason) {
      GTEST_SKIP() << reason.what();
    }
    server_ = std::make_unique<PostgresServer>();
  }
  std::unique_ptr<PostgresServer> server_;
};

TEST_F(PostgresConnectionTest, KeepsWhatAFileKeepsAndMergesBothWays) {
  {
    Database database(server_->url());
    const int64_t run = database.begin_run(run_of(0));
    const int64_t first = database.add_finding(run, finding(1));
    database.add_finding(run, finding(2));
    database.count_occurrence(first);
    database.replace_finding(first, finding(3));
    database.add_corpus(run, {{"gla.chunk", "token a", "shape 'x'?"}, {"gla.chunk", "b", "shape 'x'?"}});
    database.update_run(run, run_of(17));
  }
  Database database(server_->url());
  const auto findings = database.findings();
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].token, finding(3).token);
  EXPECT_EQ(findings[0].cause, "violation/o's");
  EXPECT_EQ(findings[0].occurrences, 2);
  EXPECT_TRUE(findings[0].shrunk);
  EXPECT_FALSE(findings[1].shrunk);
  ASSERT_EQ(database.corpus().size(), 1U);
  EXPECT_EQ(database.corpus()[0].feature, "shape 'x'?");
  const auto runs = database.runs();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].run.cases, 17);
  EXPECT_EQ(runs[0].run.seed, 0xfedcba9876543210);
  EXPECT_EQ(runs[0].started.size(), std::string("2025-01-31 12:00:00").size()) << runs[0].started;
  ASSERT_EQ(runs[0].run.findings.size(), 2U);

  const std::string file = (server_->folder() / "own.db").string();
  Database own(file);
  EXPECT_EQ(own.merge(server_->url()), 1);
  EXPECT_EQ(own.merge(server_->url()), 0) << "it is here already";
  EXPECT_EQ(own.findings()[0].occurrences, 2);
  own.begin_run(run_of(5));
  EXPECT_EQ(database.merge(file), 1) << "only the run that it has not";
  EXPECT_EQ(database.runs().size(), 2U);
  EXPECT_THROW(database.merge(server_->url()), BadInput);
}

TEST_F(PostgresConnectionTest, ManyWritersMakeTheTablesOnceAndLoseNothing) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 6; ++writer)
    writers.emplace_back([&, writer] {
      Database database(server_->url());
      const int64_t run = database.begin_run(run_of(writer));
      for (int i = 0; i < 10; ++i) {
        database.add_finding(run, finding(100 * writer + i));
        database.add_corpus(run, {{"gla.chunk", "t", "feature " + std::to_string(i)}});
      }
    });
  for (std::thread& writer : writers) writer.join();
  const Database database(server_->url(), Access::read);
  EXPECT_EQ(database.runs().size(), 6U);
  EXPECT_EQ(database.findings().size(), 60U);
  EXPECT_EQ(database.corpus().size(), 10U);
}

TEST_F(PostgresConnectionTest, WhatIsFoundWhileTheServerIsAwayWaitsForIt) {
  WriteQueue queue(server_->url(), std::chrono::milliseconds(20));
  const int64_t run = queue.database().begin_run(run_of(0));
  const auto add = [&](int64_t number) {
    queue.add([run, number](Database& database) { database.add_finding(run, finding(number)); });
  };
  add(0);
  EXPECT_EQ(queue.why_away(), "");
  server_->stop();
  for (int64_t number = 1; number < 5; ++number) add(number);
  EXPECT_EQ(queue.waiting(), 4);
  EXPECT_NE(queue.why_away().find("postgresql://assay@/postgres"), std::string::npos) << queue.why_away();
  EXPECT_FALSE(queue.finish(std::chrono::milliseconds(60)));
  server_->start();
  EXPECT_TRUE(queue.finish(std::chrono::seconds(30)));
  EXPECT_EQ(queue.why_away(), "");
  const auto stored = queue.database().findings();
  ASSERT_EQ(stored.size(), 5U);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(stored[i].token, finding(static_cast<int64_t>(i)).token);
}

TEST_F(PostgresConnectionTest, ACommitWhoseAnswerWasLostIsNotRepeated) {
  const fs::path folder = server_->folder() / "proxy";
  fs::create_directory(folder);
  AnswerLosingProxy proxy(folder, server_->socket());
  {
    WriteQueue queue(server_->url(folder), std::chrono::milliseconds(1));
    const int64_t run = queue.database().begin_run(run_of(0));
    int64_t id = 0;
    proxy.arm();
    queue.add([&](Database& database) { id = database.add_finding(run, finding(1)); });
    EXPECT_TRUE(queue.finish(std::chrono::seconds(30)));
    EXPECT_EQ(proxy.lost(), 1);
    const auto stored = queue.database().findings();
    ASSERT_EQ(stored.size(), 1U);
    EXPECT_EQ(stored[0].id, id) << "of the transaction whose answer was lost";
    proxy.arm();
    queue.add([&](Database& database) { database.count_occurrence(id); });
    EXPECT_TRUE(queue.finish(std::chrono::seconds(30)));
    EXPECT_EQ(proxy.lost(), 2);
    EXPECT_EQ(queue.database().findings()[0].occurrences, 2);
  }
}

TEST_F(PostgresConnectionTest, RefusalsNameTheDatabaseAndNotThePassword) {
  const std::string nowhere =
      refusal("postgresql://me:hunter2@/x?host=" + (server_->folder() / "no").string());
  EXPECT_NE(nowhere.find("is the server running"), std::string::npos) << nowhere;
  EXPECT_EQ(nowhere.find("hunter2"), std::string::npos) << nowhere;
  EXPECT_EQ(nowhere.find('\n'), std::string::npos) << nowhere;
  {
    const auto foreign = open_postgres(server_->url(), Access::write);
    foreign->rows("CREATE TABLE finding(note TEXT)");
    foreign->rows("CREATE SCHEMA assay");
  }
  EXPECT_NE(refusal(server_->url()).find("a table 'finding' of another program"), std::string::npos);
  const std::string elsewhere = server_->url() + "&options=-csearch_path%3Dassay";
  EXPECT_THROW(Database(elsewhere, Access::read), BadInput) << "a reader makes no tables";
  EXPECT_EQ(refusal(elsewhere), "accepted");
}

TEST_F(PostgresConnectionTest, AReaderCannotWriteAndAnotherVersionIsNamed) {
  { Database database(server_->url()); }
  Database reader(server_->url(), Access::read);
  EXPECT_THROW(reader.begin_run(run_of(0)), BadInput);
  open_postgres(server_->url(), Access::write)->rows("UPDATE assay_schema SET version = 99");
  EXPECT_NE(refusal(server_->url()).find("schema version 99, this assay reads version 1"), std::string::npos);
}

}  // namespace postgres_connection_test
}  // namespace assay
