#include "src/result/finding_kind.h"

#include <gtest/gtest.h>

namespace assay {
namespace finding_kind_test {

Verification finding() {
  Verification v;
  v.verdict = Verdict::finding;
  v.cause = "something";
  v.outputs.emplace_back();
  return v;
}

using Kinds = std::set<FindingKind>;

/// For every row a run of that kind alone, so that a kind without a row here is seen.
TEST(FindingKind, EveryKindIsFoundAlone) {
  const std::pair<FindingKind, void (*)(Verification&)> table[] = {
      {FindingKind::violation, [](Verification& v) { v.outputs[0].violation = 1; }},
      {FindingKind::nonfinite, [](Verification& v) { v.outputs[0].nonfinite = 1; }},
      {FindingKind::wrong_class, [](Verification& v) { v.outputs[0].wrong_class = 1; }},
      {FindingKind::formula,
       [](Verification& v) { v.formula.emplace().outputs.emplace_back().violation = 1; }},
      {FindingKind::unlikely,
       [](Verification& v) { v.rounding.emplace().outputs.emplace_back().unlikely = 1; }},
      {FindingKind::trap, [](Verification& v) { v.trap.emplace().kind = TrapKind::out_of_bounds; }},
      {FindingKind::hang, [](Verification& v) { v.trap.emplace().kind = TrapKind::hang; }},
      {FindingKind::check, [](Verification& v) { v.checks.emplace().findings.emplace_back(); }},
      {FindingKind::bits, [](Verification& v) { v.bits_differ = 1; }},
      {FindingKind::property, [](Verification& v) { v.properties_failed = {"causality: o[0] differs"}; }},
      {FindingKind::expected, [](Verification& v) { v.expected_outputs.emplace_back().violation = 1; }},
      {FindingKind::order,
       [](Verification& v) { v.repeats.push_back({.differing = 1, .by_order_of_sums = true}); }},
      {FindingKind::undecided, [](Verification& v) { v.verdict = Verdict::undecided; }},
      {FindingKind::inconclusive,
       [](Verification& v) { v.power.emplace().outputs.emplace_back().inconclusive = true; }},
  };
  ASSERT_EQ(std::size(table), finding_kinds().size());
  for (const auto& [name, change] : table) {
    Verification v = finding();
    change(v);
    EXPECT_EQ(kinds_of(v), Kinds{name}) << name_of(name);
  }
}

TEST(FindingKind, EveryNameHasARowWhoseCausesBeginWithItsWord) {
  Verification v = finding();
  v.outputs[0] = {.name = "o", .violation = 1, .nonfinite = 1, .wrong_class = 1, .undecided = 1};
  v.formula.emplace().outputs.push_back({.name = "o", .violation = 1});
  v.rounding.emplace().outputs.push_back({.name = "dq", .unlikely = 1, .worst = {.where = "o", .ratio = 3}});
  v.power.emplace().outputs.push_back({.name = "o", .inconclusive = true});
  v.checks.emplace().findings.emplace_back().kind = CheckKind::race;
  v.expected_outputs = {v.outputs[0]};
  v.repeats.push_back({.differing = 1, .by_order_of_sums = true});
  Kinds kinds;
  for (const FindingKindRow& row : finding_kinds()) {
    kinds.insert(row.kind);
    Verification one = v;
    if (row.cause_word == "trap")
      one.trap.emplace().kind = row.kind == FindingKind::hang ? TrapKind::hang : TrapKind::out_of_bounds;
    one.properties_failed = {row.kind == FindingKind::bits ? "same-bits-twice: o" : "causality: o"};
    if (row.verdict == Verdict::pass)
      EXPECT_EQ(row.cause(one), "");  // it makes no finding of a run that has nothing else
    else
      EXPECT_TRUE(row.cause(one).starts_with(std::string(row.cause_word) + "/")) << row.cause(one);
    EXPECT_TRUE(row.of_output ? !row.of_run && !row.of_output(v.outputs[0]).empty()
                              : !row.of_run(one).empty())
        << name_of(row.kind);
  }
  EXPECT_EQ(kinds.size(), names_of(FindingKind{}).size());
}

TEST(FindingKind, FaultsAreToldOutputByOutputThenOfTheRunAndOfATrapAlone) {
  Verification v = finding();
  v.outputs[0] = {.name = "o", .violation = 2, .nonfinite = 1};
  v.outputs.push_back({.name = "dq", .wrong_class = 1});
  v.checks.emplace().findings.emplace_back().kind = CheckKind::race;
  EXPECT_EQ(faults_of(v),
            (std::vector<std::string>{"1 non-finite element of o", "2 elements of o beyond the bound",
                                      "1 wrongly finite element of dq", "race"}));
  v.trap = Trap{TrapKind::hang, "no end", {}, {}, {}};
  EXPECT_EQ(faults_of(v), std::vector<std::string>{"hang: no end"});
}

TEST(FindingKind, SeveralKindsAreAllNamed) {
  Verification v = finding();
  v.outputs[0].violation = v.outputs[0].nonfinite = 3;
  v.properties_failed = {"within-bound: o[0]", "same-bits-twice: o[0] differs"};
  EXPECT_EQ(kinds_of(v), (Kinds{FindingKind::violation, FindingKind::nonfinite, FindingKind::bits}));
}

TEST(FindingKind, EveryFaultOfAnOutputInTheFileIsExpectedAndUndecidedIsNone) {
  for (int64_t OutputComparison::*fault :
       {&OutputComparison::violation, &OutputComparison::nonfinite, &OutputComparison::wrong_class}) {
    Verification v = finding();
    v.expected_outputs.emplace_back().*fault = 1;
    EXPECT_EQ(kinds_of(v), Kinds{FindingKind::expected});
  }
  Verification v = finding();
  v.expected_outputs.emplace_back().undecided = 1;
  EXPECT_FALSE(expected_differs(v));
}

TEST(FindingKind, WhatTheReferenceContradictsNeedsNoStatistics) {
  Verification v = finding();
  v.expected_outputs.push_back({.name = "o", .violation = 2});
  v.expected_outputs.push_back({.name = "final_state"});
  v.rounding.emplace().expected = {{.name = "o", .unlikely = 1}};
  EXPECT_EQ(faults_of(v), std::vector<std::string>{"2 elements of o in the file beyond the bound"});
  v.rounding->expected[0].name = "final_state";
  ASSERT_EQ(faults_of(v).size(), 2u);
  EXPECT_TRUE(faults_of(v)[0].ends_with(", in the file")) << faults_of(v)[0];
}

TEST(FindingKind, APassAndADomainHaveNone) {
  for (const Verdict verdict : {Verdict::pass, Verdict::domain}) {
    Verification v = finding();
    v.verdict = verdict;
    v.outputs[0].undecided = 1;
    EXPECT_TRUE(kinds_of(v).empty()) << name_of(verdict);
  }
}

TEST(FindingKind, AFindingThatNoRowKnowsStillHasOne) {
  EXPECT_EQ(kinds_of(finding()), Kinds{FindingKind::property});
}

}  // namespace finding_kind_test
}  // namespace assay
