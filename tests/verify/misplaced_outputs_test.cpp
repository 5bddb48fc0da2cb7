// Which statement is named where right values are stored at wrong places.
#include "src/verification/verify/misplaced_outputs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/diagnosis/elementwise_kernel.h"

namespace assay {
namespace {

/// x + y at place t, where the right one is that of `place(t)`; `scale`: of what is right.
TellingCase told(const std::function<size_t(size_t)>& place, double scale = 1) {
  TellingCase t;
  t.program = elementwise_plan("  .loc 1 7 0\n  add.rn.f32 %r, %x, %y;\n  .loc 1 9 0\n");
  std::string text = *t.program.modules[0].ptx;
  text.insert(text.find(".visible"), ".file 1 \"sum.cu\"\n");
  text.insert(text.find("add.s64 %ao"), ".loc 1 5 0\n  ");
  t.program.modules[0].ptx = std::make_shared<const std::string>(text);
  t.inputs = elementwise_inputs(1, 2, 1);
  for (int64_t i = 0; i < 32; ++i) t.inputs["x"].set(i, 1 + static_cast<double>(i * i) / 7);
  t.exact = vm::run_moved(t.program, t.inputs, {}, {});
  t.expected = t.exact;
  for (size_t i = 0; i < 32; ++i) t.expected["o"][i] = scale * t.exact["o"][place(i)];
  t.wrong.emplace_back("o", Dtype::fp32, std::vector<Axis>{{"T", 32}});
  return t;
}

TEST(MisplacedOutputs, AreStoredByALineAndPlacedByAnother) {
  const std::vector<SuspectLine> lines = lines_of_misplaced(told([](size_t i) { return (i + 5) % 32; }), {});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at.where.line, 9);
  EXPECT_EQ(lines[0].reason,
            "of 32 wrong elements of o that it stores the right values of 32 are there, at other places");
  EXPECT_EQ(lines[1].at.where.line, 5);
}

TEST(MisplacedOutputs, AreNoneWhereTheRightValuesAreNotThere) {
  EXPECT_TRUE(lines_of_misplaced(told([](size_t i) { return i; }, 1.5), {}).empty());
  EXPECT_TRUE(lines_of_misplaced(told([](size_t i) { return (i + 5) % 32; }, 1.001), {}).empty());
}

/// The last five go past the end.
TEST(MisplacedOutputs, AreStillThoseOfWhichMostAreThere) {
  TellingCase shifted = told([](size_t i) { return (i + 5) % 32; });
  for (size_t i = 27; i < 32; ++i) shifted.expected["o"][i] *= 1.25;
  const std::vector<SuspectLine> lines = lines_of_misplaced(shifted, {});
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0].reason,
            "of 32 wrong elements of o that it stores the right values of 27 are there, at other places");
}

/// Of two heads of equal inputs one is wrong: what the other has is there, but not at another place.
TEST(MisplacedOutputs, WhatIsRightWhereItBelongsIsNotElsewhere) {
  TellingCase heads = told([](size_t i) { return i; });
  for (size_t i = 16; i < 32; ++i) {
    heads.expected["o"][i] = heads.exact["o"][i - 16];
    heads.exact["o"][i] = 1.5 * heads.exact["o"][i - 16];
  }
  EXPECT_TRUE(lines_of_misplaced(heads, {}).empty());
}

/// Two values exchanged may be a chance.
TEST(MisplacedOutputs, OfTwoElementsNothingIsSaid) {
  const auto first_two = [](size_t i) { return i < 2 ? 1 - i : i; };
  EXPECT_TRUE(lines_of_misplaced(told(first_two), {}).empty());
}

}  // namespace
}  // namespace assay
