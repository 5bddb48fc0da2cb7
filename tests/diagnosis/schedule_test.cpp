#include "src/verification/diagnosis/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/diagnosis/mutated_run.h"

namespace assay {
namespace {

const char* const kCases[] = {
    "gla.fused_recurrent/B2/T9/H2/K3/V2/fp32/g-fp32/logsigmoid/s1/h0/both/dht",
    "gla.fused_recurrent/B1/T9/H2/K3/V2/fp32/g-fp32/logsigmoid/s1/cu0,4,9/h0/both",
    "simple_gla.fused_recurrent/B2/T9/H2/K3/V2/fp32/g-fp32/logsigmoid/s2/both",
    "retention.fused_recurrent/B2/T9/H2/K3/V2/fp32/s3/h0/both",
    "rwkv6.fused_recurrent/B2/T9/H2/K3/V2/fp32/g-fp32/logsigmoid/s4/h0/both",
    "hgrn.fused_recurrent/B2/T9/V5/fp32/g-fp32/logsigmoid/s5/h0/both",
    "rwkv7.fused_recurrent/B2/T9/H2/K4/V3/fp32/g-fp32/logsigmoid/s6/h0/both",
    "gsa.fused_recurrent/B2/T9/H2/K3/V2/M4/fp32/g-fp32/logsigmoid/s7/h0/both",
    "linear_attn_norm.fused_recurrent/B2/T9/H2/K3/V2/fp32/v-positive/s8/both",
};

Schedule everything(const FailingRun& run) {
  return schedule_of(run, [](const TokenPlace& p) { return Events{{p.row, p.row, p.row}}; });
}

/// Largest distance, in bounds, of a prediction from the reference.
double distance(const FailingRun& run, const Prediction& p) {
  double largest = 0;
  for (const ReferenceOutput& o : run.reference->outputs) {
    const auto found = p.find(o.name);
    EXPECT_NE(found, p.end()) << o.name;
    if (found == p.end()) return INFINITY;
    for (size_t i = 0; i < o.mid.size(); ++i)
      largest = std::max(largest, std::fabs(found->second.mid[i] - o.mid[i]) / (o.bound[i] + 1e-300));
  }
  return largest;
}

TEST(Schedule, EveryTokenInOneEventIsTheOperatorItself) {
  for (const char* token : kCases) {
    const test::MutatedRun scene(parse_token(token));
    const FailingRun run = with_explicit_gates(scene.run());
    ASSERT_TRUE(is_schedulable(run)) << token;
    const auto p = evaluate_schedule(run, everything(run));
    ASSERT_TRUE(p) << token;
    EXPECT_LT(distance(run, *p), 1) << token;
  }
}

TEST(Schedule, OneThingAtATimeIsTheOperatorToo) {
  for (const char* token : kCases) {
    const test::MutatedRun scene(parse_token(token));
    const FailingRun run = with_explicit_gates(scene.run());
    if (reads_before_write(run) || run.op->name == "rwkv7")
      continue;  // what they read and write belongs together
    const auto p = evaluate_schedule(run, schedule_of(run, [](const TokenPlace& t) {
                                       return Events{{t.row, -1, -1}, {-1, t.row, -1}, {-1, -1, t.row}};
                                     }));
    ASSERT_TRUE(p) << token;
    EXPECT_LT(distance(run, *p), 1) << token;
  }
}

TEST(Schedule, ADroppedWriteIsNotTheOperator) {
  for (const char* token : kCases) {
    const test::MutatedRun scene(parse_token(token));
    const FailingRun run = with_explicit_gates(scene.run());
    const auto p = evaluate_schedule(run, schedule_of(run, [](const TokenPlace& t) {
                                       return Events{{t.row, t.t == 2 ? -1 : t.row, t.row}};
                                     }));
    ASSERT_TRUE(p) << token;
    EXPECT_GT(distance(run, *p), 10) << token;
  }
}

TEST(Schedule, AResetForgetsEarlierTokensAndTheInitialState) {
  const test::MutatedRun scene(
      parse_token("gla.fused_recurrent/B1/T6/H1/K2/V2/fp32/g-fp32/logsigmoid/s1/h0"));
  const FailingRun run = scene.run();
  ASSERT_TRUE(can_reset(run));
  const auto events = [](bool later_only) {
    return [later_only](const TokenPlace& p) {
      if (later_only) return p.t < 3 ? Events{{-1, -1, p.row}} : Events{{p.row, p.row, p.row}};
      return p.t == 3 ? Events{{-1, -1, -1, true}, {p.row, p.row, p.row}} : Events{{p.row, p.row, p.row}};
    };
  };
  Schedule alone = schedule_of(run, events(true));
  alone.initial_state = false;
  const auto reset = evaluate_schedule(run, schedule_of(run, events(false))),
             later = evaluate_schedule(run, alone);
  for (size_t i = 6; i < 12; ++i) EXPECT_NEAR(reset->at("o").mid[i], later->at("o").mid[i], 1e-12);
}

}  // namespace
}  // namespace assay
