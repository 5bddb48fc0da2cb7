#include "fuzz/properties.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/numerics/bad_input.h"
#include "tests/fuzz/property_twins.h"

namespace assay {
namespace {

TEST(Properties, EveryRowHasATwin) {
  std::vector<test::Twin> twins;
  for (const auto& part :
       {test::absence_twins(), test::one_run_twins(), test::symmetry_twins(), test::time_twins()})
    twins.insert(twins.end(), part.begin(), part.end());
  for (const Property& property : properties()) {
    if (property.name == "exponents-nonpositive" || property.name == "same-bits-on-peer" ||
        property.name == "formula" || property.name == "declared-roundings" ||
        property.name == "repeats-stay-finite" || property.share == kByCost)
      continue;  // they need a machine that reports exponents, a second engine, PTX, a format that rounds, or
                 // an operator that takes from its state
    EXPECT_TRUE(std::any_of(twins.begin(), twins.end(), [&](const test::Twin& twin) {
      return twin.property == property.name;
    })) << property.name;
  }
}

TEST(Properties, TheFailureNamesTheElementAndBothValues) {
  test::SubjectBackend broken("first head differs");
  const Verification v = test::judged("gla.subject/B1/T20/H3/K4/V3/fp32/g-fp32/mild/s3/h0", broken);
  for (const std::string& line : v.properties_failed) {
    if (line.rfind("heads-permute:", 0) != 0) continue;
    EXPECT_NE(line.find("o[b=0,t=0,h=0,v=0]"), std::string::npos) << line;
    EXPECT_NE(line.find("(0x"), std::string::npos) << line;
  }
  EXPECT_TRUE(test::names(v, "heads-permute"));
}

TEST(Properties, AFailureOfAPropertyAloneBecomesTheCause) {
  test::SubjectBackend broken("length matters");
  const Verification v = test::judged("gla.subject/B1/T50/H1/K4/V3/fp32/g-fp32/mild/s30", broken);
  EXPECT_EQ(v.cause, "property/split-and-resume");
}

TEST(Properties, AKernelThatRefusesTheChangedCaseIsNotJudgedByIt) {
  Kernel kernel = test::subject_kernel();
  const auto plan = kernel.plan;
  kernel.plan = [plan](const ResolvedCase& c, const TensorMap& inputs) {
    if (!c.case_.cu_seqlens.empty()) throw BadInput("no packed sequences");
    return plan(c, inputs);
  };
  test::SubjectBackend backend;
  const Verification v =
      verify(parse_token("gla.subject/B2/T20/H1/K4/V3/fp32/g-fp32/mild/s3"), kernel, backend);
  EXPECT_TRUE(check_properties(v, kernel, backend, {&find_property("packed-equals-separate")}).empty());
}

TEST(Properties, AnUnknownNameIsBadInputThatListsTheRows) {
  EXPECT_THROW(find_property("cauality"), BadInput);
}

}  // namespace
}  // namespace assay
