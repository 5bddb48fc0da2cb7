// Which lines are said to be why nothing wrote memory.
#include "src/verification/diagnosis/unwritten_lines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/diagnosis/storing_program.h"

namespace assay {
namespace {

/// Of the word at `index` of the workspace.
std::vector<SuspectLine> lines_of(const Program& plan, uint64_t index) {
  return lines_behind_unwritten(plan, {}, {}, {"w", 4 * index, 4}, SourceText("small"), 5);
}

std::vector<int> numbers(const std::vector<SuspectLine>& lines) {
  std::vector<int> all;
  for (const SuspectLine& line : lines) all.push_back(line.at.where.line);
  return all;
}

const std::string kAddress = "mul.wide.u32 %d1, %b2, 4; add.s64 %d3, %w, %d1;";

/// Of a block's words the last is not stored.
TEST(UnwrittenLines, AGuardThatKeptTheStoreAwayComesFirst) {
  const Program plan = plan_of({"mov.u32 %b2, %n;", kAddress, "setp.ne.u32 %p1, %t, 31;", "@!%p1 bra L;",
                                "st.global.f32 [%d3], %f1;", "L:"},
                               1, 64);
  const auto lines = lines_of(plan, 31);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[0].at.where.line, 13);
  EXPECT_EQ(lines[0].reason,
            "it kept thread (31,0,0) of block (0,0,0) from the store at kernels/none/small.cu:14");
  EXPECT_EQ(lines[1].at.where.line, 11);
  EXPECT_EQ(lines[1].reason, "it makes the address of kernels/none/small.cu:14");
}

/// Thread 0 of each block stores words 0 and 1, where word 2 is block 1's.
TEST(UnwrittenLines, OfPlacesThatSeveralThreadsWriteTheStoreAndWhatMovesItOnAreNamed) {
  const std::vector<std::string> ptx = {"setp.ne.u32 %p1, %t, 0; @%p1 bra L;",
                                        "mov.u32 %b2, %c;",
                                        "add.s64 %d3, %w, 0; mov.u32 %b1, 0;",
                                        "B: st.global.f32 [%d3], %f1;",
                                        "add.s64 %d3, %d3, 4;",
                                        "add.u32 %b1, %b1, 1; setp.lt.u32 %p2, %b1, 2; @%p2 bra B;",
                                        "L:"};
  const std::vector<std::string> source = {"if (threadIdx.x != 0) return;",
                                           "int block = blockIdx.x;",
                                           "float* to = w;",
                                           "*to = 1;",
                                           "to += 1;",
                                           "while (more);"};
  EXPECT_EQ(numbers(lines_of(plan_of(ptx, 1, 64, source_of(source)), 2)), (std::vector<int>{13, 14, 12}));
}

/// Every thread stores four words of its own, the second and fourth where the first and third are.
TEST(UnwrittenLines, OfPlacesThatAThreadWritesTwiceWhatMakesTheAddressIsNamed) {
  const std::vector<std::string> ptx = {
      "mov.u32 %b1, 0;",
      "B: and.b32 %b3, %b1, 2;",
      "mad.lo.u32 %b2, %n, 4, %b3;",
      "mul.wide.u32 %d1, %b2, 4; add.s64 %d3, %w, %d1; st.global.f32 [%d3], %f1;",
      "add.u32 %b1, %b1, 1;",
      "setp.lt.u32 %p2, %b1, 4; @%p2 bra B;"};
  const std::vector<std::string> source = {
      "int i = 0;",   "const int part = i & 2;", "const int to = at + part;", "w[to] = 1;", "++i;",
      "while (more);"};
  Program plan = plan_of(ptx, 1, 64, source_of(source));
  plan.workspaces[0].bytes = 1024;
  const auto lines = lines_of(plan, 1);
  ASSERT_EQ(numbers(lines), (std::vector<int>{13, 12, 11, 1}));
  EXPECT_EQ(lines[0].reason, "a thread of it writes places of w twice");
}

/// Two blocks of 32 words each; the block's index is divided by 2 where it should be by 1.
TEST(UnwrittenLines, WhereABlockWritesNothingWhatDealsBlocksOutIsNamed) {
  const Program plan = plan_of({"ld.global.u32 %b3, [%s];", "add.u32 %b3, %b3, 2;", "div.u32 %b4, %c, %b3;",
                                "rem.u32 %b5, %c, %b3; setp.ne.u32 %p1, %b5, 0; @%p1 bra L;",
                                "mad.lo.u32 %b2, %b4, 32, %t; mad.lo.u32 %b2, %b5, 16, %b2; " + kAddress,
                                "st.global.f32 [%d3], %f1;", "L:"},
                               1, 64);
  const auto lines = lines_of(plan, 40);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[0].at.where.line, 11) << lines[0].reason;
  EXPECT_EQ(lines[1].at.where.line, 13) << "block 1 would write words of block 0, too: " << lines[1].reason;
  EXPECT_EQ(lines[0].reason, "blocks are dealt out by it, and some write nothing of w");
}

/// Each block stores its words one after the other, by its first thread, and ends one too early; no other
/// guard comes to the last.
TEST(UnwrittenLines, OfALoopThatEndsTooEarlyWhatMakesItsBoundIsNamed) {
  const Program plan = plan_of(
      {"setp.ne.u32 %p1, %t, 0; @%p1 bra L;", "mul.lo.u32 %b2, %c, 8; " + kAddress, "mov.u32 %b6, 8;",
       "sub.u32 %b7, %b6, 2;", "mov.u32 %b1, %b7;", "B: mul.wide.u32 %d1, %b1, 4; add.s64 %d2, %d3, %d1;",
       "st.global.f32 [%d2], %f1;", "sub.u32 %b1, %b1, 1; setp.ge.s32 %p2, %b1, 0;", "@%p2 bra B;", "L:"},
      1, 64);
  const std::vector<int> lines = numbers(lines_of(plan, 7));
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[0], 17);  // where it is compared
  EXPECT_EQ(lines[1], 13);
}

/// No thread stores anything: what keeps them from the only store reads where nothing is, were it turned
/// around.
TEST(UnwrittenLines, OfAStoreThatNoThreadCameToWhatDecidesItIsNamed) {
  const Program plan = plan_of({"mov.u32 %b2, %n; mov.u64 %d4, 0;", "setp.eq.u64 %p1, %d4, 0;", "@%p1 bra L;",
                                "ld.global.f32 %f1, [%d4];", kAddress, "st.global.f32 [%d3], %f1;", "L:"},
                               1, 64);
  const auto lines = lines_of(plan, 5);
  ASSERT_EQ(numbers(lines), (std::vector<int>{11}));
  EXPECT_EQ(lines[0].reason, "it decides whether kernels/none/small.cu:15 is reached");
}

TEST(UnwrittenLines, AddingInPlaceIsNoWritingTwice) {
  const Program plan = plan_of({"setp.ne.u32 %p1, %c, 0; @%p1 bra L;", "mov.u32 %b2, 0; " + kAddress,
                                "red.global.add.f32 [%d3], %f1;", "L:"},
                               1, 64);
  for (const SuspectLine& line : lines_of(plan, 1))
    EXPECT_EQ(line.reason.find("others write too"), std::string::npos) << line.reason;
}

}  // namespace
}  // namespace assay
