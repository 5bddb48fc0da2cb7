// Recursion is refused wherever it can be seen, and traps where only a run can tell.
#include "src/base/vm/call_graph.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
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
std::string refusal(const SmallKernel& kernel) {
  try {
    run_small(kernel);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CallGraph, RefusesAFunctionThatLeadsBackToItself) {
  const std::string forward =
      ".func (.param .b32 r) f(.param .b32 x);\n.func (.param .b32 r) g(.param .b32 x);\n";
  const std::string own = refusal({.declarations = forward + passing_on("f", "f"), .body = calling("f")});
  EXPECT_NE(own.find("call in f: recursion is not supported"), std::string::npos) << own;
  const std::string two =
      refusal({.declarations = forward + passing_on("f", "g") + passing_on("g", "f"), .body = calling("f")});
  EXPECT_NE(two.find("recursion is not supported"), std::string::npos) << two;
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
