// alloca, stacksave and stackrestore: memory of each thread's own, given back where a function returns or the
// end of the stack is put back.
#include <gtest/gtest.h>

#include "src/base/vm/checks/checks.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace decode_stack_test {

/// Stores 10 x, 11 x, .. in x words of memory and gives their sum and the address.
constexpr const char* kSums = R"(
.func (.param .b32 made, .param .b64 place) sums (.param .b32 given)
{
  .reg .b32 %r<8>; .reg .b64 %rd<6>; .reg .pred %p<3>;
  ld.param.u32 %r1, [given];
  mul.wide.u32 %rd1, %r1, 4;
  alloca.u64 %rd2, %rd1, 16;
  st.param.b64 [place], %rd2;
  mov.u32 %r2, 0; mov.u64 %rd3, %rd2;
STORE:
  add.u32 %r3, %r2, 10; mul.lo.u32 %r3, %r3, %r1;
  st.local.u32 [%rd3], %r3;
  add.u64 %rd3, %rd3, 4; add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1; @%p1 bra STORE;
  cvta.local.u64 %rd4, %rd2;
  mov.u32 %r4, 0;
LOAD:
  ld.u32 %r5, [%rd4]; add.u32 %r4, %r4, %r5;
  add.u64 %rd4, %rd4, 4; sub.u32 %r2, %r2, 1;
  setp.ne.u32 %p2, %r2, 0; @%p2 bra LOAD;
  st.param.b32 [made], %r4;
  ret;
}
)";
constexpr const char* kTwoCalls =
    "{ .param .b32 x; .param .b32 y; .param .b64 z; st.param.b32 [x], %a; call (y, z), sums, (x);"
    " ld.param.b32 %r1, [y]; ld.param.b64 %rd1, [z]; }"
    "{ .param .b32 x; .param .b32 y; .param .b64 z; st.param.b32 [x], %b; call (y, z), sums, (x);"
    " ld.param.b32 %r2, [y]; ld.param.b64 %rd2, [z]; }";

uint32_t sum_of(uint32_t x) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < x; ++i) sum += (10 + i) * x;
  return sum;
}

TEST(AllocatedStack, EachThreadsMemoryIsItsOwnWhateverItsSize) {
  SmallKernel kernel{.declarations = kSums, .body = std::string(kTwoCalls) + "add.u32 %d, %r1, %r2;"};
  for (uint32_t t = 0; t < 32; ++t) kernel.a.push_back(1 + t % 7), kernel.b.push_back(1 + t % 5);
  const std::vector<uint32_t> words = words_of(run_small(kernel));
  ASSERT_EQ(words.size(), 32u);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(words[t], sum_of(1 + t % 7) + sum_of(1 + t % 5)) << t;
}

TEST(AllocatedStack, WhatAFunctionTookIsGivenBackWhereItReturns) {
  const SmallKernel kernel{.declarations = kSums,
                           .body = std::string(kTwoCalls) + "sub.u64 %rd3, %rd2, %rd1; cvt.u32.u64 %d, %rd3;",
                           .a = {9},
                           .b = {5}};
  EXPECT_EQ(first_word(kernel), 0u);
}

/// Address modulo 64 of the second of two pieces, and how far behind the first it is.
TEST(AllocatedStack, PiecesAreAlignedAndLieBehindEachOther) {
  const char* two =
      "mov.u64 %rd1, 5; alloca.u64 %rd2, %rd1; alloca.u64 %rd3, %rd1, 64; and.b64 %rd4, %rd3, 63;";
  EXPECT_EQ(first_word({.body = std::string(two) + "cvt.u32.u64 %d, %rd4;"}), 0u);
  EXPECT_GE(first_word({.body = std::string(two) + "sub.u64 %rd5, %rd3, %rd2; cvt.u32.u64 %d, %rd5;"}), 5u);
}

TEST(AllocatedStack, TheEndIsPutBack) {
  EXPECT_EQ(first_word({.body = "mov.u64 %rd1, 24; stacksave.u64 %rd2; alloca.u64 %rd3, %rd1; "
                                "stackrestore.u64 %rd2; alloca.u64 %rd4, %rd1; sub.u64 %rd5, %rd4, %rd3; "
                                "cvt.u32.u64 %d, %rd5;"}),
            0u);
}

TEST(AllocatedStack, AllThatWasNotTakenTogetherEndsAtAnAddressOutOfBounds) {
  const Outcome outcome =
      run_small({.body = "mov.u64 %rd1, 32768; alloca.u64 %rd2, %rd1; st.local.u32 [%rd2+32760], "
                         "%a; alloca.u64 %rd3, %rd1; st.local.u32 [%rd3], %a;"});
  ASSERT_TRUE(outcome.trap);
  EXPECT_NE(outcome.trap->message.find("past the end of what alloca took (32768 bytes)"), std::string::npos)
      << outcome.trap->message;
}

TEST(AllocatedStack, WhatNothingWroteIsSeen) {
  for (const bool written : {true, false}) {
    TensorMap inputs;
    const Program program =
        plan_of({.body = std::string("mov.u64 %rd1, 8; alloca.u64 %rd2, %rd1; ") +
                         (written ? "st.local.u32 [%rd2+4], %a; " : "") + "ld.local.u32 %d, [%rd2+4];"},
                inputs);
    Checks checks = Checks::none();
    checks.unwritten = true;
    EXPECT_EQ(run_checked(program, inputs, {.threads = 1}, checks).findings.empty(), written);
  }
}

}  // namespace decode_stack_test
}  // namespace assay::vm
