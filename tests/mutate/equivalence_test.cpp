// Static arguments for equivalence: each with a twin that has none.
#include "src/campaign/mutate/equivalence.h"

#include <gtest/gtest.h>

#include "tests/mutate/small_program.h"

namespace assay {
namespace {

/// The argument for the first mutant by the name of its change ("add-to-sub"), of one line of the body where
/// that stands before it ("8+add-to-sub"; the first is 7); or "none".
std::string argument(const std::string& body, const std::string& change) {
  const ptx::MutableText text = small_program(body);
  for (const ptx::Mutation& m : text.mutations(0)) {
    const std::string name = text.name(m);
    if (name != change && name.substr(name.find('+') + 1) != change) continue;
    const std::string why =
        why_equivalent(text.module(), ptx::parse(text.with(m), "test.ptx"), m, {{1}, {}, {1}, {}, {}});
    return why.empty() ? "none" : why;
  }
  return "no such mutant";
}

TEST(Equivalence, IsArguedOnlyWhereItHolds) {
  const std::string store = " st.global.u32 [%rd1], %r1;", choice = " st.global.u32 [%rd1], %r3;";
  const std::string division =
      "or.b64 %rd4, %rd2, %rd3; and.b64 %rd5, %rd4, MASK; setp.eq.s64 %p1, %rd5, 0; @%p1 bra $L_short; "
      "div.s64 %rd6, %rd2, %rd3; bra $L_both; $L_short: cvt.u32.u64 %r1, %rd3; cvt.u32.u64 %r2, %rd2; "
      "div.u32 %r3, %r2, %r1; cvt.u64.u32 %rd6, %r3; $L_both: st.global.u64 [%rd1], %rd6;";
  const auto masked = [&](const char* mask) {
    return std::string(division).replace(division.find("MASK"), 4, mask);
  };
  const auto one_operand = [&](const char* mask) {
    return masked(mask).replace(0, masked(mask).find("and.b64"), "mov.b64 %rd4, %rd2; ");
  };
  const std::string sum = " st.global.f32 [%rd1], %f3;",
                    product =
                        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, "
                        "{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};";
  const std::string both_ways = masked("-4294967296"), other_mask = masked("-65536");
  const struct {
    const char* change;
    std::string equivalent, not_equivalent;
    const char* words;
  } rows[] = {
      {"zero-result", "mov.u32 %r2, %tid.x; mov.u32 %r1, 5;", "mov.u32 %r1, %tid.x;" + store,
       "nothing that is stored"},
      {"shift-constant", "ld.param.u32 %r2, [n]; shr.s32 %r1, %r2, 31;" + store,
       "ld.param.u32 %r2, [n]; shr.s32 %r1, %r2, 30;" + store, "its result is 0"},
      {"shift-constant", "ld.global.u32 %r2, [%rd1]; shr.s32 %r1, %r2, 31;" + store,
       "ld.global.u32 %r2, [%rd1]; shr.u32 %r1, %r2, 31;" + store, "moves every bit out"},
      {"add-to-sub", "mov.u32 %r3, %tid.x; shr.s32 %r2, %r3, 31; add.s32 %r1, %r3, %r2;" + store,
       "mov.u32 %r3, %tid.x; shr.s32 %r2, %r3, 3; add.s32 %r1, %r3, %r2;" + store, "is 0 for all values"},
      {"compare-edge", "setp.lt.s32 %p1, %r1, %r2; selp.b32 %r3, %r1, %r2, %p1;" + choice,
       "setp.lt.s32 %p1, %r1, %r2; selp.b32 %r3, %r1, %r4, %p1;" + choice, "either is chosen"},
      {"8+compare-edge",
       "mov.u32 %r2, %tid.x;\nsetp.gt.s32 %p1, %r2, 4095;\n@%p1 bra $L_end; ld.global.u32 %r2, [%rd1];" +
           store,
       "ld.global.u32 %r2, [%rd1];\nsetp.gt.s32 %p1, %r2, 4095;\n@%p1 bra $L_end; mov.u32 %r2, %tid.x;" +
           store,
       "its result is 0"},
      {"drop-guard", "mov.u32 %r2, %tid.x; setp.lt.s32 %p1, %r2, 1024; @%p1 bra $L_end;" + store,
       "mov.u32 %r2, %tid.x; setp.lt.s32 %p1, %r2, 1023; @%p1 bra $L_end;" + store, "always holds"},
      {"drop-branch", "mov.u32 %r2, %tid.x; setp.gt.s32 %p1, %r2, 1023; @%p1 bra $L_end;" + store,
       "mov.u32 %r2, %tid.x; setp.gt.s32 %p1, %r2, 1022; @%p1 bra $L_end;" + store, "never holds"},
      {"change-rounding", "mov.u32 %r1, %tid.x; cvt.rn.f32.s32 %f1, %r1; st.global.f32 [%rd1], %f1;",
       "ld.global.u32 %r1, [%rd1]; cvt.rn.f32.s32 %f1, %r1; st.global.f32 [%rd1], %f1;", "exact in fp32"},
      {"zero-result", "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; st.global.f32 [%rd1], %f2;",
       "mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; st.global.f32 [%rd1], %f2;", "always that literal"},
      {"change-rounding",
       "mov.f32 %f1, 0f00000000; ld.global.f32 %f2, [%rd1]; add.rn.f32 %f3, %f2, %f1; st.global.f32 [%rd1], "
       "%f3;",
       "mov.f32 %f1, 0f00000001; ld.global.f32 %f2, [%rd1]; add.rn.f32 %f3, %f2, %f1; st.global.f32 [%rd1], "
       "%f3;",
       "always 0"},
      {"9+zero-result",
       "mov.f32 %f1, 0f00000000;\n$L_loop:\nmov.f32 %f2, %f1; st.global.f32 [%rd1], %f2; ld.global.f32 %f1, "
       "[%rd1];",
       "mov.f32 %f1, 0f00000000;\n$L_loop:\nmov.f32 %f2, %f1; st.global.f32 [%rd1], %f2; ld.global.f32 %f1, "
       "[%rd1]; "
       "@%p1 bra $L_loop;",
       "always that literal"},
      {"9+zero-result", "mov.f32 %f1, 0f00000000;\n$L_a:\nmov.f32 %f2, %f1; st.global.f32 [%rd1], %f2;",
       "@%p1 bra $L_a; mov.f32 %f1, 0f00000000;\n$L_a:\nmov.f32 %f2, %f1; st.global.f32 [%rd1], %f2;",
       "always that literal"},
      {"8+shift-constant", "mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 4;\nand.b32 %r1, %r3, 496;" + store,
       "mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 4;\nand.b32 %r1, %r2, 496;" + store, "dropped before"},
      {"8+shift-constant",
       "ld.global.u64 %rd2, [%rd1]; shl.b64 %rd3, %rd2, 32;\nadd.s64 %rd4, %rd3, 4294967296;\nshr.s64 %rd5, "
       "%rd4, 32; "
       "st.global.u64 [%rd1], %rd5;",
       "ld.global.u64 %rd2, [%rd1]; shl.b64 %rd3, %rd2, 32;\nadd.s64 %rd4, %rd2, 4294967296;\nshr.s64 %rd5, "
       "%rd4, 32; "
       "st.global.u64 [%rd1], %rd5;",
       "dropped before"},
      {"8+shift-constant.2",
       "mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 5;\nadd.s32 %r4, %r3, 16;\nand.b32 %r1, %r4, -32;" + store,
       "mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 4;\nadd.s32 %r4, %r3, 16;\nand.b32 %r1, %r4, -32;" + store,
       "dropped before"},
      {"8+shift-constant.3", "mov.u32 %r2, %tid.x;\nbfi.b32 %r1, %r2, %r3, 6, 26;" + store,
       "mov.u32 %r2, %tid.x;\nbfi.b32 %r1, %r2, %r3, 6, 25;" + store, "dropped before"},
      {"swap-sources",
       "ld.param.u32 %r1, [n]; shr.s32 %r2, %r1, 31; shr.u32 %r3, %r2, 30; add.s32 %r3, %r1, %r3;" + choice,
       "ld.param.u32 %r1, [n]; shr.s32 %r2, %r1, 31; shr.u32 %r3, %r2, 4; add.s32 %r3, %r1, %r3;" + choice,
       "one and the same value"},
      {"8+change-rounding", "cvt.rna.tf32.f32 %r1, %f1; mov.b32 %f2, %r1;\nsub.rn.f32 %f3, %f1, %f2;" + sum,
       "cvt.rna.tf32.f32 %r1, %f4; mov.b32 %f2, %r1;\nsub.rn.f32 %f3, %f1, %f2;" + sum, "nearest tf32"},
      {"round-to-bf16", "mul.rn.f32 %f3, %f1, %f2; cvt.rn.bf16x2.f32 %r1, %f3, %f1;" + store,
       "mul.rn.f32 %f3, %f1, %f2; cvt.rn.f16x2.f32 %r1, %f3, %f1;" + store, "rounds it to bf16"},
      {"8+swap-sources",
       "mov.f32 %f1, 0f00000000; cvt.rna.tf32.f32 %r1, %f1; mov.b32 %f2, %r1;\nsub.rn.f32 %f3, %f1, %f2;" +
           sum,
       "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f00000000;\nsub.rn.f32 %f3, %f1, %f2;" + sum,
       "always the same"},
      {"8+change-rounding",
       "ld.global.u32 %r2, [%rd1]; shl.b32 %r3, %r2, 16; mov.b32 %f1, %r3;\ncvt.rna.tf32.f32 %r1, %f1;" +
           store,
       "ld.global.u32 %r2, [%rd1]; shl.b32 %r3, %r2, 8; mov.b32 %f1, %r3;\ncvt.rna.tf32.f32 %r1, %f1;" +
           store,
       "few enough bits"},
      {"swap-elements", product + " st.global.f32 [%rd1], %f4;", product + " st.global.f32 [%rd1], %f2;",
       "the elements that change"},
      {"swap-elements", "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1]; st.global.f32 [%rd1], %f4;",
       "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1]; st.global.f32 [%rd1], %f2;", "the elements that change"},
      {"8+shift-constant",
       "setp.eq.s32 %p1, %r2, 0;\nmov.u32 %r1, 5;\n@%p1 bra $L_a; mov.u32 %r1, 7; $L_a: @%p1 bra $L_end;" +
           store,
       "setp.eq.s32 %p1, %r2, 0;\nmov.u32 %r1, 5;\n@%p1 bra $L_a; mov.u32 %r1, 7; $L_a: @%p2 bra $L_end;" +
           store,
       "overwritten"},
      {"drop-branch", both_ways, other_mask, "only slower"},
      {"and-to-or", one_operand("-4294967296"), one_operand("-65536"), "only slower"},
      {"fix-predicate.2", both_ways, other_mask, "only slower"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.equivalent);
    EXPECT_NE(argument(row.equivalent, row.change).find(row.words), std::string::npos)
        << argument(row.equivalent, row.change);
    EXPECT_EQ(argument(row.not_equivalent, row.change), "none") << row.not_equivalent;
  }
  EXPECT_EQ(argument(both_ways, "fix-predicate"), "none") << "the short way is not right for every operand";
  for (const char* change : {"invert-guard", "drop-guard", "compare-opposite"})
    EXPECT_EQ(argument(both_ways, change), "none") << change;
  EXPECT_NE(argument(both_ways, "shift-constant").find("only slower"), std::string::npos) << "one bit more";
  EXPECT_EQ(argument(both_ways, "shift-constant.2"), "none") << "bits less";
}

TEST(Equivalence, OfWhatIsNeverComeTo) {
  const std::string body =
      "ld.param.u64 %rd2, [a]; setp.eq.s64 %p1, %rd2, 0; @%p1 bra $L_end;\nst.global.u32 [%rd1], %r1;";
  const auto argued = [&](const ParameterRoles& roles) {
    const ptx::MutableText text = small_program(body);
    const ptx::Mutation m = text.named("8+drop-store");
    return why_equivalent(text.module(), ptx::parse(text.with(m), "test.ptx"), m, roles);
  };
  ParameterRoles null, place;
  null.nulls = {0}, place.places = {0};
  EXPECT_EQ(argued(null), "no way leads to it with what the kernel's plans pass");
  EXPECT_EQ(argued(place), "");
  EXPECT_EQ(argued({}), "");
}

}  // namespace
}  // namespace assay
