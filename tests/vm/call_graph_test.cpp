// Functions that lead back to themselves run in frames of their own; through an address they trap.
#include "src/base/vm/call_graph.h"

#include <gtest/gtest.h>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

/// A function that calls another with its argument and returns what that returns.
std::string passing_on(const std::string& name, const std::string& callee) {
  return ".func (.param .b32 r) " + name +
         "(.param .b32 x) { .reg .b32 %v; .param .b32 i; .param .b32 o; ld.param.b32 %v, [x]; st.param.b32 "
         "[i], %v; call (o), " +
         callee + ", (i); ld.param.b32 %v, [o]; st.param.b32 [r], %v; ret; }\n";
}
const std::string leaf =
    ".func (.param .b32 r) leaf(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x]; add.u32 %v, %v, 1; "
    "st.param.b32 [r], %v; ret; }\n";
std::string calling(const std::string& callee) {
  return "{ .param .b32 x0; .param .b32 r0; st.param.b32 [x0], %a; call (r0), " + callee +
         ", (x0); ld.param.b32 %d, [r0]; }";
}

/// Of different depths in the lanes of a warp.
TEST(CallGraph, AFunctionMayCallItself) {
  const std::string fibonacci =
      ".func (.param .b32 r) fib(.param .b32 x);\n.func (.param .b32 r) fib(.param .b32 x) {\n"
      ".reg .pred %p; .reg .b32 %v, %s, %q; .param .b32 i; .param .b32 o;\n"
      "ld.param.b32 %v, [x]; setp.lt.u32 %p, %v, 2; @%p bra SMALL;\n"
      "sub.u32 %q, %v, 1; st.param.b32 [i], %q; call (o), fib, (i); ld.param.b32 %s, [o];\n"
      "sub.u32 %q, %v, 2; st.param.b32 [i], %q; call (o), fib, (i); ld.param.b32 %q, [o];\n"
      "add.u32 %v, %s, %q;\nSMALL: st.param.b32 [r], %v; ret; }\n";
  std::vector<uint32_t> n(64), expected;
  for (uint32_t i = 0; i < 64; ++i) n[i] = i * 7 % 13;
  const uint32_t numbers[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};
  for (const uint32_t of : n) expected.push_back(numbers[of]);
  EXPECT_EQ(words_of(run_small({.declarations = fibonacci, .body = calling("fib"), .a = n, .threads = 64})),
            expected);
}

/// Each depth has variables of its own, which the ones below reach by their addresses.
TEST(CallGraph, AddressesOfVariablesLeadToTheFramesTheyWereTakenIn) {
  const std::string declared =
      ".func (.param .b32 r) outer(.param .b32 x, .param .b64 up);\n"
      ".func (.param .b32 r) outer(.param .b32 x, .param .b64 up) {\n"
      ".local .align 8 .b8 box[8]; .reg .pred %p; .reg .b32 %v, %w; .reg .b64 %up, %here; .param .b32 i; "
      ".param .b64 j; .param .b32 o;\n"
      "ld.param.b32 %v, [x]; ld.param.b64 %up, [up]; mov.u64 %here, box; cvta.local.u64 %here, %here;\n"
      "st.u32 [%here], %v; setp.eq.u32 %p, %v, 0; @%p bra END;\n"
      "sub.u32 %w, %v, 1; st.param.b32 [i], %w; st.param.b64 [j], %here; call (o), outer, (i, j);\n"
      "END: ld.local.u32 %w, [box]; ld.u32 %v, [%up]; mad.lo.u32 %v, %v, 10, %w; st.u32 [%up], %v;\n"
      "st.param.b32 [r], %w; ret; }\n";
  // Each adds its box, which those below have changed, to ten times the one above: 10, 30, ...
  const std::string body =
      ".param .b32 i; .param .b64 j; .param .b32 o; .local .align 8 .b8 top[8]; mov.u64 %rd1, top;\n"
      "cvta.local.u64 %rd1, %rd1; st.u32 [%rd1], %a; st.param.b32 [i], 3; st.param.b64 [j], %rd1;\n"
      "call (o), outer, (i, j); ld.u32 %d, [%rd1];";
  EXPECT_EQ(first_word({.declarations = declared, .body = body, .a = {5}}), 50u + 30u + 20u + 10u);
}

TEST(CallGraph, FunctionsMayLeadToEachOther) {
  const std::string forward =
      ".func (.param .b32 r) f(.param .b32 x);\n.func (.param .b32 r) g(.param .b32 x);\n";
  const auto one = [](const std::string& name, const std::string& other, int last) {
    return ".func (.param .b32 r) " + name +
           "(.param .b32 x) { .reg .pred %p; .reg .b32 %v; .param .b32 i; .param .b32 o;\n"
           "ld.param.b32 %v, [x]; setp.ne.u32 %p, %v, 0; sub.u32 %v, %v, 1; st.param.b32 [i], %v;\n"
           "mov.u32 %v, " +
           std::to_string(last) + "; @%p call (o), " + other +
           ", (i); @%p ld.param.b32 %v, [o]; st.param.b32 [r], %v; ret; }\n";
  };
  const std::string both = forward + one("f", "g", 100) + one("g", "f", 200);
  EXPECT_EQ(first_word({.declarations = both, .body = calling("f"), .a = {6}}), 100u);
  EXPECT_EQ(first_word({.declarations = both, .body = calling("f"), .a = {7}}), 200u);
}

TEST(CallGraph, FramesThatDoNotEndTrap) {
  const std::string forward = ".func (.param .b32 r) f(.param .b32 x);\n";
  const Outcome outcome = run_small({.declarations = forward + passing_on("f", "f"), .body = calling("f")});
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::out_of_bounds) << outcome.trap->message;
}

TEST(CallGraph, AcceptsAFunctionThatIsReachedInTwoWays) {
  const SmallKernel kernel{.declarations = leaf + passing_on("f", "leaf") + passing_on("g", "leaf"),
                           .body = calling("f") + "mov.b32 %a, %d;" + calling("g"),
                           .a = {5}};
  EXPECT_EQ(first_word(kernel), 7u);
}

TEST(CallGraph, AcceptsALongChain) {
  std::string chain = leaf;
  for (int i = 0; i < 300; ++i)
    chain += passing_on("f" + std::to_string(i), i ? "f" + std::to_string(i - 1) : "leaf");
  EXPECT_EQ(first_word({.declarations = chain, .body = calling("f299"), .a = {1}}), 2u);
}

TEST(CallGraph, ACallThroughAnAddressThatLeadsBackTraps) {
  SmallKernel kernel;
  kernel.declarations =
      ".func (.param .b32 r) f(.param .b32 x);\n" + leaf +
      ".global .align 8 .u64 table[2] = {leaf, f};\n.func (.param .b32 r) f(.param .b32 x) { .reg .b64 %t; "
      ".param .b32 "
      "i; .param .b32 o; .reg .b32 %v; ld.param.b32 %v, [x]; st.param.b32 [i], %v; mul.wide.u32 %t, %v, 8; "
      ".reg .b64 "
      "%b; mov.u64 %b, table; add.s64 %t, %t, %b; ld.global.u64 %t, [%t]; shape: .callprototype (.param .b32 "
      "_) _ "
      "(.param .b32 _); call (o), %t, (i), shape; ld.param.b32 %v, [o]; st.param.b32 [r], %v; ret; }\n";
  kernel.body = calling("f");
  kernel.a = {0};  // the leaf
  EXPECT_EQ(first_word(kernel), 1u);
  kernel.a = {1};  // f itself
  const Outcome outcome = run_small(kernel);
  ASSERT_TRUE(outcome.trap);
  EXPECT_NE(outcome.trap->message.find("recursion is not supported"), std::string::npos)
      << outcome.trap->message;
}

}  // namespace
}  // namespace assay::vm
