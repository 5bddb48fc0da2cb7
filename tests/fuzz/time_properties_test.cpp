// Properties along time: each sees its own fault, and is asked only where it can be.
#include "tests/fuzz/property_twins.h"

namespace assay {

std::vector<test::Twin> test::time_twins() {
  return {
      {"causality", "sees the future", "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s6"},
      {"split-and-resume", "length matters", "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30"},
      {"causality", "gradient of the past sees the future",
       "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s6/backward/dht"},
      {"causality", "gradients out of nothing", "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s6/both"},
      {"split-and-resume", "length matters to gradients",
       "gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30/backward/h0/dht"},
      {"packed-equals-separate", "packing matters",
       "gla.subject/B1/T50/H1/K4/V3/cu0,11,11,50/fp32/g-fp32/mild/s3"},
      {"packed-equals-separate", "packing matters", "gla.subject/B2/T20/H1/K4/V3/fp32/g-fp32/mild/s3"},
  };
}

namespace {

TEST(TimeProperties, EachSeesItsOwnFaultAndIsSilentWithoutIt) {
  test::expect_seen(test::time_twins());
}

/// Part of it is another sum, and in another order it has other bits.
TEST(TimeProperties, AGradientThatSequencesShareIsNotComparedBitForBit) {
  BackendOptions machine;
  machine.threads = 1;
  const auto backend = make_vm_backend(machine);
  const Kernel& kernel = find_kernel("simple_gla.fused_recurrent");
  for (const char* token : {"B3/T40/H2/K4/V3/fp32/g-fp32/mild/s3/both/no-g/h0",
                            "B1/T50/H1/K4/V3/cu0,11,11,50/fp32/g-fp32/mild/s3/backward/no-g"}) {
    VerifyOptions options;
    options.threads = 1;
    Verification v = verify(parse_token(kernel.name + "/" + token), kernel, *backend, options);
    judge_properties(v, kernel, *backend);
    EXPECT_EQ(v.verdict, Verdict::pass) << token;
    EXPECT_TRUE(v.properties_failed.empty()) << token << ": " << v.properties_failed.front();
  }
}

TEST(TimeProperties, AreNotAskedWhereThereIsNothingToCut) {
  Kernel kernel = test::subject_kernel();
  const std::string one = "gla.subject/B1/T1/H1/K4/V3/fp32/g-fp32/mild/s3",
                    more = "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3";
  const std::string packed = "gla.subject/B1/T20/H1/K4/V3/cu0,11,20/fp32/g-fp32/mild/s3";
  for (const char* property : {"causality", "split-and-resume"}) {
    EXPECT_FALSE(test::applies(property, one, kernel)) << property;
    EXPECT_FALSE(test::applies(property, packed, kernel)) << property;
    EXPECT_TRUE(test::applies(property, more, kernel)) << property;
  }
  EXPECT_FALSE(test::applies("packed-equals-separate", more, kernel));
  EXPECT_TRUE(test::applies("packed-equals-separate", packed, kernel));
  kernel.resume_granularity = 64;
  EXPECT_FALSE(test::applies("split-and-resume", more, kernel));
}

}  // namespace
}  // namespace assay
