#include "fuzz/kernel_record.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/fuzz/subject.h"

namespace assay {
namespace {

Verification passing(const std::string& token) {
  Verification v;
  v.kernel = "gla.subject";
  v.case_ = parse_token(token);
  v.token = token;
  v.verdict = Verdict::pass;
  return v;
}

constexpr const char* kToken = "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3";
constexpr const char* kAlike = "gla.subject/B1/T21/H1/K4/V3/fp32/g-fp32/mild/s9";
constexpr const char* kOther = "gla.subject/B1/T80/H1/K4/V3/fp32/g-fp32/mild/s3";

TEST(KernelRecord, KeepsACaseThatReachesSomethingNewAndNoneThatDoesNot) {
  const Kernel kernel = test::subject_kernel();
  KernelRecord record(kernel);
  EXPECT_FALSE(record.add(passing(kToken)).empty());
  EXPECT_TRUE(record.add(passing(kAlike)).empty());
  EXPECT_FALSE(record.add(passing(kOther)).empty());
  ASSERT_EQ(record.feedback().corpus.size(), 2U);
  EXPECT_EQ(record.feedback().corpus[1].T, 80);
}

TEST(KernelRecord, ANewSideOfAGuardIsSomethingNew) {
  const Kernel kernel = test::subject_kernel();
  KernelRecord record(kernel);
  Verification v = passing(kToken);
  v.branches = {{"f", {1, 0, 3}}};
  record.add(v);
  v = passing(kAlike);
  v.branches = {{"f", {1, 0, 2}}};
  EXPECT_TRUE(record.add(v).empty());
  v.branches = {{"f", {2, 0, 3}}};
  EXPECT_EQ(record.add(v).size(), 1U);
  for (const ReachedRow& row : record.reached()) {
    if (row.what != "branch sides") continue;
    EXPECT_EQ(row.reached, 4);
    EXPECT_EQ(row.of, 6);
  }
}

TEST(KernelRecord, ResumesFromWhatAnEarlierRunKept) {
  const Kernel kernel = test::subject_kernel();
  KernelRecord earlier(kernel), record(kernel);
  for (const CorpusEntry& entry : earlier.add(passing(kToken))) record.resume(entry);
  ASSERT_EQ(record.feedback().corpus.size(), 1U);
  EXPECT_EQ(record.feedback().corpus[0], parse_token(kToken));
  EXPECT_TRUE(record.add(passing(kAlike)).empty());
}

TEST(KernelRecord, LeavesOutWhatTheKernelNoLongerTakesAndRefusesWhatIsNoCase) {
  Kernel kernel = test::subject_kernel();
  kernel.limits.max_K = 2;
  KernelRecord record(kernel);
  record.resume({"gla.subject", kToken, "x"});
  EXPECT_TRUE(record.feedback().corpus.empty());
  EXPECT_THROW(record.resume({"gla.subject", "gla.subject/B1/Tx", "x"}), BadInput);
}

TEST(KernelRecord, CountsCombinationsOfOptionalInputs) {
  const Kernel kernel = test::subject_kernel();
  KernelRecord record(kernel);
  record.add(passing(kToken));
  record.add(passing(std::string(kToken) + "/h0"));
  for (const ReachedRow& row : record.reached()) {
    if (row.what != "inputs present") continue;
    EXPECT_EQ(row.reached, 2);
    EXPECT_EQ(row.of, 20);  // gate and state or not: forward 4; backward and both with dL/dS_T or not: 8 each
  }
}

TEST(KernelRecord, CountsPairsOfFeaturesOfCasesThatWereJudged) {
  const Kernel kernel = test::subject_kernel();
  KernelRecord record(kernel);
  const auto pairs = [&] { return record.reached().back(); };
  EXPECT_EQ(pairs().what, "pairs of features");
  EXPECT_EQ(pairs().reached, 0);
  Verification refused = passing(kToken);
  refused.verdict = Verdict::domain;
  record.add(refused);
  EXPECT_EQ(pairs().reached, 0);
  record.add(passing(kToken));
  EXPECT_EQ(pairs().reached, 11 * 10 / 2);
  record.add(passing(kToken));
  EXPECT_EQ(pairs().reached, 11 * 10 / 2);
  EXPECT_GT(pairs().of, 2000);
}

TEST(KernelRecord, NamesTheThreeMostFrequentReasonsWhyNoCaseIsTaken) {
  const Kernel kernel = test::subject_kernel();
  KernelRecord record(kernel);
  record.rejected = 15;
  record.refusals = {{"a", 2}, {"b", 7}, {"c", 1}, {"d", 5}};
  EXPECT_EQ(
      record.all_refused(),
      "gla.subject: none of the 15 cases drawn for it is taken: 7 of them: b; 5 of them: d; 2 of them: a; "
      "and 1 other reasons");
}

}  // namespace
}  // namespace assay
