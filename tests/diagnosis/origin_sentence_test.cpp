#include "src/diagnosis/origin_sentence.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

OriginTrace overflow() {
  OriginTrace trace;
  trace.origin.kind = "exp-overflow";
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

}  // namespace
}  // namespace assay
