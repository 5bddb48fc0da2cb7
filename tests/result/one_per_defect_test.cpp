#include "src/result/one_per_defect.h"

#include <gtest/gtest.h>

#include "src/result/identity.h"

namespace assay {
namespace one_per_defect_test {

Verification finding(const std::string& cause) {
  Verification v;
  v.kernel = "mine";
  v.verdict = Verdict::finding;
  v.cause = cause;
  v.replay = "assay replay " + cause;
  return v;
}

CheckReport race_at(int line) {
  CheckReport report;
  report.findings.push_back({.check = CheckName::races, .kind = CheckKind::race, .message = "a race"});
  report.findings.back().at.where = {"src/k.cu", line, 0, "k", {}};
  return report;
}

Verification nan_at(int line, const std::string& named = "") {
  Verification v = finding("nonfinite/o/exp-overflow/src/k.cu:" + std::to_string(line));
  v.outputs.emplace_back();
  v.outputs.back().nonfinite = 1;
  v.origin.emplace();
  v.origin->where = {"src/k.cu", line, 0, "k", {}};
  if (!named.empty()) v.diagnosis = {{named, "in words", 0.9, {}}};
  return v;
}

Verification wrong(const std::string& named) {
  Verification v = finding("violation/o");
  v.outputs.emplace_back();
  v.outputs.back().violation = 1;
  v.diagnosis = {{named, "in words", 0.9, {}}};
  return v;
}

TEST(OnePerDefect, AMissingBarrierIsOneFindingWithItsEvidence) {
  Verification property = finding("property/no-races"), values = nan_at(9),
               check = finding("check/race/src/k.cu:46");
  property.properties_failed = {"no-races: a race"};
  property.checks = values.checks = check.checks = race_at(46);
  const std::vector<Verification> one = one_per_defect({property, values, check});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].cause, "check/race/src/k.cu:46") << "what names the cause itself";
  ASSERT_EQ(one[0].also.size(), 2u);
  EXPECT_EQ(identities_of(one[0]).size(), 3u);
  for (const Verification& v : {property, values, check}) {
    const std::vector<std::string> all = identities_of(one[0]);
    EXPECT_NE(std::find(all.begin(), all.end(), identity_of(v)), all.end()) << v.cause;
  }
}

TEST(OnePerDefect, TwoRacesAndTwoKernelsStayApart) {
  Verification a = finding("check/race/src/k.cu:46"), b = finding("check/race/src/k.cu:90"), c = a;
  a.checks = c.checks = race_at(46), b.checks = race_at(90);
  c.kernel = "other";
  EXPECT_EQ(one_per_defect({a, b, c}).size(), 3u);
}

TEST(OnePerDefect, AnAddressThatTrapsIsNoRaceThatIsSeenBesideIt) {
  Verification address = finding("trap/out-of-bounds/src/k.cu:30"), race = finding("check/race/src/k.cu:46");
  address.trap = Trap{.kind = TrapKind::out_of_bounds, .where = {"src/k.cu", 30, 0, "k", {}}};
  address.checks = race.checks = race_at(46);
  EXPECT_EQ(one_per_defect({address, race}).size(), 2u);
  address.trap->kind = TrapKind::barrier;
  EXPECT_EQ(one_per_defect({address, race}).size(), 1u) << "a wait may fail for what the checks say";
}

TEST(OnePerDefect, WhatIsComputedInsteadNamesOneDefectOfValuesAndNaNs) {
  const std::vector<Verification> one =
      one_per_defect({nan_at(9, "gate-sign"), nan_at(12, "gate-sign"), wrong("gate-sign")});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].also.size(), 2u);
  EXPECT_EQ(one_per_defect({nan_at(9, "gate-sign"), nan_at(12, "gate-sign")}).size(), 2u)
      << "of two births alone each may have a fault of its own";
  EXPECT_EQ(one_per_defect({wrong("gate-sign"), wrong("mask-off-by-one")}).size(), 2u);
  EXPECT_EQ(one_per_defect({wrong("unexplained"), nan_at(9, "unexplained")}).size(), 2u);
}

/// `named` "": no cause explains the values.
Verification wrong_by(int line, const std::string& named) {
  Verification v = named.empty() ? finding("formula/o") : wrong(named);
  v.lines.emplace_back();
  v.lines.back().at.where = {"src/k.cu", line, 0, "k", {}};
  return v;
}

TEST(OnePerDefect, ValuesThatNoCauseExplainsJoinThoseOfTheirLine) {
  for (const auto& pair : {std::pair(wrong_by(55, ""), wrong_by(55, "decay-base")),
                           std::pair(wrong_by(55, "decay-base"), wrong_by(55, ""))}) {
    const std::vector<Verification> one = one_per_defect({pair.first, pair.second});
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(one[0].diagnosis.at(0).cause, "decay-base") << "what names a cause is shown";
    EXPECT_EQ(one[0].also.at(0).cause, "formula/o");
  }
  EXPECT_EQ(one_per_defect({wrong_by(55, ""), wrong_by(56, "decay-base")}).size(), 2u);
  EXPECT_EQ(one_per_defect({wrong_by(55, "decay-lost"), wrong_by(55, "decay-base")}).size(), 2u);
}

TEST(OnePerDefect, ReadsOfWhatNothingWroteStayApartWhateverStoresShare) {
  Verification a = nan_at(9, "unwritten-value"), b = nan_at(12, "unwritten-value");
  for (Verification* v : {&a, &b}) {
    v->origin->kind = OriginKind::unwritten_memory;
    v->lines = wrong_by(40, "").lines;
  }
  EXPECT_EQ(one_per_defect({a, b}).size(), 2u);
  b.origin->where = a.origin->where;
  EXPECT_EQ(one_per_defect({a, b}).size(), 1u);
}

TEST(OnePerDefect, NothingIsLostAndTheOrderStays) {
  const std::vector<Verification> all = one_per_defect({wrong("a"), nan_at(3), wrong("b")});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].cause, "nonfinite/o/exp-overflow/src/k.cu:3");
}

}  // namespace one_per_defect_test
}  // namespace assay
