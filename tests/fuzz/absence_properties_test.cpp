// Properties of optional inputs: each sees its own fault, and is asked only where it can be.
#include "tests/fuzz/property_twins.h"

namespace assay {

std::vector<test::Twin> test::absence_twins() {
  return {
      {"absent-equals-zero-cotangent", "absent cotangent differs",
       "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3/backward"},
      {"absent-equals-zero-gate", "absent gate differs",
       "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/none/s3/no-g"},
      {"absent-equals-zero-gate", "absent gate differs",
       "gla.subject/B1/T20/H1/K4/V3/fp32/g-bf16/mild/s3/h0"},
      {"absent-equals-zero-state", "absent state differs", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3"},
  };
}

namespace {

TEST(AbsenceProperties, EachSeesItsOwnFaultAndIsSilentWithoutIt) {
  test::expect_seen(test::absence_twins());
}

/// An absent gate of gsa is no gate of zeros; without gradients there is no cotangent; a kernel that takes no
/// absent gate is not given one.
TEST(AbsenceProperties, AreNotAskedWhereAbsenceMeansSomethingElse) {
  const std::string forward = "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3";
  Kernel kernel = test::subject_kernel();
  EXPECT_TRUE(test::applies("absent-equals-zero-gate", forward, kernel));
  EXPECT_FALSE(test::applies("absent-equals-zero-cotangent", forward, kernel));
  EXPECT_TRUE(test::applies("absent-equals-zero-cotangent", forward + "/backward", kernel));
  kernel.refuses = [](const ResolvedCase& c) { return c.case_.without.empty() ? "" : "wants its gate"; };
  EXPECT_FALSE(test::applies("absent-equals-zero-gate", forward, kernel));
  EXPECT_FALSE(test::applies("absent-equals-zero-gate", "gsa.chunk/B1/T20/H2/K4/V3/M4/fp32/g-fp32/none/s3",
                             find_kernel("gsa.chunk")));
}

}  // namespace
}  // namespace assay
