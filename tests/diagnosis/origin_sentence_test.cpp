#include "src/verification/diagnosis/origin_sentence.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

OriginTrace overflow() {
  OriginTrace trace;
  trace.origin.kind = OriginKind::exp_overflow;
  trace.origin.element = "o[b=0,t=8,h=0,v=0]";
  trace.origin.instruction = "ex2.approx.ftz.f32 %f1, %f2";
  trace.origin.where.file = "scores.cuh";
  trace.origin.where.line = 174;
  trace.origin.operands.push_back({"%f2", "f32", 144.27, 0});
  trace.origin.result = INFINITY;
  return trace;
}

TEST(OriginSentence, TheInputNamedIsTheOneThatNeedsTheLeastChange) {
  OriginTrace trace = overflow();
  trace.origin.inputs = {{"g[8]", -100, "-1.13e+04"}, {"g[9]", -100, "-88.7"}, {"q[8]", 1, "1e-05"}};
  EXPECT_EQ(
      origin_sentence(trace),
      "ex2.approx.ftz.f32 at scores.cuh:174 got 144.27 and gave inf because g[9] = -100 (-88.7 would be "
      "finite), on the way to o[b=0,t=8,h=0,v=0]");
}

TEST(OriginSentence, WhereNoSingleInputHelpsTheLargestIsNamed) {
  OriginTrace trace = overflow();
  trace.origin.inputs = {{"g[8]", -100, ""}, {"g[9]", -90, ""}};
  EXPECT_NE(origin_sentence(trace).find(" because g[8] = -100, on the way"), std::string::npos)
      << origin_sentence(trace);
}

TEST(OriginSentence, CountsInputsWhereTheyAreMany) {
  OriginTrace trace = overflow();
  trace.origin.inputs = {{"g[8]", -100, ""}};
  trace.origin.inputs.resize(8, trace.origin.inputs.front());
  EXPECT_EQ(origin_sentence(trace).find(" inputs, as "), std::string::npos);
  trace.origin.inputs.resize(9, trace.origin.inputs.front());
  EXPECT_NE(origin_sentence(trace).find("because of 9 inputs, as g[8]"), std::string::npos);
}

TEST(OriginSentence, TellsWhereTheInfinityBecameNan) {
  OriginTrace trace = overflow();
  trace.nan_kind = OriginKind::zero_times_infinity;
  trace.nan_at.where = {"a.cu", 20, 400, "k"};
  EXPECT_NE(origin_sentence(trace).find("; zero-times-infinity at a.cu:20 made it NaN, on"),
            std::string::npos);
  trace.origin.result = NAN;
  EXPECT_EQ(origin_sentence(trace).find("made it NaN"), std::string::npos);
}

TEST(OriginSentence, HasAFormForEveryKindThatIsNoArithmetic) {
  const struct {
    OriginKind kind;
    const char *instruction, *expected;
  } rows[] = {
      {OriginKind::unwritten_memory, "", "o[b=0,t=8,h=0,v=0] was never written"},
      {OriginKind::unwritten_memory, "ld.shared.f32 %f1, [%r1]",
       "ld.shared.f32 at scores.cuh:174 read memory that nothing wrote, on the way to o[b=0,t=8,h=0,v=0]"},
      {OriginKind::unwritten_memory, "add.f32 %f1, %f2, %f3",
       "add.f32 at scores.cuh:174 used a value that nothing wrote, on the way to o[b=0,t=8,h=0,v=0]"},
      {OriginKind::input, "ld.global.f32 %f1, [%rd1]",
       "ld.global.f32 at scores.cuh:174 took a value that is not finite from an input because g[8] = -100, "
       "on the way to o[b=0,t=8,h=0,v=0]"},
      {OriginKind::literal, "mov.f32 %f1, 0f7F800000",
       "mov.f32 at scores.cuh:174 used a literal that is not finite, on the way to o[b=0,t=8,h=0,v=0]"},
  };
  for (const auto& row : rows) {
    OriginTrace trace = overflow();
    trace.origin.inputs = {{"g[8]", -100, ""}};
    trace.origin.kind = row.kind;
    trace.origin.instruction = row.instruction;
    EXPECT_EQ(origin_sentence(trace), row.expected);
  }
}

TEST(OriginSentence, NamesThePtxLineWhereTheSourceLineIsUnknown) {
  OriginTrace trace = overflow();
  trace.origin.where = {"a.ptx", 0, 340, "k"};
  EXPECT_NE(origin_sentence(trace).find("at a.ptx, PTX line 340 got"), std::string::npos);
  trace.origin.where = {"", 0, 0, "k"};
  EXPECT_NE(origin_sentence(trace).find("at k got"), std::string::npos);
}

}  // namespace
}  // namespace assay
