#include "fuzz/database.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "src/base/numerics/bad_input.h"
#include "src/result/tool.h"

namespace assay {
namespace database_test {

namespace fs = std::filesystem;

class DatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("assay_database_test_" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path file() const { return folder_ / "assay.db"; }

  void sql(const std::string& text) const {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &handle), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(handle, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle);
    sqlite3_close(handle);
  }

  std::string refusal() const {
    try {
      Database database(file());
    } catch (const BadInput& reason) {
      return reason.what();
    }
    return "accepted";
  }

  fs::path folder_;
};

Verification finding(int64_t number) {
  Verification v;
  v.kernel = "gla.chunk";
  v.case_.kernel = v.kernel;
  v.case_.seed = static_cast<uint64_t>(number);
  v.token = token_of(v.case_);
  v.verdict = Verdict::finding;
  v.cause = "violation/o";
  return v;
}

FuzzRun begun() {
  FuzzRun run;
  run.kernels = {"gla.chunk"};
  run.backend = "vm sm_90";
  run.seed = 0xfedcba9876543210;
  return run;
}

TEST_F(DatabaseTest, KeepsRunsFindingsAndCorpusFromOneOpeningToTheNext) {
  {
    Database database(file());
    const int64_t run = database.begin_run(begun());
    const int64_t first = database.add_finding(run, finding(1));
    database.add_finding(run, finding(2));
    database.count_occurrence(first);
    database.replace_finding(first, finding(3));
    database.add_corpus(run, {{"gla.chunk", "token a", "shape x"}, {"gla.chunk", "token b", "shape x"}});
    FuzzRun counted = begun();
    counted.cases = 17;
    database.update_run(run, counted);
  }
  Database database(file());
  const auto findings = database.findings();
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].token, finding(3).token);
  EXPECT_EQ(findings[0].occurrences, 2);
  EXPECT_TRUE(findings[0].shrunk);
  EXPECT_FALSE(findings[1].shrunk);
  ASSERT_EQ(database.corpus().size(), 1U);
  EXPECT_EQ(database.corpus()[0].token, "token a");
  const auto run = database.latest_run();
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->cases, 17);
  EXPECT_EQ(run->seed, begun().seed);
  ASSERT_EQ(run->findings.size(), 2U);
  EXPECT_EQ(run->findings[0].case_, finding(3).case_);
}

TEST_F(DatabaseTest, GivesAllRunsInTheirOrderEachWithItsOwnFindings) {
  Database database(file());
  for (int64_t i = 1; i <= 3; ++i) {
    const int64_t run = database.begin_run(begun());
    for (int64_t j = 1; j < i; ++j) database.add_finding(run, finding(10 * i + j));
    FuzzRun counted = begun();
    counted.cases = i;
    database.update_run(run, counted);
  }
  const std::vector<StoredRun> runs = database.runs();
  ASSERT_EQ(runs.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(runs[i].run.cases, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(runs[i].run.findings.size(), i);
    EXPECT_EQ(runs[i].commit, tool_commit());
    EXPECT_EQ(runs[i].started.size(), std::string("2025-01-31 12:00:00").size()) << runs[i].started;
  }
  EXPECT_EQ(runs[2].run.findings[1].token, finding(32).token);
}

TEST_F(DatabaseTest, AnEmptyDatabaseHasNoRun) {
  Database database(file());
  EXPECT_TRUE(database.runs().empty());
  EXPECT_FALSE(database.latest_run().has_value());
}

TEST_F(DatabaseTest, AnotherSchemaVersionIsBadInputThatNamesBothVersions) {
  { Database database(file()); }
  EXPECT_EQ(refusal(), "accepted");
  sql("PRAGMA user_version = 99");
  EXPECT_NE(refusal().find("schema version 99, this assay reads version 1"), std::string::npos) << refusal();
}

TEST_F(DatabaseTest, AnotherProgramsDatabaseIsBadInputAndIsLeftAsItWas) {
  sql("CREATE TABLE notes(text)");
  std::ifstream before_stream(file(), std::ios::binary);
  const std::string before((std::istreambuf_iterator<char>(before_stream)), {});
  EXPECT_NE(refusal().find("another program"), std::string::npos) << refusal();
  std::ifstream after_stream(file(), std::ios::binary);
  const std::string after((std::istreambuf_iterator<char>(after_stream)), {});
  EXPECT_EQ(before, after);
}

TEST_F(DatabaseTest, AFileThatIsNoDatabaseIsBadInput) {
  std::ofstream(file())
      << "this is a text of more than one hundred bytes, so that it cannot be taken for an empty "
         "database file by anyone who looks at it";
  EXPECT_NE(refusal().find("not an assay database"), std::string::npos) << refusal();
}

TEST_F(DatabaseTest, AFolderThatCannotBeMadeIsBadInput) {
  folder_ /= "a_file";
  std::ofstream(folder_) << "in the way";
  EXPECT_NE(refusal().find("the database cannot be opened"), std::string::npos) << refusal();
}

/// A child writes findings and reports each on a pipe once it is committed; it is killed at a random moment.
int64_t committed_before_the_kill(const fs::path& file, int milliseconds) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    Database database(file);
    const int64_t run = database.begin_run(begun());
    for (int64_t i = 0;; ++i) {
      database.add_finding(run, finding(i));
      if (i % 5 == 0) database.add_corpus(run, {{"gla.chunk", "t", "f" + std::to_string(i)}});
      const char byte = 1;
      if (write(pipe_ends[1], &byte, 1) != 1) _exit(1);
    }
  }
  close(pipe_ends[1]);
  char byte = 0;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 1);
  usleep(static_cast<useconds_t>(milliseconds) * 1000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  int64_t reported = 1;
  while (read(pipe_ends[0], &byte, 1) == 1) ++reported;
  close(pipe_ends[0]);
  return reported;
}

TEST_F(DatabaseTest, NothingCommittedIsLostWhenTheProcessIsKilled) {
  std::mt19937 random(20260);
  int64_t expected = 0;
  for (int round = 0; round < 8; ++round) {
    expected += committed_before_the_kill(file(), static_cast<int>(random() % 60));
    Database database(file());
    const auto findings = database.findings();
    EXPECT_GE(static_cast<int64_t>(findings.size()), expected) << "round " << round;
    EXPECT_LE(static_cast<int64_t>(findings.size()), expected + round + 1) << "round " << round;
    expected = static_cast<int64_t>(findings.size());
    const auto run = database.latest_run();
    ASSERT_TRUE(run.has_value());
    EXPECT_FALSE(run->findings.empty());
  }
}

TEST_F(DatabaseTest, MergingTakesOverRunsFindingsAndCorpusOnce) {
  const fs::path second = folder_ / "second.db";
  int64_t number = 0;
  for (const fs::path& path : {file(), second}) {
    Database database(path);
    FuzzRun run;
    run.kernels = {"gla.chunk"}, run.seed = 4, run.cases = ++number;
    const int64_t id = database.begin_run(run);
    const int64_t row = database.add_finding(id, finding(number));
    database.replace_finding(row, finding(number + 10));
    database.count_occurrence(row);
    database.add_corpus(id,
                        {{"gla.chunk", "token" + std::to_string(number), "shared"},
                         {"gla.chunk", "token" + std::to_string(number), "own" + std::to_string(number)}});
  }
  Database database(file());
  EXPECT_EQ(database.merge(second), 1);
  EXPECT_EQ(database.merge(second), 0) << "it is here already";
  const std::vector<StoredRun> runs = database.runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].run.cases, 2);
  ASSERT_EQ(runs[1].run.findings.size(), 1u);
  EXPECT_EQ(runs[1].run.findings[0].token, finding(12).token);
  const std::vector<StoredFinding> findings = database.findings();
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1].occurrences, 2);
  EXPECT_TRUE(findings[1].shrunk);
  EXPECT_NE(findings[1].run, findings[0].run);
  const std::vector<CorpusEntry> corpus = database.corpus();
  ASSERT_EQ(corpus.size(), 3u);
  EXPECT_EQ(corpus[0].token, "token1") << "a feature stays with its first case";
  EXPECT_THROW(database.merge(file()), BadInput);
  EXPECT_THROW(database.merge(folder_ / "none.db"), BadInput);
}

}  // namespace database_test
}  // namespace assay
