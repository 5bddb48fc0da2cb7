#include "fuzz/cost.h"

#include <gtest/gtest.h>

#include "src/verify/verify.h"

namespace assay {
namespace {

TEST(Cost, TheEstimateIsWithinAFactorOfFourOfWhatTheMachineCounts) {
  BackendOptions options;
  options.threads = 1;
  const auto backend = make_vm_backend(options);
  VerifyOptions once;
  once.threads = 1;
  once.twice = false;
  for (const Kernel& kernel : kernels())
    for (const char* sizes : {"T200/H1/K64/V64", "T200/H2/K16/V32", "T600/H1/K32/V32", "T200/H1/K128/V96"}) {
      const Case c = parse_token(kernel.name + "/B1/" + sizes + "/bf16/mild");
      const auto counted = static_cast<double>(verify(c, kernel, *backend, once).lane_instructions);
      EXPECT_GT(estimated_cost(c), counted / 4) << token_of(c);
      EXPECT_LT(estimated_cost(c), counted * 4) << token_of(c);
    }
}

TEST(Cost, GrowsWithEverySize) {
  const char* smaller = "gla.chunk/B1/T100/H1/K32/V32";
  for (const char* larger :
       {"gla.chunk/B2/T100/H1/K32/V32", "gla.chunk/B1/T200/H1/K32/V32", "gla.chunk/B1/T100/H2/K32/V32",
        "gla.chunk/B1/T100/H1/K64/V32", "gla.chunk/B1/T100/H1/K32/V64"})
    EXPECT_GT(estimated_cost(parse_token(larger)), estimated_cost(parse_token(smaller))) << larger;
}

}  // namespace
}  // namespace assay
