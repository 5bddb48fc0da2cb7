// Global memory that a run reads, writes and leaves.
#include "src/campaign/mutate/footprint.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

/// One thread; x holds 0, 1, 2, y and the workspace w have two words.
Footprint footprint(const std::string& body) {
  Program plan;
  plan.name = "small";
  plan.modules = {
      {"m", "small.ptx",
       std::make_shared<const std::string>(
           ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 px, .param "
           ".u64 py, .param .u64 pw) {\n.reg .b64 %x, %y, %w; .reg .f32 %f, %g;\nld.param.u64 %x, "
           "[px]; ld.param.u64 %y, [py]; ld.param.u64 %w, [pw];\n" +
           body + "\nret;\n}\n")}};
  Tensor x("x", Dtype::fp32, {{"T", 3}});
  for (int64_t i = 0; i < 3; ++i) x.set(i, static_cast<double>(i));
  plan.outputs = {{"y", Dtype::fp32, {{"T", 2}}}};
  plan.workspaces = {{"w", 8, ""}};
  plan.launches = {
      {.module = "m",
       .function = "f",
       .arguments = {PointerArgument{"x", 0}, PointerArgument{"y", 0}, PointerArgument{"w", 0}}}};
  return footprint_of(plan, {{"x", x}}, {});
}

TEST(Footprint, HoldsBytesReadWrittenAndLeft) {
  const std::string both = "ld.global.f32 %f, [%x]; ld.global.f32 %g, [%x+4]; ";
  const Footprint base = footprint(both + "st.global.f32 [%y], %f;");
  EXPECT_TRUE(base.within(base));
  EXPECT_TRUE(footprint("ld.global.f32 %f, [%x]; st.global.f32 [%y], %f;").within(base)) << "reads less";
  EXPECT_TRUE(footprint("ld.global.v2.f32 {%f, %g}, [%x]; st.global.f32 [%y], %f;").within(base))
      << "at once";
  for (const std::string& other :
       {both + "ld.global.f32 %g, [%x+8]; st.global.f32 [%y], %f;", both + "st.global.f32 [%y+4], %f;",
        both + "st.global.f32 [%y], %g;", both + "st.global.f32 [%y], %f; st.global.f32 [%w], %f;", both,
        both + "st.global.f32 [%y], %f; st.global.f32 [%y+8], %f;"})
    EXPECT_FALSE(footprint(other).within(base)) << other;
  EXPECT_TRUE(footprint(both + "st.global.f32 [%y], %g;").reaches_within(base)) << "whatever is left";
  EXPECT_FALSE(footprint(both + "st.global.f32 [%y+4], %f;").reaches_within(base));
  EXPECT_FALSE(footprint(both + "ld.global.f32 %g, [%x+8]; st.global.f32 [%y], %f;").reaches_within(base));
}

TEST(Footprint, SpecialValuesAreZerosOfBothSignsOrSomeOfEverything) {
  Tensor x("x", Dtype::bf16, {{"T", 4000}});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, 3);
  const auto count = [](const TensorMap& inputs, bool (*is)(double)) {
    int64_t n = 0;
    for (int64_t i = 0; i < inputs.at("x").size(); ++i) n += is(inputs.at("x").value(i));
    return n;
  };
  const TensorMap zeros = with_special_values({{"x", x}}, SpecialValues::zeros, 1),
                  some = with_special_values({{"x", x}}, SpecialValues::sprinkled, 1);
  EXPECT_EQ(count(zeros, [](double v) { return v == 0; }), x.size());
  EXPECT_GT(count(zeros, [](double v) { return std::signbit(v); }), 1000);
  EXPECT_GT(count(some, [](double v) { return v == 3; }), 3500);
  for (bool (*is)(double) :
       {+[](double v) { return v == 0; }, +[](double v) { return std::isinf(v); },
        +[](double v) { return std::isnan(v); }, +[](double v) { return v != 0 && std::abs(v) < 1e-30; }})
    EXPECT_GT(count(some, is), 10);
}

}  // namespace
}  // namespace assay
