// What values of a line that have to be others would have to be.
#include "src/verification/diagnosis/changed_values.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/diagnosis/steps_program.h"

namespace assay {
namespace {

const std::string kRest = "  add.rn.f32 %q, %x, %y;";

/// A sum of the tokens from the fifth on, to which a mask lets two more.
std::string masked_sum(int from) {
  return "  setp.gt.s32 %at, %t, " + std::to_string(from) +
         ";\n  selp.f32 %f1, %x, 0f00000000, %at;\n  fma.rn.f32 %s, %f1, 0f3F400000, %s;\n"
         "  mul.rn.f32 %r, %s, %y;\n" +
         kRest;
}
TEST(ChangedValues, BehindAMaskThatIsTooWideAreUndue) {
  const std::vector<SuspectLine> suspects = suspects_of(masked_sum(1), masked_sum(3));
  const size_t place = place_of("selp", suspects);
  ASSERT_GT(place, 0U);
  EXPECT_EQ(suspects[place - 1].reason, "2 of its 6 values taken for 0 make all wrong elements right");
}
/// The value goes on by an assignment of its own, which has no other part in it: a mask may stand there.
TEST(ChangedValues, WhatUnduePartsGoOnByIsNamedBeforeWhatMakesThem) {
  const std::string path = testing::TempDir() + "/undue.cu";
  std::ofstream(path) << "//\n//\nsum(y);\nmade(x);\npart[i] = made;\nsum(part);\nout(sum);\n";
  const auto sum_without = [](int tokens) {
    return "  .loc 1 3 0\n  add.rn.f32 %s, %s, %y;\n  .loc 1 4 0\n  setp.gt.s32 %at, %t, " +
           std::to_string(tokens) +
           ";\n  selp.f32 %f1, %x, 0f00000000, %at;\n  .loc 1 5 0\n  mov.f32 %f2, %f1;\n"
           "  .loc 1 6 0\n  fma.rn.f32 %s, %f2, 0f3F400000, %s;\n  .loc 1 7 0\n  mul.rn.f32 %r, %s, %y;\n" +
           kRest;
  };
  const std::vector<SuspectLine> suspects =
      suspects_of(sum_without(1), sum_without(3), Values::telling, path);
  size_t made = 0;
  while (made < suspects.size() && suspects[made].at.where.line != 4) ++made;
  ASSERT_LT(made, suspects.size());
  ASSERT_GT(made, 0U);
  EXPECT_EQ(suspects[made - 1].at.where.line, 5);
  EXPECT_NE(suspects[made - 1].reason.find("passes on"), std::string::npos) << suspects[made - 1].reason;
}

/// What is lacking there is no term too many.
TEST(ChangedValues, BehindAMaskThatIsTooNarrowAreNot) {
  for (const SuspectLine& line : suspects_of(masked_sum(3), masked_sum(1)))
    EXPECT_EQ(line.reason.find("taken for 0"), std::string::npos) << line.reason;
}

/// x[t] for y[5 - t], which the thread does not hold.
TEST(ChangedValues, OfAnotherInputAreDisplaced) {
  const SuspectLines suspects = all_suspects_of(
      "  ld.param.u64 %base, [px];\n  ld.global.f32 %f1, [%base];\n  mul.rn.f32 %r, %f1, %y;\n" + kRest,
      "  ld.param.u64 %base, [py];\n  sub.s32 %i, 5, %t;\n  mul.wide.s32 %off, %i, 4;\n"
      "  add.s64 %base, %base, %off;\n  ld.global.f32 %f1, [%base];\n  mul.rn.f32 %r, %f1, %y;\n" +
          kRest);
  EXPECT_EQ(place_of("ld.global.f32 %f1", suspects.displaced), 1U);
}

/// From the third token on x is to be added: a case that the sum forgets.
TEST(ChangedValues, OfSomeStepsLackATermThatTheThreadHas) {
  const std::string product = "  mul.rn.f32 %r, %x, %y;\n",
                    right = product +
                            "  setp.lt.s32 %at, %t, 2;\n  selp.f32 %f2, 0f00000000, %x, %at;\n"
                            "  add.rn.f32 %r, %r, %f2;\n" +
                            kRest;
  const SuspectLines suspects = all_suspects_of(product + kRest, right);
  ASSERT_EQ(place_of("mul.rn.f32 %r", suspects.related), 1U);
  EXPECT_EQ(suspects.related.front().reason,
            "4 of 6 values: with what PTX line 17 makes added, its values make all wrong elements right");
}

/// A quotient and its sign on one line: what it makes is to be halved, not both.
TEST(ChangedValues, OfALineTimesANumberAreThoseThatItMakes) {
  const auto negated = [](const std::string& factor) {
    return "  .loc 1 7 0\n  mul.rn.f32 %f1, %x, " + factor +
           ";\n  neg.f32 %f2, %f1;\n  .loc 1 8 0\n"
           "  mul.rn.f32 %r, %f2, %y;\n" +
           kRest;
  };
  const std::vector<SuspectLine> suspects = suspects_of(negated("0f40000000"), negated("0f3F800000"));
  const auto own = std::find_if(suspects.begin(), suspects.end(),
                                [](const SuspectLine& l) { return l.at.where.line == 7; });
  ASSERT_NE(own, suspects.end());
  EXPECT_EQ(own->reason, "its values times 0.5 make all wrong elements right");
}

/// Times nine too much: the product that has the number is named.
TEST(ChangedValues, TimesANumberThatAProductHasNameIt) {
  const std::string sum = "  add.rn.f32 %f1, %x, %y;\n", square = "  mul.rn.f32 %r, %f2, %f2;\n";
  const SuspectLines suspects =
      all_suspects_of(sum + "  mul.rn.f32 %f2, %f1, 0f41100000;\n  mul.rn.f32 %r, %f2, %x;\n" + kRest,
                      sum + "  mul.rn.f32 %r, %f1, %x;\n" + kRest);
  ASSERT_EQ(suspects.superfluous.size(), 1U);
  EXPECT_EQ(place_of("mul.rn.f32 %f2", suspects.superfluous), 1U);
}

/// y x and x: the second lacks the factor y, which the first takes on the line before.
TEST(ChangedValues, ThatLackAFactorNameWhatTakesItBeside) {
  const auto products = [](const std::string& second) {
    return "  .loc 1 4 0\n  add.rn.f32 %f3, %y, 0f3F000000;\n  .loc 1 7 0\n  mul.rn.f32 %f1, %x, %f3;\n"
           "  .loc 1 8 0\n" +
           second + "  .loc 1 9 0\n  add.rn.f32 %r, %f1, %f2;\n" + kRest;
  };
  const SuspectLines suspects =
      all_suspects_of(products("  mul.rn.f32 %f2, %x, %x;\n"), products("  mul.rn.f32 %f2, %x, %x;\n"
                                                                        "  mul.rn.f32 %f2, %f2, %f3;\n"));
  EXPECT_TRUE(std::any_of(suspects.related.begin(), suspects.related.end(),
                          [](const SuspectLine& l) { return l.at.where.line == 8; }));
  ASSERT_EQ(suspects.alike.size(), 1U);
  EXPECT_EQ(suspects.alike.front().at.where.line, 7);
}

}  // namespace
}  // namespace assay
