// What mutants of a case share.
#include "src/campaign/mutate/clean_case.h"

#include <gtest/gtest.h>

#include "tests/mutate/subject.h"

namespace assay {
namespace {

TEST(CleanCase, HoldsTheKernelsBitsAndJudgesOthersAgainstThem) {
  const CleanCase clean = make_clean_case(small_case("exact"), subject(), one_thread(), 4'000'000);
  EXPECT_EQ(clean.fault, "");
  EXPECT_FALSE(clean.properties.empty());
  EXPECT_TRUE(judged(clean, subject(), clean.outcome, &clean.outcome).outputs.empty());
  EXPECT_EQ(judged(clean, subject(), clean.outcome, nullptr).outputs.size(), 2u);

  Outcome changed = clean.outcome;
  Tensor& o = changed.outputs.at("o");
  o.set(3, o.value(3) + 1);
  const Verification v = judged(clean, subject(), changed, &clean.outcome);
  ASSERT_EQ(v.outputs.size(), 1u);
  EXPECT_EQ(v.cause, "violation/o");

  Outcome trapped;
  trapped.trap = Trap{TrapKind::hang, "", {}, {}, {}};
  EXPECT_EQ(judged(clean, subject(), trapped, &clean.outcome).verdict, Verdict::finding);
}

TEST(CleanCase, LongOnesHaveNoProperties) {
  EXPECT_TRUE(make_clean_case(small_case(), subject(), one_thread(), 10).properties.empty());
}

}  // namespace
}  // namespace assay
