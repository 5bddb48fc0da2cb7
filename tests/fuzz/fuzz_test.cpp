#include "fuzz/fuzz.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "fuzz/database.h"
#include "fuzz/properties.h"
#include "src/base/numerics/bad_input.h"
#include "tests/fuzz/subject.h"

namespace assay {
namespace fuzz_test {

namespace fs = std::filesystem;

class FuzzTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("assay_fuzz_test_" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path file() const { return folder_ / "assay.db"; }
  fs::path folder_;
};
using FuzzCampaign = FuzzTest;  ///< seconds each: left out by the command of the folder

FuzzRun fuzzed(const std::string& fault, const FuzzOptions& options) {
  static const Kernel kernel = test::subject_kernel();
  test::SubjectBackend backend(fault);
  Listener silent;
  return fuzz({&kernel}, backend, options, silent);
}

FuzzOptions with_cases(int64_t cases, uint64_t seed, int jobs) {
  FuzzOptions options;
  options.cases = cases;
  options.seed = seed;
  options.jobs = jobs;
  options.db.clear();
  return options;
}

/// Everything but the clock.
std::string without_times(FuzzRun run) {
  run.seconds = 0;
  for (Verification& v : run.findings) {
    v.seconds_kernel = v.seconds_reference = 0;
    if (v.rounding) v.rounding->seconds = 0;
  }
  return to_json(run).dump(1);
}

TEST_F(FuzzCampaign, ASoundKernelHasNoFindingAndEveryPropertyAndNineteenInTwentyPairsAreSeen) {
  FuzzOptions options = with_cases(400, 11, 2);
  test::SubjectBackend second_engine;
  options.peer = &second_engine;
  const FuzzRun run = fuzzed("", options);
  EXPECT_EQ(run.cases, 400);
  EXPECT_EQ(run.undecided, 0);
  EXPECT_EQ(run.passed + run.domain, 400);
  for (const Verification& v : run.findings) ADD_FAILURE() << v.cause << "  " << v.token;
  for (const PropertyRow& row : run.properties) {
    EXPECT_EQ(row.failed, 0) << row.name;
    // What the machine finds beside the values needs a kernel that runs on it; the subject is none, nor does
    // its operator take anything out of its state.
    if (row.name != "exponents-nonpositive" && row.name != "formula" && row.name != "repeats-stay-finite" &&
        find_property(row.name).share != kByCost) {
      EXPECT_GT(row.checked, 5) << row.name;
    }
  }
  EXPECT_FALSE(run.coverage.empty());
  for (const TightnessRow& row : run.tightness) {
    EXPECT_LT(row.max_ratio, 1) << row.output << " " << row.dtype << " " << row.decay;
  }
  ASSERT_FALSE(run.reached.empty());
  const ReachedRow& pairs = run.reached.back();
  EXPECT_EQ(pairs.what, "pairs of features");
  EXPECT_GE(pairs.reached, pairs.of * 19 / 20);
  EXPECT_LE(pairs.reached, pairs.of);
}

std::set<std::string> corpus_tokens(const fs::path& file) {
  std::set<std::string> tokens;
  for (const CorpusEntry& entry : Database(file, Access::read).corpus()) tokens.insert(entry.token);
  return tokens;
}

TEST_F(FuzzCampaign, ShardsDrawCasesOfTheirOwnWhateverTheNumberOfJobs) {
  int64_t cases = 0;
  std::set<std::string> seen;
  size_t tokens = 0;
  for (int64_t number = 1; number <= 3; ++number) {
    FuzzOptions options = with_cases(100, 11, 1);
    options.shard = {number, 3};
    const FuzzRun run = fuzzed("", options);
    options.jobs = 3;
    options.db = folder_ / (std::to_string(number) + ".db");
    EXPECT_EQ(without_times(fuzzed("", options)), without_times(run)) << "shard " << number;
    cases += run.cases;
    const std::set<std::string> own = corpus_tokens(options.db);
    tokens += own.size();
    seen.insert(own.begin(), own.end());
  }
  EXPECT_EQ(cases, 100);
  EXPECT_EQ(seen.size(), tokens) << "no case is of two shards";
  EXPECT_GT(tokens, 30u);
  FuzzOptions too_few = with_cases(2, 11, 1);
  too_few.shard = {1, 3};
  EXPECT_THROW(fuzzed("", too_few), BadInput);
}

TEST_F(FuzzTest, AnEngineWithOtherBitsIsAFinding) {
  FuzzOptions options = with_cases(60, 11, 2);
  test::SubjectBackend second_engine("first head differs");
  options.peer = &second_engine;
  const FuzzRun run = fuzzed("", options);
  EXPECT_FALSE(run.findings.empty());
  EXPECT_GT(
      std::count_if(run.properties.begin(), run.properties.end(),
                    [](const PropertyRow& row) { return row.name == "same-bits-on-peer" && row.failed > 0; }),
      0);
}

TEST_F(FuzzCampaign, TheSeedAloneDecidesTheRunWhateverTheNumberOfJobs) {
  for (const char* fault : {"", "overflow in a partial chunk"}) {
    const std::string one = without_times(fuzzed(fault, with_cases(64, 5, 1)));
    const std::string three = without_times(fuzzed(fault, with_cases(64, 5, 3)));
    EXPECT_EQ(one, three) << fault;
    EXPECT_NE(one, without_times(fuzzed(fault, with_cases(64, 6, 1)))) << fault;
  }
}

TEST_F(FuzzCampaign, AnOverflowIsFoundUntoldAndShrunkToOneSmallReplayableCase) {
  const FuzzRun run = fuzzed("overflow in a partial chunk", with_cases(200, 9, 2));
  ASSERT_FALSE(run.findings.empty());
  const Verification& v = run.findings[0];
  EXPECT_EQ(v.case_.B * v.case_.H * v.case_.K * v.case_.V, 1) << v.token;
  EXPECT_LE(v.case_.T, 128) << v.token;
  EXPECT_EQ(parse_token(v.token), v.case_);
  EXPECT_EQ(v.cause.rfind("nonfinite/o", 0), 0U) << v.cause;
}

/// Ends the run at the first finding.
struct FirstFinding : Listener {
  struct Seen {};
  void found(const Verification&) override { throw Seen{}; }
};

TEST_F(FuzzCampaign, FaultsOfLargeSizesOnlyAreFoundAmongTheFirstCases) {
  const Kernel kernel = test::subject_kernel();
  for (const char* fault : {"channels above 192 lost", "heads above 16 lost"})
    for (const uint64_t seed : {1, 2, 3}) {
      FuzzOptions options = with_cases(64, seed, 2);
      options.shrink_evaluations = 20;
      test::SubjectBackend backend(fault);
      FirstFinding first;
      EXPECT_THROW(fuzz({&kernel}, backend, options, first), FirstFinding::Seen)
          << fault << ", seed " << seed;
    }
}

TEST_F(FuzzCampaign, AFaultOfAPropertyIsShrunkByThatProperty) {
  const FuzzRun run = fuzzed("length matters", with_cases(200, 9, 2));
  bool seen = false;
  for (const Verification& v : run.findings) {
    if (v.cause != "property/split-and-resume") continue;
    seen = true;
    EXPECT_EQ(v.case_.T, 41) << v.token;
    EXPECT_EQ(v.case_.K * v.case_.V, 1) << v.token;
  }
  EXPECT_TRUE(seen);
}

TEST_F(FuzzTest, KernelsShareTheCasesEvenly) {
  Kernel first = test::subject_kernel(), second = test::subject_kernel();
  second.name = "gla.other";
  test::SubjectBackend backend;
  Listener silent;
  const FuzzRun run = fuzz({&first, &second}, backend, with_cases(65, 3, 2), silent);
  std::map<std::string, int64_t> cases;
  for (const CoverageRow& row : run.coverage)
    if (row.feature == "kernel") cases[row.value] = row.cases;
  EXPECT_EQ(cases["gla.subject"], 33);
  EXPECT_EQ(cases["gla.other"], 32);
}

TEST_F(FuzzCampaign, ARunStartsFromTheCorpusOfTheLastOne) {
  FuzzOptions options = with_cases(64, 3, 2);
  options.db = file();
  fuzzed("", options);
  const size_t kept = Database(file()).corpus().size();
  EXPECT_GT(kept, 10U);
  // The same cases reach nothing that is not known, and the others are drawn from those kept.
  options.seed = 4;
  const FuzzRun second = fuzzed("", options);
  options.db.clear();
  EXPECT_NE(without_times(second), without_times(fuzzed("", options)));
}

TEST_F(FuzzTest, ACorpusThatCannotBeReadIsBadInputThatNamesFileAndEntry) {
  FuzzOptions options = with_cases(8, 3, 1);
  options.db = file();
  fuzzed("", options);
  Database(file()).add_corpus(1, {{"gla.subject", "gla.subject/B1/Tx", "broken"}});
  try {
    fuzzed("", options);
    ADD_FAILURE();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("assay.db: corpus entry 'gla.subject/B1/Tx'"), std::string::npos)
        << error.what();
  }
}

TEST_F(FuzzTest, ATimeBudgetEndsTheRun) {
  FuzzOptions options = with_cases(0, 3, 2);
  options.time_s = 1;
  const FuzzRun run = fuzzed("", options);
  EXPECT_GT(run.cases, 0);
}

TEST_F(FuzzTest, AKernelThatAcceptsNoCaseIsBadInputWithItsOwnReason) {
  Kernel kernel = test::subject_kernel();
  kernel.plan = [](const ResolvedCase&, const TensorMap&) -> Program { throw BadInput("K must be 64"); };
  test::SubjectBackend backend;
  Listener silent;
  for (const int64_t cases : {200, 20}) try {  // given up, and at the end of the budget
      fuzz({&kernel}, backend, with_cases(cases, 3, 2), silent);
      ADD_FAILURE() << "accepted";
    } catch (const BadInput& reason) {
      const int64_t drawn = std::min<int64_t>(cases, 64);
      EXPECT_EQ(reason.what(), "gla.subject: none of the " + std::to_string(drawn) +
                                   " cases drawn for it is taken: " + std::to_string(drawn) +
                                   " of them: K must be 64");
    }
}

TEST_F(FuzzTest, ARunWhoseTimeIsOverBeforeACaseIsNoPass) {
  FuzzOptions options = with_cases(0, 3, 2);
  options.time_s = 1e-9;
  EXPECT_THROW(fuzzed("", options), BadInput);
}

/// Has no memory for long sequences.
class SmallBackend : public test::SubjectBackend {
 public:
  explicit SmallBackend(int64_t longest) : longest_(longest) {}
  Outcome run(const Program& plan, const TensorMap& inputs) override {
    const Tensor& q = inputs.at("q");
    if (q.axes.at(1).size > longest_) throw std::bad_alloc();
    return SubjectBackend::run(plan, inputs);
  }

 private:
  const int64_t longest_;
};

class Absentees : public Listener {
 public:
  void left_out(const Case& c) override { tokens.push_back(token_of(c)); }
  std::vector<std::string> tokens;
};

TEST_F(FuzzTest, CasesThatThereIsNoMemoryForAreNamedAndTheRunGoesOn) {
  const Kernel kernel = test::subject_kernel();
  Absentees absentees;
  SmallBackend small(100);
  const FuzzRun run = fuzz({&kernel}, small, with_cases(64, 3, 2), absentees);
  EXPECT_EQ(run.cases + std::ssize(absentees.tokens), 64);
  EXPECT_GT(run.cases, 0);
  EXPECT_FALSE(absentees.tokens.empty());
  for (const std::string& token : absentees.tokens) EXPECT_GT(parse_token(token).T, 100) << token;
  int64_t counted = 0;
  for (const CoverageRow& row : run.coverage)
    if (row.feature == "not enough memory") counted = row.cases;
  EXPECT_EQ(counted, std::ssize(absentees.tokens));

  SmallBackend none(-1);
  Absentees all;
  EXPECT_THROW(fuzz({&kernel}, none, with_cases(8, 3, 2), all), BadInput);
  EXPECT_EQ(all.tokens.size(), 8u);
}

TEST_F(FuzzTest, CasesAPlanRefusesAreCountedApart) {
  Kernel kernel = test::subject_kernel();
  const auto plan = kernel.plan;
  kernel.plan = [plan](const ResolvedCase& c, const TensorMap& inputs) {
    if (c.sizes.K % 2 != 0) throw BadInput("K must be even");
    return plan(c, inputs);
  };
  test::SubjectBackend backend;
  Listener silent;
  const FuzzRun run = fuzz({&kernel}, backend, with_cases(96, 3, 2), silent);
  int64_t refused = 0;
  for (const CoverageRow& row : run.coverage)
    if (row.feature == "rejected by the kernel's plan") refused = row.cases;
  EXPECT_GT(refused, 0);
  EXPECT_EQ(run.cases + refused, 96);
  EXPECT_TRUE(run.findings.empty());
}

TEST_F(FuzzTest, FindingsOfEarlierRunsAreRerunFirstOnRequest) {
  FuzzOptions options = with_cases(128, 9, 2);
  options.db = file();
  const FuzzRun first = fuzzed("overflow in a partial chunk", options);
  ASSERT_FALSE(first.findings.empty());
  options.cases = 1;
  options.seed = 77;
  options.known_first = true;
  const FuzzRun again = fuzzed("overflow in a partial chunk", options);
  EXPECT_FALSE(again.findings.empty());
  EXPECT_EQ(again.cases, 1 + static_cast<int64_t>(first.findings.size()));
}

/// Asks for the end after so many cases.
class Interrupter : public Listener {
 public:
  explicit Interrupter(int64_t cases) : cases_(cases) {}
  void progress(const FuzzProgress& p) override {
    if (p.cases >= cases_) signal = 1;
  }
  std::atomic<int> signal{0};

 private:
  const int64_t cases_;
};

TEST_F(FuzzCampaign, AnInterruptedRunReturnsAndStoresWhatItFound) {
  const Kernel kernel = test::subject_kernel();
  test::SubjectBackend backend("overflow in a partial chunk");
  for (const bool timed : {false, true}) {
    Interrupter listener(128);
    FuzzOptions options = with_cases(timed ? 0 : 1'000'000'000, 9, 2);
    options.time_s = 1e6;
    options.db = file();
    options.interrupted = &listener.signal;
    const FuzzRun run = fuzz({&kernel}, backend, options, listener);
    EXPECT_GE(run.cases, 128);
    EXPECT_LT(run.cases, 1000);
    EXPECT_EQ(run.ended_early, "interrupted");
    EXPECT_FALSE(run.findings.empty());
    EXPECT_FALSE(run.coverage.empty());
    EXPECT_FALSE(Database(file()).findings().empty());
  }
}

/// Tells the parent each finding by one byte, as a console would print it.
class Teller : public Listener {
 public:
  explicit Teller(int to) : to_(to) {}
  void found(const Verification&) override {
    const char byte = 1;
    if (write(to_, &byte, 1) != 1) _exit(1);
  }

 private:
  int to_;
};

TEST_F(FuzzTest, WhatWasToldIsInTheDatabaseWhenTheProcessIsKilled) {
  std::mt19937 random(4);
  int64_t told = 0;
  for (int round = 0; round < 4; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const Kernel kernel = test::subject_kernel();
      test::SubjectBackend backend("length matters");
      Teller teller(ends[1]);
      FuzzOptions options = with_cases(100'000, random(), 2);
      options.db = file();
      fuzz({&kernel}, backend, options, teller);
      _exit(0);
    }
    close(ends[1]);
    char byte = 0;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    usleep(static_cast<useconds_t>(random() % 100) * 1000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (++told; read(ends[0], &byte, 1) == 1;) ++told;
    close(ends[0]);
    Database database(file());
    EXPECT_GE(static_cast<int64_t>(database.findings().size()), told) << "round " << round;
    ASSERT_TRUE(database.latest_run().has_value());
    EXPECT_FALSE(database.latest_run()->findings.empty());
  }
}

}  // namespace fuzz_test
}  // namespace assay
