#include "src/verification/verify/verdict.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Verification with_output(const char* name, int64_t OutputComparison::*count) {
  Verification v;
  OutputComparison output;
  output.name = name;
  output.*count = 1;
  v.outputs.push_back(output);
  return v;
}

TEST(Verdict, TheWorstFaultGivesTheCause) {
  Verification v = with_output("o", &OutputComparison::undecided);
  decide(v);
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_EQ(v.cause, "undecided/o");
  v.properties_failed = {"same-bits-twice: 3 elements"};
  decide(v);
  EXPECT_EQ(v.cause, "property/same-bits-twice");
  v.outputs[0].violation = 1;
  decide(v);
  EXPECT_EQ(v.cause, "violation/o");
  v.outputs[0].wrong_class = 1;
  decide(v);
  EXPECT_EQ(v.cause, "wrong-class/o");
  v.outputs[0].nonfinite = 1;
  decide(v);
  EXPECT_EQ(v.cause, "nonfinite/o");
  v.origin = Origin{};
  v.origin->kind = OriginKind::exp_overflow;
  v.origin->where = {"kernels/x.cu", 12, 99, "x"};
  decide(v);
  EXPECT_EQ(v.cause, "nonfinite/o/exp-overflow/kernels/x.cu:12");
  v.trap = Trap{TrapKind::hang, "", {"", 0, 99, "entry"}, {}, {}};
  decide(v);
  EXPECT_EQ(v.cause, "trap/hang/entry:ptx:99");
  v.properties_failed.clear();
  v.domain = {"g = 1"};
  decide(v);
  EXPECT_EQ(v.verdict, Verdict::domain);
}

TEST(Verdict, NothingWrongIsAPassWithoutACause) {
  Verification v = with_output("o", &OutputComparison::ok);
  v.cause = "left over";
  decide(v);
  EXPECT_EQ(v.verdict, Verdict::pass);
  EXPECT_EQ(v.cause, "");
}

}  // namespace
}  // namespace assay
