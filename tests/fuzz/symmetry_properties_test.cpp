// Properties across heads, batch entries, scales and layouts: each sees its own fault, and is asked only
// where it can be.
#include "tests/fuzz/property_twins.h"

namespace assay {

std::vector<test::Twin> test::symmetry_twins() {
  return {
      {"neighbours-poisoned", "a neighbour's NaN shows", "gla.subject/B1/T20/H3/K4/V3/fp32/g-fp32/mild/s3"},
      {"neighbours-poisoned", "a neighbour's NaN shows", "gla.subject/B2/T20/H1/K4/V3/fp32/g-fp32/mild/s3"},
      {"neighbours-poisoned", "a neighbour's NaN shows",
       "gla.subject/B1/T50/H1/K4/V3/cu0,11,11,50/fp32/g-fp32/mild/s3"},
      {"heads-permute", "first head differs", "gla.subject/B2/T20/H3/K4/V3/fp32/g-fp32/mild/s3/h0"},
      {"strided-equals-dense", "views differ",
       "gla.subject/B1/T20/H2/K4/V3/fp32/g-fp32/mild/s3/l-q=heads-first"},
      {"power-of-two-scale", "scale matters", "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3/scale-0.5"},
  };
}

namespace {

TEST(SymmetryProperties, EachSeesItsOwnFaultAndIsSilentWithoutIt) {
  test::expect_seen(test::symmetry_twins());
}

TEST(SymmetryProperties, AreNotAskedWhereNothingCanBeExchanged) {
  const Kernel kernel = test::subject_kernel();
  const std::string alone = "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3",
                    heads = "gla.subject/B1/T20/H2/K4/V3/fp32/g-fp32/mild/s3";
  for (const char* property : {"neighbours-poisoned", "heads-permute"}) {
    EXPECT_FALSE(test::applies(property, alone, kernel)) << property;
    EXPECT_TRUE(test::applies(property, heads, kernel)) << property;
  }
  EXPECT_FALSE(test::applies("strided-equals-dense", alone, kernel));
  EXPECT_TRUE(test::applies("strided-equals-dense", heads + "/l-q=heads-first", kernel));
}

/// Heads whose number enters the operator are not exchanged; decays that vanish underflow, and softmax is no
/// multiple of its scale.
TEST(SymmetryProperties, AreNotAskedWhereTheOperatorHasNoSuchSymmetry) {
  const std::string heads = "/B1/T20/H2/K4/V3/fp32/g-fp32/none/s3";
  const Kernel &retention = find_kernel("retention.chunk"), &gla = find_kernel("gla.chunk"),
               &gsa = find_kernel("gsa.chunk");
  EXPECT_FALSE(test::applies("heads-permute", "retention.chunk" + heads, retention));
  EXPECT_TRUE(test::applies("heads-permute", "gla.chunk" + heads, gla));
  EXPECT_TRUE(test::applies("power-of-two-scale", "gla.chunk" + heads, gla));
  EXPECT_FALSE(test::applies("power-of-two-scale", "gla.chunk/B1/T20/H2/K4/V3/fp32/g-fp32/extreme/s3", gla));
  EXPECT_FALSE(test::applies("power-of-two-scale", "gsa.chunk/B1/T20/H2/K4/V3/M4/fp32/g-fp32/none/s3", gsa));
}

}  // namespace
}  // namespace assay
