#include "reports/console_chain.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace assay {
namespace {

std::string frames_of(const SourceLocation& where) {
  std::FILE* const file = std::tmpfile();
  print_frames(Console(file), where);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
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
