// Which lines are named where a program of a few instructions has a defect.
#include "src/verification/diagnosis/suspect_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/diagnosis/steps_program.h"

namespace assay {
namespace {

const std::string kRead = "  mul.rn.f32 %r, %s, %y;\n  add.rn.f32 %q, %x, %y;";

std::string on(int line, const std::string& instructions) {
  return "  .loc 1 " + std::to_string(line) + " 0\n" + instructions;
}
bool names(const std::vector<SuspectLine>& lines, int line) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const SuspectLine& l) { return l.at.where.line == line; });
}

TEST(SuspectLines, NoneWhereNothingIsWrong) {
  const std::string right = "  fma.rn.f32 %s, %s, 0f3F000000, %x;\n" + kRead;
  EXPECT_TRUE(suspects_of(right, right).empty());
}

/// Two values, each read by three steps: two numbers make six elements right, which is no chance; six
/// products do too.
TEST(SuspectLines, AValueThatIsReadSeveralTimesIsOne) {
  const std::string read =
      "  and.b32 %i, %t, 1;\n  mul.wide.s32 %off, %i, 4;\n  ld.param.u64 %base, [py];\n"
      "  add.s64 %base, %base, %off;\n  ld.global.f32 %f1, [%base];\n";
  const std::string product = "  mul.rn.f32 %r, %f1, %x;\n  add.rn.f32 %q, %x, %y;";
  const std::vector<SuspectLine> suspects =
      suspects_of(read + product, read +
                                      "  setp.eq.s32 %at, %i, 0;\n  selp.f32 %f2, 0f40000000, 0f40400000, "
                                      "%at;\n  mul.rn.f32 %f1, %f1, %f2;\n" +
                                      product);
  ASSERT_EQ(place_of("ld.global.f32 %f1", suspects), 1U);
  EXPECT_EQ(suspects[0].reason, "2 of its 2 values changed make all wrong elements right");
}

/// x y + x for x y: what the last sum takes should have gone past the one before it.
TEST(SuspectLines, WhatStandsBetweenAValueAndWhereItIsWantedIsNamed) {
  const std::string before = "  mul.rn.f32 %f1, %x, %y;\n  sub.rn.f32 %f3, %y, %y;\n",
                    after = "  add.rn.f32 %q, %x, %y;";
  const SuspectLines suspects =
      all_suspects_of(before + "  add.rn.f32 %f2, %f1, %x;\n  add.rn.f32 %r, %f2, %f3;\n" + after,
                      before + "  add.rn.f32 %r, %f1, %f3;\n" + after);
  ASSERT_EQ(place_of("add.rn.f32 %r", suspects.related), 1U);
  ASSERT_EQ(suspects.superfluous.size(), 1);
  EXPECT_EQ(place_of("add.rn.f32 %f2", suspects.superfluous), 1U);
}

/// A second output, which is right.
const std::string kOther = "  add.rn.f32 %q, %x, %y;";

/// x[0] for x[5 - t]: with that in its place the read is right, and the product with no value that there is.
TEST(SuspectLines, AReadOfWhichTheRightValuesStandElsewhereInTheInputIsTheFirst) {
  const std::vector<SuspectLine> suspects = suspects_of(
      "  ld.param.u64 %base, [px];\n  ld.global.f32 %f1, [%base];\n  mul.rn.f32 %r, %f1, %y;\n" + kOther,
      "  ld.param.u64 %base, [px];\n  sub.s32 %i, 5, %t;\n  mul.wide.s32 %off, %i, 4;\n"
      "  add.s64 %base, %base, %off;\n  ld.global.f32 %f1, [%base];\n  mul.rn.f32 %r, %f1, %y;\n" +
          kOther);
  EXPECT_EQ(place_of("ld.global.f32 %f1", suspects), 1U);
  EXPECT_EQ(place_of("mul", suspects), 2U);
  EXPECT_EQ(suspects[0].reason,
            "5 of its 6 values would have to be those that it has, or its input has, elsewhere");
}

/// x[0] for x[t], which the thread has.
TEST(SuspectLines, AValueOfTheThreadForAnotherIsNamed) {
  const SuspectLines suspects = all_suspects_of(
      "  ld.param.u64 %base, [px];\n  ld.global.f32 %f1, [%base];\n  mul.rn.f32 %r, %f1, %y;\n" + kOther,
      "  mul.rn.f32 %r, %x, %y;\n" + kOther);
  EXPECT_EQ(place_of("ld.global.f32 %f1", suspects.likeliest), 1U);
  ASSERT_FALSE(suspects.related.empty());
  EXPECT_EQ(suspects.related[0].reason,
            "what PTX line 17 makes in their place makes all wrong elements right");
}

/// The address is that of x[0], and made on a line of its own; the pointer on a third one is an argument.
TEST(SuspectLines, WhereAReadHasAWrongAddressTheStatementThatMakesItIsNamedToo) {
  const SuspectLines suspects = all_suspects_of(
      "  .loc 1 4 0\n  ld.param.u64 %base, [px];\n  .loc 1 7 0\n  add.s64 %base, %base, 0;\n"
      "  .loc 1 9 0\n  ld.global.f32 %f1, [%base];\n  .loc 1 11 0\n  mul.rn.f32 %r, %f1, %y;\n" +
          kOther,
      "  mul.rn.f32 %r, %x, %y;\n" + kOther);
  ASSERT_FALSE(suspects.displaced.empty());
  EXPECT_EQ(suspects.displaced.front().at.where.line, 9);
  ASSERT_EQ(suspects.addressed.size(), 1U);
  EXPECT_EQ(suspects.addressed.front().at.where.line, 7);
  EXPECT_EQ(suspects.addressed.front().reason,
            "makes an address of line 9, where 5 of 6 values would have to be others");
  EXPECT_EQ(suspects.loads.at("x").at.where.line, 9);
  EXPECT_EQ(suspects.places.at("x").at.where.line, 7);
}

/// Of what is read where nothing wrote and that is no input, as a fixed decay.
TEST(SuspectLines, WhatThePlanGivesIsReadSomewhereToo) {
  const SuspectLines suspects = all_suspects_of(
      "  .loc 1 6 0\n  mov.u64 %base, given;\n  .loc 1 8 0\n  add.s64 %base, %base, 4;\n"
      "  .loc 1 9 0\n  ld.global.f32 %f1, [%base];\n  mul.rn.f32 %r, %x, %f1;\n" +
          kOther,
      "  mul.rn.f32 %r, %x, 0f40000000;\n" + kOther);
  ASSERT_TRUE(suspects.loads.contains(""));
  EXPECT_EQ(suspects.loads.at("").at.where.line, 9);
  ASSERT_TRUE(suspects.places.contains(""));
  EXPECT_EQ(suspects.places.at("").at.where.line, 8);
}

/// Of "b = a;" behind the statement that makes a an optimised program has no instruction.
TEST(SuspectLines, AnAssignmentWithoutAnInstructionIsNamedByTheSource) {
  const std::string path = testing::TempDir() + "/passed_on.cu";
  const auto second_after = [&](const std::string& next) {
    std::ofstream(path) << "//\nconst float total = x + x, e = y;\n" << next << '\n';
    const std::vector<SuspectLine> suspects =
        suspects_of("  .loc 1 2 0\n  add.rn.f32 %r, %x, %x;\n" + kOther,
                    "  mul.rn.f32 %r, %x, %y;\n" + kOther, Values::all, path);
    return suspects.size() < 2 ? 0 : suspects[1].at.where.line == 3 ? 3 : -1;
  };
  EXPECT_EQ(second_after("before[c] = total;"), 3);
  EXPECT_NE(second_after("before[c] = before[c] + total;"), 3);
  EXPECT_NE(second_after("before[c] = other;"), 3);
}

const std::string kDecayed = "  fma.rn.f32 %s, %s, 0f3F000000, %x;\n";

/// Of a product of three factors the last one.
TEST(SuspectLines, AFactorThatIsLackingIsFoundAmongWhatTheThreadHas) {
  const SuspectLines suspects = all_suspects_of(
      kDecayed + "  mul.rn.f32 %r, %s, %y;\n  add.rn.f32 %q, %x, %y;",
      kDecayed + "  mul.rn.f32 %f1, %s, %y;\n  mul.rn.f32 %r, %f1, %x;\n  add.rn.f32 %q, %x, %y;");
  ASSERT_FALSE(suspects.related.empty());
  EXPECT_EQ(place_of("mul.rn.f32 %r", suspects.related), 1U);
  EXPECT_EQ(suspects.related[0].reason,
            "with what PTX line 17 makes as a factor, its values make all wrong elements right");
}

/// Of a sum over all steps, which is read before its own step is added.
TEST(SuspectLines, ATermThatIsAddedTooLateIsFoundBehindTheStatement) {
  const std::string rest = "  add.rn.f32 %q, %x, %y;", read = "  mul.rn.f32 %r, %s, %y;\n",
                    sum = "  mul.rn.f32 %f1, %x, %x;\n  add.rn.f32 %s, %s, %f1;\n";
  const SuspectLines suspects =
      all_suspects_of("  mov.f32 %f2, %s;\n" + sum + "  mul.rn.f32 %r, %f2, %y;\n" + rest, sum + read + rest);
  ASSERT_FALSE(suspects.related.empty());
  EXPECT_GE(place_of("mov.f32 %f2", suspects.related) + place_of("mul.rn.f32 %r", suspects.related), 1U);
}

/// The term is made, and nothing is made of it: it is in no slice.
TEST(SuspectLines, ATermThatIsLackingIsFoundThoughNoOutputIsMadeOfIt) {
  const std::string term = "  mul.rn.f32 %f1, %x, %x;\n", rest = "  add.rn.f32 %q, %x, %y;";
  const SuspectLines suspects =
      all_suspects_of(kDecayed + term + "  mul.rn.f32 %r, %s, %y;\n" + rest,
                      kDecayed + term + "  mul.rn.f32 %r, %s, %y;\n  add.rn.f32 %r, %r, %f1;\n" + rest);
  ASSERT_FALSE(suspects.related.empty());
  EXPECT_EQ(place_of("mul.rn.f32 %r", suspects.related), 1U);
  EXPECT_EQ(suspects.related[0].reason,
            "with what PTX line 20 makes added, its values make all wrong elements right");
}

/// The sum is read before its step's own term is added; what the sum itself goes on with is right.
TEST(SuspectLines, AnOperandAloneIsAnother) {
  const std::string sum = "  add.rn.f32 %s, %s, %x;\n", read = "  mul.rn.f32 %r, %y, %s;\n",
                    rest = "  add.rn.f32 %q, %x, %y;";
  const SuspectLines suspects = all_suspects_of(read + sum + rest, sum + read + rest);
  ASSERT_FALSE(suspects.related.empty());
  EXPECT_EQ(place_of("mul.rn.f32 %r", suspects.related), 1U);
}

/// o[g] of lanes 4 g to 4 g + 3: products of x and y, of which the first lane's is stored, or their sum.
Program lanes_of(const std::string& body) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.file 1 "lanes.cu"
.visible .entry kernel(.param .u64 px, .param .u64 py, .param .u64 po) {
  .reg .f32 %x, %y, %p, %f<4>;
  .reg .b32 %lane, %part, %group;
  .reg .b64 %ax, %ay, %ao, %off;
  .reg .pred %first;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ay, [py];
  ld.param.u64 %ao, [po];
  mov.u32 %lane, %tid.x;
  mul.wide.u32 %off, %lane, 4;
  add.s64 %ax, %ax, %off;
  add.s64 %ay, %ay, %off;
  ld.global.f32 %x, [%ax];
  ld.global.f32 %y, [%ay];
  mul.rn.f32 %p, %x, %y;
)" + body + R"(
  and.b32 %part, %lane, 3;
  shr.u32 %group, %lane, 2;
  mul.wide.u32 %off, %group, 4;
  add.s64 %ao, %ao, %off;
  setp.eq.s32 %first, %part, 0;
  @%first st.global.f32 [%ao], %p;
  ret;
}
)";
  Program program;
  program.name = "lanes";
  program.modules.push_back({"m", "lanes.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 8}}});
  program.launches.push_back({"m",
                              "kernel",
                              {1, 1, 1},
                              {32, 1, 1},
                              0,
                              {PointerArgument{"x"}, PointerArgument{"y"}, PointerArgument{"o"}}});
  return program;
}

/// Other lanes' products reach no output.
TEST(SuspectLines, ASumOverLanesThatIsLackingIsFound) {
  TensorMap inputs;
  for (const char* name : {"x", "y"}) {
    Tensor t(name, Dtype::fp32, {{"T", 32}});
    for (int64_t i = 0; i < t.size(); ++i) t.set(i, 1 + 0.125 * static_cast<double>((i * 11 + name[0]) % 23));
    inputs[name] = t;
  }
  const std::string sum =
      "  shfl.sync.bfly.b32 %f1, %p, 1, 31, 0xffffffff;\n  add.rn.f32 %p, %p, %f1;\n"
      "  shfl.sync.bfly.b32 %f1, %p, 2, 31, 0xffffffff;\n  add.rn.f32 %p, %p, %f1;\n";
  const vm::RealOutputs is = vm::run_moved(lanes_of(""), inputs, {}, {}),
                        should = vm::run_moved(lanes_of(sum), inputs, {}, {});
  std::vector<JudgedElement> elements;
  for (size_t i = 0; i < 8; ++i)
    elements.push_back({"o", static_cast<int64_t>(i), is.at("o")[i], should.at("o")[i], true});
  const SuspectLines suspects = suspect_lines(lanes_of(""), inputs, {}, elements, Values::all, 60);
  ASSERT_FALSE(suspects.related.empty());
  EXPECT_EQ(place_of("mul.rn.f32 %p", suspects.related), 1U);
  EXPECT_EQ(suspects.related[0].reason, "summed over 4 lanes, its values make all wrong elements right");
}

/// The errors are those of no value that there is.
TEST(SuspectLines, AConstantThatIsLackingIsNoValueOfTheThread) {
  const SuspectLines suspects =
      all_suspects_of(kDecayed + "  mul.rn.f32 %r, %s, %y;\n  add.rn.f32 %q, %x, %y;",
                      kDecayed +
                          "  mul.rn.f32 %f1, %s, %y;\n  add.rn.f32 %r, %f1, 0f3E99999A;\n"
                          "  add.rn.f32 %q, %x, %y;");
  EXPECT_TRUE(suspects.related.empty());
}

/// What is written at one step alone.
TEST(SuspectLines, AWriteThatIsLeftOut) {
  const std::string right = "  mul.rn.f32 %f1, %x, %x;\n  fma.rn.f32 %s, %s, 0f3F000000, %f1;\n" + kRead;
  const std::string defective =
      "  mul.rn.f32 %f1, %x, %x;\n  setp.eq.s32 %at, %t, 3;\n  selp.f32 %f2, 0f00000000, %f1, %at;\n"
      "  fma.rn.f32 %s, %s, 0f3F000000, %f2;\n" +
      kRead;
  const std::vector<SuspectLine> suspects = suspects_of(defective, right);
  const size_t place = place_of("selp", suspects);
  ASSERT_GE(place, 1u);
  ASSERT_LE(place, 3u);
  EXPECT_EQ(suspects[place - 1].reason,
            "what PTX line 19 makes in their place makes all wrong elements right");
}

/// x for 2 x, copied once more before it is read: the second copy is wrong only if the first one is.
TEST(SuspectLines, ACopyOfACopyIsLeftOutWhereCopiesArePartsOfStatements) {
  const std::string rest = "  mov.f32 %f2, %f1;\n  mul.rn.f32 %r, %f2, 0f40400000;\n  add.rn.f32 %q, %x, %y;";
  const std::string right = "  mul.rn.f32 %f1, %x, 0f40000000;\n" + rest,
                    defective = "  mov.f32 %f1, %x;\n" + rest;
  EXPECT_GE(place_of("mov.f32 %f2", suspects_of(defective, right)), 1u);
  const std::vector<SuspectLine> told_apart = suspects_of(defective, right, Values::telling);
  EXPECT_EQ(place_of("mov.f32 %f2", told_apart), 0u);
  EXPECT_GE(place_of("mov.f32 %f1", told_apart), 1u);
}

/// One value for each wrong element: whatever they are, some of them would do.
TEST(SuspectLines, AsManyChangesAsElementsSayNothingOfAProgramWithoutOptimisation) {
  const std::string rest = "  mul.rn.f32 %r, %f1, 0f40400000;\n  add.rn.f32 %q, %x, %y;";
  const std::string right = "  mul.rn.f32 %f1, %x, %x;\n" + rest, defective = "  mov.f32 %f1, %y;\n" + rest;
  EXPECT_GE(place_of("mov.f32 %f1", suspects_of(defective, right)), 1u);
  EXPECT_EQ(place_of("mov.f32 %f1", suspects_of(defective, right, Values::telling)), 0u);
}

/// Of one factor everywhere: not the lines that a right output is made of too.
TEST(SuspectLines, AFactorTooMany) {
  const std::string right = "  fma.rn.f32 %s, %s, 0f3F000000, %x;\n" + kRead;
  const std::string defective =
      "  fma.rn.f32 %s, %s, 0f3F000000, %x;\n  mul.rn.f32 %f1, %s, %y;\n"
      "  mul.rn.f32 %r, %f1, 0f3FC00000;\n  add.rn.f32 %q, %x, %y;";
  const std::vector<SuspectLine> suspects = suspects_of(defective, right);
  const size_t place = place_of("0f3FC00000", suspects);
  ASSERT_GE(place, 1u);
  ASSERT_LE(place, 3u);
  EXPECT_EQ(suspects[place - 1].reason, "its values times 0.666667 make all wrong elements right");
  EXPECT_EQ(place_of("add.rn.f32 %q", suspects), 0u);
}

/// A number that is one factor too many is assigned on a line of its own; another output takes it rightly.
TEST(SuspectLines, WhereANumberThatIsTooManyIsAssignedIsNamedBehindItsProduct) {
  const std::string path = testing::TempDir() + "/number.cu";
  std::ofstream(path) << "//\n//\nconst float factor = scale;\nsum(x);\nout(sum * factor);\n//\nq(x);\n";
  const std::string number = on(2, "  ld.global.f32 %f1, [given+4];\n") + on(3, "  mov.f32 %f2, %f1;\n"),
                    sum = on(4, "  fma.rn.f32 %s, %s, 0f3F000000, %x;\n"),
                    other = on(7, "  mul.rn.f32 %q, %x, %f2;");
  const SuspectLines suspects =
      all_suspects_of(number + sum + on(5, "  mul.rn.f32 %r, %s, %f2;\n") + other,
                      number + sum + on(5, "  mov.f32 %r, %s;\n") + other, Values::all, path);
  ASSERT_EQ(suspects.superfluous.size(), 2U);
  EXPECT_EQ(suspects.superfluous[0].at.where.line, 5);
  EXPECT_EQ(suspects.superfluous[1].at.where.line, 3);
}

/// x is taken where y should be, beside what is made of both.
TEST(SuspectLines, WhatTakesAnInputAloneBesideOthersIsNamed) {
  const std::string both = on(4, "  add.rn.f32 %f1, %x, %y;\n"), other = on(7, "  add.rn.f32 %q, %x, %y;"),
                    moved = on(5, "  mov.f32 %f2, %x;\n  fma.rn.f32 %s, %f1, %f2, %s;\n"),
                    last = on(6, "  mov.f32 %r, %s;\n");
  const SuspectLines suspects =
      all_suspects_of(both + moved + last + other,
                      both + on(5, "  mov.f32 %f2, %y;\n  fma.rn.f32 %s, %f1, %f2, %s;\n") + last + other);
  ASSERT_TRUE(suspects.takers.contains("x"));
  EXPECT_EQ(suspects.takers.at("x").at.where.line, 5);
  EXPECT_FALSE(suspects.takers.contains("y"));
}

/// 0.25 is lacking at one step, and x - y is that there.
TEST(SuspectLines, OneNumberThatStandsFarAwayIsNotWhatALineLacks) {
  const TensorMap inputs = step_inputs();
  const double other = inputs.at("x").value(1) - inputs.at("y").value(1);
  ASSERT_NE(other, 0);
  const std::string far = on(3, "  sub.rn.f32 %f1, %x, %y;\n") +
                          on(4, "  mul.rn.f32 %f2, %x, 0f40400000;\n") +
                          on(5, "  mul.rn.f32 %f3, %y, 0f40A00000;\n") +
                          on(6, "  add.rn.f32 %f4, %f2, %f3;\n") + on(7, "  mul.rn.f32 %f5, %f4, %x;\n"),
                    end = on(9, "  add.rn.f32 %q, %f1, %f5;");
  const SuspectLines suspects = all_suspects_of(
      far + on(8, "  fma.rn.f32 %s, %x, %y, %s;\n  mul.rn.f32 %r, %s, 0f3F000000;\n") + end,
      far +
          on(8,
             "  fma.rn.f32 %s, %x, %y, %s;\n  setp.eq.s32 %at, %t, 1;\n  selp.f32 %f6, %f1, 0f00000000, "
             "%at;\n  add.rn.f32 %s, %s, %f6;\n  mul.rn.f32 %r, %s, 0f3F000000;\n") +
          end);
  EXPECT_TRUE(suspects.related.empty()) << suspects.related.front().reason;
}

/// The input of the other output.
TEST(SuspectLines, AnOperandForAnother) {
  const std::string right = "  fma.rn.f32 %s, %s, 0f3F000000, %x;\n" + kRead;
  const std::string defective =
      "  fma.rn.f32 %s, %s, 0f3F000000, %x;\n  mul.rn.f32 %r, %s, %x;\n  add.rn.f32 %q, %x, %y;";
  const std::vector<SuspectLine> suspects = suspects_of(defective, right);
  ASSERT_FALSE(suspects.empty());
  EXPECT_GE(place_of("mul.rn.f32 %r, %s, %x", suspects), 1u);
}

/// Two of each statement, so that the last value of a line is not the operand's own.
const std::string kSums = on(5, "  add.rn.f32 %f1, %x, 0f3F000000;\n  add.rn.f32 %f2, %y, 0f3FC00000;\n");
const std::string kProducts = on(6, "  mul.rn.f32 %f3, %f1, %y;\n  mul.rn.f32 %f4, %f2, %x;\n");

TEST(SuspectLines, AStatementThatTakesAValueTooLateIsNamedWithWhatItShouldGoPast) {
  const SuspectLines suspects =
      all_suspects_of(kSums + kProducts + on(7, "  mul.rn.f32 %r, %f3, %x;\n  mul.rn.f32 %q, %f4, %y;"),
                      kSums + kProducts + on(7, "  mul.rn.f32 %r, %f1, %x;\n  mul.rn.f32 %q, %f2, %y;"));
  EXPECT_TRUE(names(suspects.related, 7));
  EXPECT_TRUE(names(suspects.superfluous, 6));
}

TEST(SuspectLines, AStatementThatTakesAValueTooEarlyIsNamedWithWhatMakesItsOwn) {
  const std::string last = on(8, "  mul.rn.f32 %r, %f5, %f3;\n  mul.rn.f32 %q, %f6, %f4;");
  const SuspectLines suspects = all_suspects_of(
      kSums + kProducts + on(7, "  add.rn.f32 %f5, %f1, %y;\n  add.rn.f32 %f6, %f2, %x;\n") + last,
      kSums + kProducts + on(7, "  add.rn.f32 %f5, %f3, %y;\n  add.rn.f32 %f6, %f4, %x;\n") + last);
  EXPECT_TRUE(names(suspects.related, 7));
  EXPECT_TRUE(names(suspects.passed_on, 6));
}

TEST(SuspectLines, AFactorOfAnotherOperandIsWhatATermLacks) {
  const SuspectLines suspects = all_suspects_of(
      kSums + kProducts + on(7, "  sub.rn.f32 %r, %f3, %x;\n  sub.rn.f32 %q, %f4, %y;"),
      kSums + kProducts +
          "  mul.rn.f32 %f5, %x, %f1;\n  mul.rn.f32 %f6, %y, %f2;\n  sub.rn.f32 %r, %f3, %f5;\n"
          "  sub.rn.f32 %q, %f4, %f6;");
  ASSERT_TRUE(names(suspects.related, 7));
  EXPECT_EQ(suspects.related.front().reason,
            "with what steps.cu:6 takes as a factor, its values make all wrong elements right");
}

/// The sum is weighed where one of its terms alone should be.
TEST(SuspectLines, WhereALineIsDividedByAFactorTheProductWithItIsNamed) {
  const std::string begin = on(4, "  add.rn.f32 %f1, %y, 0f3F000000;\n") +
                            on(5, "  mul.rn.f32 %f2, %x, %y;\n") +
                            on(6, "  add.rn.f32 %f3, %x, 0f40000000;\n"),
                    other = on(9, "  add.rn.f32 %q, %x, %y;");
  const SuspectLines suspects = all_suspects_of(
      begin + on(7, "  add.rn.f32 %f4, %f2, %f3;\n") + on(8, "  mul.rn.f32 %r, %f4, %f1;\n") + other,
      begin + on(7, "  mul.rn.f32 %f4, %f3, %f1;\n  add.rn.f32 %r, %f2, %f4;\n") + other);
  EXPECT_TRUE(names(suspects.related, 5));
  EXPECT_TRUE(names(suspects.superfluous, 8));
}

/// A factor may stand at any place of a product.
TEST(SuspectLines, WhereAFactorIsLackingTheRestOfItsProductIsNamedToo) {
  const std::string rest = on(7, "  add.rn.f32 %q, %x, %y;");
  const SuspectLines suspects = all_suspects_of(
      kDecayed + on(5, "  mul.rn.f32 %f1, %s, %y;\n") + on(6, "  mul.rn.f32 %r, %f1, 0f40A00000;\n") + rest,
      kDecayed + on(5, "  mul.rn.f32 %f1, %s, %y;\n  mul.rn.f32 %f1, %f1, %x;\n") +
          on(6, "  mul.rn.f32 %r, %f1, 0f40A00000;\n") + rest);
  ASSERT_TRUE(names(suspects.related, 6));
  EXPECT_TRUE(names(suspects.in_product, 5));
  EXPECT_EQ(suspects.changes, 0U) << "nothing that the thread does not have";
}

/// Of two calls of a function of some lines each explains one of the outputs.
TEST(SuspectLines, ALineOfAFunctionThatIsCalledTwiceIsNamedForBothCalls) {
  const auto inlined = [](int at, int line, const std::string& instructions) {
    return "  .loc 1 " + std::to_string(line) + " 0, inlined_at 1 " + std::to_string(at) + " 0\n" +
           instructions;
  };
  const auto calls = [&](const std::string& last_of_first, const std::string& last_of_second) {
    return kDecayed + inlined(7, 2, "  mov.f32 %f5, %x;\n") + inlined(7, 3, "  mov.f32 %f6, %f5;\n") +
           inlined(7, 4, "  add.rn.f32 %f3, %f6, 0f3F800000;\n") +
           inlined(7, 5, "  mul.rn.f32 %f1, %f3, %y;\n" + last_of_first) +
           inlined(8, 2, "  mov.f32 %f5, %s;\n") + inlined(8, 3, "  mov.f32 %f6, %f5;\n") +
           inlined(8, 4, "  add.rn.f32 %f4, %f6, 0f3F800000;\n") +
           inlined(8, 5, "  mul.rn.f32 %f2, %f4, %y;\n" + last_of_second) +
           on(9, "  add.rn.f32 %r, %f1, %s;\n") + on(10, "  add.rn.f32 %q, %f2, %y;\n") + on(11, "");
  };
  const SuspectLines suspects = all_suspects_of(
      calls("", ""), calls("  mul.rn.f32 %f1, %f1, 0f40400000;\n", "  mul.rn.f32 %f2, %f2, 0f40400000;\n"));
  ASSERT_FALSE(suspects.likeliest.empty());
  EXPECT_EQ(suspects.likeliest.front().at.where.line, 5);
  EXPECT_EQ(suspects.likeliest.front().reason, "its values times 3 make all wrong elements right");
  EXPECT_EQ(suspects.changes, 1U);
}

/// The base of the block stands behind the thread's part.
TEST(SuspectLines, WhatSaysWhichBlocksPartIsReadIsNamedApart) {
  const SuspectLines suspects = all_suspects_of(
      on(4, "  mov.u32 %i, %ctaid.x;\n  mul.wide.u32 %off, %i, 24;\n") +
          on(5, "  ld.param.u64 %base, [px];\n  add.s64 %base, %base, %off;\n") +
          on(6, "  mov.u32 %i, %tid.x;\n  mul.wide.u32 %off, %i, 4;\n") +
          on(7, "  add.s64 %base, %base, %off;\n") + on(9, "  ld.global.f32 %f1, [%base];\n") +
          on(11, "  mul.rn.f32 %r, %f1, %y;\n  add.rn.f32 %q, %x, %y;"),
      "  mul.rn.f32 %r, %x, %y;\n  add.rn.f32 %q, %x, %y;");
  EXPECT_EQ(suspects.loads.at("x").at.where.line, 9);
  EXPECT_EQ(suspects.places.at("x").at.where.line, 7);
  ASSERT_TRUE(suspects.blocks.contains("x"));
  EXPECT_EQ(suspects.blocks.at("x").at.where.line, 4);
}

}  // namespace
}  // namespace assay
