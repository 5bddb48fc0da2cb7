// Every kernel as a program of which nobody says what it computes: nothing is wrong with any of them.
#include <gtest/gtest.h>

#include "src/case/case.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/check_program.h"

namespace assay {
namespace check_kernels_test {

/// Sizes that are no multiples of tiles; not every kernel takes every one.
std::vector<Case> cases_of(const Kernel& kernel) {
  std::vector<Case> cases;
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
    Case c;
    c.kernel = kernel.name, c.dtype = dtype;
    c.direction = dtype == Dtype::bf16 ? Direction::both : Direction::forward;
    c.T = 37, c.H = 2, c.K = 24, c.V = 20, c.M = kernel.operator_name == "gsa" ? 12 : 0;
    c.initial_state = true;
    try {
      accepted(c, kernel);
      cases.push_back(c);
    } catch (const BadInput&) {
      c.initial_state = false, c.direction = Direction::forward;
      try {
        accepted(c, kernel);
        cases.push_back(c);
      } catch (const BadInput&) {
      }
    }
  }
  return cases;
}

/// A quarter of the kernels, so that the tests share the time.
void expect_nothing_wrong(size_t quarter) {
  const std::vector<Kernel>& all = kernels();
  int checked = 0;
  for (size_t i = quarter; i < all.size(); i += 4)
    for (const Case& c : cases_of(all[i])) {
      const ResolvedCase resolved = accepted(c, all[i]);
      const TensorMap inputs = draw_inputs(resolved);
      ProgramCheckOptions options;
      options.machine.threads = 1;
      const Verification v =
          check_program(all[i].name, program_of(all[i], resolved, inputs), inputs, options);
      EXPECT_EQ(v.verdict, Verdict::pass)
          << token_of(c) << ": " << v.cause
          << (v.properties_failed.empty() ? "" : "; " + v.properties_failed[0]);
      for (const Repeat& r : v.repeats)
        EXPECT_TRUE(r.kind == RepeatKind::architecture || r.differing == 0) << token_of(c) << ": " << r.how;
      ++checked;
    }
  EXPECT_GE(checked, 14);
}

TEST(CheckKernelsCampaign, NothingIsWrongWithTheFirstQuarter) {
  expect_nothing_wrong(0);
}
TEST(CheckKernelsCampaign, NothingIsWrongWithTheSecondQuarter) {
  expect_nothing_wrong(1);
}
TEST(CheckKernelsCampaign, NothingIsWrongWithTheThirdQuarter) {
  expect_nothing_wrong(2);
}
TEST(CheckKernelsCampaign, NothingIsWrongWithTheLastQuarter) {
  expect_nothing_wrong(3);
}

}  // namespace check_kernels_test
}  // namespace assay
