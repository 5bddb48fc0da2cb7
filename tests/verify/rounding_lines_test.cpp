// Which lines are named where roundings alone are wrong.
#include "src/verification/verify/rounding_lines.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"

namespace assay {
namespace {

/// The sum is rounded at each of its steps, and once more where it is stored: optimised, there alone.
TEST(RoundingLines, ARoundingThatIsDoneAgainIsSeenWithoutOptimisation) {
  const Case c = parse_token("short_conv.fused@U55/B1/T7/H1/K2/V2/bf16/g-fp32/none/s1");
  VerifyOptions options;
  options.threads = 2, options.twice = false, options.checks = vm::Checks::none();
  const auto backend = make_vm_backend({});
  const Verification v = verify(c, find_kernel(c.kernel), *backend, options);
  const auto at = [&](int line) {
    return std::find_if(v.lines.begin(), v.lines.end(), [&](const SuspectLine& l) {
      return l.at.where.file.ends_with("kernels/short_conv/fused.cu") && l.at.where.line == line;
    });
  };
  ASSERT_NE(at(82), v.lines.end());
  ASSERT_NE(at(79), v.lines.end());
  EXPECT_EQ(at(82)->reason, "100.0 % of all rounding errors");
  EXPECT_EQ(at(79)->reason, "compiled without optimisation, 100.0 % of all rounding errors");
  EXPECT_EQ(at(79)->at.where.ptx_line, 0);
}

}  // namespace
}  // namespace assay
