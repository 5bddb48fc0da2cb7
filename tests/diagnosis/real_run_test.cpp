// What puts values beyond their bounds is told apart, and meanings are held against exact values.
#include "src/verification/diagnosis/real_run.h"

#include <gtest/gtest.h>

#include "tests/diagnosis/named_first.h"

namespace assay {
namespace {

using test::predicted;

const char* const kScene = "gla.fused_recurrent/B1/T36/H2/K3/V4/bf16/g-fp32/logsigmoid/s3/h0";

/// An exact run that gives the prediction, or where it says nothing the reference, to within `slack`.
vm::ExactRun exact_of(const ReferenceResult& reference, const Prediction& p, double slack) {
  vm::ExactRun exact;
  for (const ReferenceOutput& o : reference.outputs) {
    const auto found = p.find(o.name);
    exact.outputs[o.name] = {found == p.end() ? o.mid : found->second.mid,
                             std::vector<double>(o.mid.size(), slack)};
  }
  return exact;
}

std::string first_of(const FailingRun& failing, const vm::ExactRun& exact) {
  const RealRun real(failing, exact);
  const Weighed w =
      weigh_meanings(real.wrong_by() == WrongBy::formula ? real.run() : failing, 60, real.wrong_by());
  return w.fitting.empty() || w.fitting.front().score < 0.5 ? "" : w.fitting.front().cause;
}

/// The values stay within the bounds of bf16; on real numbers they are another formula's.
TEST(RealRun, AMeaningIsNamedWhereBoundsHideIt) {
  test::MutatedRun scene(parse_token(kScene));
  const Prediction p = *evaluate_with(
      scene.run(), "v", mapped(scene.inputs().at("v"), [](double x, int64_t) { return 1.001 * x; }));
  scene.store({});
  const FailingRun run = scene.run();
  ASSERT_TRUE(run.wrong().empty());
  const vm::ExactRun exact = exact_of(scene.reference(), p, 1e-9);
  const RealRun real(run, exact);
  EXPECT_EQ(real.wrong_by(), WrongBy::formula);
  EXPECT_EQ(real.run().wrong().size(), 2u);
  EXPECT_TRUE(real.run().forward);
  const Prediction shifted =
      *predicted(run, "decay-shifted-one-step", "g of the token before, the outermost kept");
  EXPECT_EQ(first_of(run, exact_of(scene.reference(), shifted, 1e-9)), "decay-shifted-one-step");
}

TEST(RealRun, WhatComesNearIsRefutedByTheDigitsThatTheBoundHides) {
  test::MutatedRun scene(parse_token(kScene));
  const Prediction p = *predicted(scene.run(), "gate-missing", "g: no decay at all");
  Prediction near = p;
  for (auto& [name, output] : near)
    for (size_t i = 0; i < output.mid.size(); ++i) output.mid[i] *= i % 60 == 0 ? 1 + 1e-6 : 1;
  scene.store(near);
  const FailingRun run = test::wrong_directions(scene);
  EXPECT_EQ(first_of(run, exact_of(scene.reference(), p, 1e-9)), "gate-missing");
  EXPECT_EQ(first_of(run, exact_of(scene.reference(), near, 1e-9)), "");
  EXPECT_EQ(first_of(run, exact_of(scene.reference(), near, 1e-3)), "gate-missing") << "within the slack";
}

TEST(RealRun, WhereTheFormulaIsRightOnlyRoundingsAreTried) {
  test::MutatedRun scene(parse_token("gla.fused_recurrent/B1/T36/H2/K3/V4/fp32/g-fp32/logsigmoid/s3/h0"));
  const Prediction p = *predicted(scene.run(), "operand-rounded", "v rounded to bf16");
  scene.store(p);
  const FailingRun run = test::wrong_directions(scene);
  const vm::ExactRun right = exact_of(scene.reference(), {}, 1e-9);
  EXPECT_EQ(RealRun(run, right).wrong_by(), WrongBy::rounding);
  EXPECT_EQ(first_of(run, right), "operand-rounded");
  scene.store(*predicted(scene.run(), "gate-missing", "g: no decay at all"));
  EXPECT_EQ(first_of(test::wrong_directions(scene), right), "") << "no formula gives it";
}

TEST(RealRun, ValuesThatCannotBeFollowedAreComparedAsTheyAre) {
  test::MutatedRun scene(parse_token(kScene));
  const Prediction p = *predicted(scene.run(), "gate-missing", "g: no decay at all");
  scene.store(p);
  const FailingRun run = test::wrong_directions(scene);
  vm::ExactRun exact = exact_of(scene.reference(), {}, HUGE_VAL);
  EXPECT_EQ(RealRun(run, exact).wrong_by(), WrongBy::unknown);
  EXPECT_EQ(first_of(run, exact), "gate-missing");
  exact = exact_of(scene.reference(), {}, 1e-9);
  exact.branches_turned = 1;
  EXPECT_EQ(RealRun(run, exact).wrong_by(), WrongBy::unknown) << "on real numbers it goes another way";
}

}  // namespace
}  // namespace assay
