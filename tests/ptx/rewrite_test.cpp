// Rounding modifiers made explicit.
#include "src/base/ptx/rewrite.h"

#include <gtest/gtest.h>

namespace assay::ptx {
namespace {

struct Row {
  const char* from;
  const char* to;
};

TEST(MakeRoundingExplicit, GivesFloatOperationsTheRoundingThatTheyMean) {
  const Row rows[] = {
      {"mul.f32 %f1, %f2, %f3;", "mul.rn.f32 %f1, %f2, %f3;"},
      {"@%p1 add.ftz.f32 a, b, c;", "@%p1 add.rn.ftz.f32 a, b, c;"},
      {"sub.sat.f32 a, b, c;", "sub.rn.sat.f32 a, b, c;"},
      {"mad.f32 a, b, c, d;", "fma.rn.f32 a, b, c, d;"},
      {"add.f64 a, b, c;", "add.rn.f64 a, b, c;"},
      {"mul.bf16x2 a, b, c;", "mul.rn.bf16x2 a, b, c;"},
      {"\tadd.f32\ta,b,c;", "\tadd.rn.f32\ta,b,c;"},
      {"L:add.f32 a,b,c;", "L:add.rn.f32 a,b,c;"},
      {"\"a\\\" /*\" add.f32 a,b,c;", "\"a\\\" /*\" add.rn.f32 a,b,c;"},
  };
  for (const Row& row : rows) EXPECT_EQ(make_rounding_explicit(row.from), row.to);
}

TEST(MakeRoundingExplicit, LeavesEverythingElseAsItIs) {
  for (const char* text : {"add.rn.f32 a, b, c;", "mul.rz.ftz.f32 a, b, c;", "add.s32 a, b, c;",
                           "mul.lo.u64 a, b, c;", "mad.lo.s32 a, b, c, d;", "// mul.f32 in a comment\n",
                           "/* add.f32 */", ".file 1 \"mul.f32\"", "call (r), mul.f32x;", "$add.f32: ret;",
                           "fma.rn.f32 a, b, c, d;", "atom.global.add.f32 a, [b], c;", "red.add.f32 [a], b;"})
    EXPECT_EQ(make_rounding_explicit(text), text);
}

}  // namespace
}  // namespace assay::ptx
