#include "reports/console_chain.h"

#include <gtest/gtest.h>

#include "tests/reports/console_text.h"

namespace assay {
namespace {

std::string printed_chain(void (*print)(const Console&, const SourceLocation&), const SourceLocation& where) {
  return test::printed([&](const Console& console) { print(console, where); });
}

std::string frames_of(const SourceLocation& where) {
  return printed_chain(print_frames, where);
}

TEST(ConsoleChain, CallsAroundAPlaceAreOneLine) {
  SourceLocation where{"a.cu", 6, 0, "k", {"a.cu:6", "a.cu:28", "a.cu:44"}};
  EXPECT_EQ(printed_chain(print_calls, where), "    a.cu:6 inlined at a.cu:28, a.cu:44\n");
  where.frames = {"a.cu:3", "a.cu:6"};
  EXPECT_EQ(printed_chain(print_calls, where), "") << "inlined nowhere";
}

TEST(ConsoleChain, CallsInsideALineAreSaidAndThoseAroundIt) {
  SourceLocation where;
  where.file = "b.cuh", where.line = 20;
  where.frames = {"d.cuh:3", "c.cuh:9", "b.cuh:20", "a.cu:7"};
  EXPECT_EQ(frames_of(where), "    inside it c.cuh:9\n    inside it d.cuh:3\n    inlined at a.cu:7\n");
}

TEST(ConsoleChain, OfALineThatIsNoFrameAllAreAroundIt) {
  SourceLocation where;
  where.file = "toolkit.hpp", where.line = 400;
  where.frames = {"b.cuh:20", "a.cu:7"};
  EXPECT_EQ(frames_of(where), "    inlined at b.cuh:20\n    inlined at a.cu:7\n");
}

}  // namespace
}  // namespace assay
