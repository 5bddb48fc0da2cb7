#include "src/verification/verify/verify.h"

#include <gtest/gtest.h>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/decay_profiles.h"
#include "src/case/values.h"
#include "tests/verify/float_recurrence.h"

namespace assay {
namespace {

VerifyOptions plain() {
  VerifyOptions options;
  options.threads = 1;
  options.diagnose = false;  // there is no PTX to replay
  return options;
}

Verification run(const Case& c, FloatBackend& backend, VerifyOptions options = plain()) {
  return verify(c, float_kernel(), backend, options);
}

TEST(Verify, ACleanKernelPassesOnEveryDecayProfileAndKindOfValues) {
  for (const DecayProfile& profile : decay_profiles()) {
    for (const ValueKind& values : value_kinds()) {
      Case c = float_case();
      c.decay = profile.name;
      c.values = values.name;
      if (c.values == "exact" && c.decay != "none") continue;
      FloatBackend backend;
      const Verification v = run(c, backend);
      EXPECT_EQ(v.verdict, profile.in_domain ? Verdict::pass : Verdict::domain)
          << token_of(c) << " " << v.cause;
      EXPECT_EQ(v.outputs.size(), profile.in_domain ? 2 : 0);
      EXPECT_EQ(backend.runs, profile.in_domain ? 2 : 0) << "out of domain nothing is launched";
      for (const OutputComparison& o : v.outputs) EXPECT_EQ(o.ok, o.elements);
    }
  }
}

/// States that keys longer than one make grow until no bound follows; short of that they are judged.
TEST(Verify, WhatNoBoundFollowsIsOutOfDomainWhereTheInputsMakeStatesGrow) {
  const auto backend = make_vm_backend({});
  for (const auto& [tokens, expected] : {std::pair(631, Verdict::domain), std::pair(64, Verdict::pass)}) {
    const Case c = parse_token("delta_rule.chunk/B1/T" + std::to_string(tokens) +
                               "/H1/K16/V15/bf16/g-fp32/none/v-growing/s917578/h0");
    const Verification v = verify(c, find_kernel(c.kernel), *backend, plain());
    EXPECT_EQ(v.verdict, expected) << v.cause;
    EXPECT_EQ(v.domain.size(), expected == Verdict::domain ? 1 : 0);
    ASSERT_EQ(v.outputs.size(), 2);
    EXPECT_GT(v.outputs[0].ok, 0);
  }
}

TEST(Verify, EveryFaultBecomesItsOwnFinding) {
  const auto set = [](Outcome& outcome, const char* output, int64_t flat, double value) {
    outcome.outputs.at(output).set(flat, value);
  };
  struct Row {
    std::function<void(Outcome&, int)> tamper;
    const char* cause;
  };
  const Row table[] = {
      {[&](Outcome& o, int) { set(o, "o", 17, 1e3); }, "violation/o"},
      {[&](Outcome& o, int) { set(o, "o", 17, NAN); }, "nonfinite/o"},
      {[&](Outcome& o, int) { set(o, "final_state", 3, -INFINITY); }, "nonfinite/final_state"},
      {[&](Outcome& o, int) { set(o, "o", 0, 1e3), set(o, "final_state", 3, NAN); }, "nonfinite/final_state"},
      {[&](Outcome& o, int n) {
         if (n == 2) set(o, "o", 17, std::nextafter(static_cast<float>(o.outputs.at("o").value(17)), 9.f));
       },
       "property/same-bits-twice"},
      {[&](Outcome& o, int) {
         o.trap = Trap{TrapKind::out_of_bounds, "store beyond o", {"kernels/x.cu", 12, 99, "x"}, {}, {}};
       },
       "trap/out-of-bounds/kernels/x.cu:12"},
      {[&](Outcome& o, int n) {
         if (n == 2) o.trap = Trap{TrapKind::hang, "", {"kernels/x.cu", 12, 99, "x"}, {}, {}};
       },
       "property/same-bits-twice"},
      {[&](Outcome& o, int) {
         o.exponents = {{{"kernels/x.cu", 12, 99, "x"}, "ex2.approx.ftz.f32", -1, 0x1p-30, 1, 0}};
       },
       "property/exponents-nonpositive"},
  };
  for (const Row& row : table) {
    FloatBackend backend;
    backend.tamper = row.tamper;
    const Verification v = run(float_case(), backend);
    EXPECT_EQ(v.verdict, Verdict::finding) << row.cause;
    EXPECT_EQ(v.cause, row.cause);
  }
}

TEST(Verify, ExponentsAtMostZeroAreNoFinding) {
  FloatBackend backend;
  backend.tamper = [](Outcome& o, int) {
    o.exponents = {{{"kernels/x.cu", 12, 99, "x"}, "ex2.approx.ftz.f32", -1e4, 0, 1, 0}};
  };
  EXPECT_EQ(run(float_case(), backend).verdict, Verdict::pass);
}

/// The last of them writes something.
int64_t tokens_to_a_lone_value(Case c) {
  for (c.T = 16; c.T > 1; --c.T) {
    const Tensor v = draw_inputs(c, find_operator("gla")).at("v");
    if (v.value(v.size() - 1) != 0) break;
  }
  return c.T;
}

TEST(Verify, ADroppedTokenIsFoundInEveryKindOfValues) {
  for (const ValueKind& values : value_kinds()) {
    Case c = float_case();
    c.values = values.name;
    if (c.values == "exact") c.decay = "none", c.T = 8;  // every token writes
    if (c.values == "lone") c.T = tokens_to_a_lone_value(c);
    FloatBackend clean, broken;
    broken.skip_last_token = true;
    EXPECT_EQ(run(c, clean).verdict, Verdict::pass) << values.name;
    EXPECT_EQ(run(c, broken).verdict, Verdict::finding) << values.name;
  }
}

TEST(Verify, ExactCasesSeeOneUnitWhereTheBoundWouldHideIt) {
  Case c = float_case();
  c.values = "exact", c.decay = "none";
  const auto one_unit = [](Outcome& o, int) {
    Tensor& out = o.outputs.at("o");
    int64_t at = 0;
    while (out.value(at) == 0) ++at;
    out.set(at, std::nextafter(static_cast<float>(out.value(at)), 1e9f));
  };
  FloatBackend backend;
  backend.tamper = one_unit;
  EXPECT_EQ(run(c, backend).cause, "violation/o");
  EXPECT_EQ(backend.scale_seen, 0.25) << "K = 9: the power of two at or below 1/3";
  c.values = "normal";
  FloatBackend normal;
  normal.tamper = one_unit;
  EXPECT_EQ(run(c, normal).verdict, Verdict::pass);
  EXPECT_EQ(normal.scale_seen, 1 / std::sqrt(9.0));
}

TEST(Verify, APeerWithOtherBitsIsAFindingWithTheirNumber) {
  FloatBackend backend, same, other;
  other.tamper = [](Outcome& o, int) {
    for (int64_t at : {3, 4})
      o.outputs.at("o").set(at, std::nextafter(static_cast<float>(o.outputs.at("o").value(at)), 1e9f));
  };
  VerifyOptions options = plain();
  EXPECT_EQ(run(float_case(), backend, options).bits_differ, -1);
  options.peer = &same;
  EXPECT_EQ(run(float_case(), backend, options).bits_differ, 0);
  options.peer = &other;
  const Verification v = run(float_case(), backend, options);
  EXPECT_EQ(v.bits_differ, 2);
  EXPECT_EQ(v.cause, "property/same-bits-on-peer");
  EXPECT_NE(v.properties_failed.at(0).find("2 elements of o differ, first o[b=0,t=0,h=0,v=3]: 0x"),
            std::string::npos)
      << v.properties_failed[0];
}

TEST(Verify, APeerThatDiffersFromItselfIsARace) {
  FloatBackend backend, racing;
  racing.tamper = [](Outcome& o, int n) {
    if (n == 2) o.outputs.at("o").set_bits(0, o.outputs.at("o").bits(0) ^ 1);
  };
  VerifyOptions options = plain();
  options.peer = &racing;
  EXPECT_EQ(run(float_case(), backend, options).cause, "property/same-bits-twice-on-peer");
}

TEST(Verify, GivenInputsTakeThePlaceOfDrawnOnes) {
  const Case c = float_case();
  TensorMap inputs = draw_inputs(c, find_operator("gla"));
  inputs.at("g").set(0, 0.5);
  VerifyOptions options = plain();
  options.inputs = &inputs;
  FloatBackend backend;
  const Verification v = run(c, backend, options);
  EXPECT_EQ(v.verdict, Verdict::domain);
  ASSERT_EQ(v.domain.size(), 1);
  EXPECT_NE(v.domain[0].find("g[b=0,t=0,h=0,k=0] = 0.5"), std::string::npos) << v.domain[0];
}

TEST(Verify, AnElementOfAnOutputThatTheRunDoesNotWriteIsBadInputBeforeAnythingRuns) {
  FloatBackend backend;
  VerifyOptions options = plain();
  options.element = {"dq", 0};
  try {
    run(float_case(), backend, options);
    FAIL() << "accepted";
  } catch (const BadInput& e) {
    EXPECT_STREQ(e.what(), "element of dq: this run does not write it; it writes o, final_state");
  }
  EXPECT_EQ(backend.runs, 0);
}

TEST(Verify, TheResultSaysWhatWasRunAndHowToRepeatIt) {
  FloatBackend backend;
  const Verification v = run(float_case(), backend);
  EXPECT_EQ(v.kernel, "gla.float");
  EXPECT_EQ(v.backend, "fp32 recurrence");
  EXPECT_EQ(v.arithmetic, "fp32 recurrence");
  EXPECT_EQ(v.case_, float_case());
  EXPECT_EQ(parse_token(v.token), float_case());
  EXPECT_EQ(v.replay, "assay replay " + v.token);
}

}  // namespace
}  // namespace assay
