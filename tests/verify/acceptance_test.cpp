#include "src/verification/verify/acceptance.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/verify/float_recurrence.h"

namespace assay {
namespace {

TEST(Acceptance, WhatAKernelDoesNotTakeIsNamedWithWhatItTakes) {
  const std::pair<std::function<void(Case&)>, const char*> table[] = {
      {[](Case& c) { c.dtype = Dtype::bf16; }, "gla.float: no dtype bf16; it takes fp32"},
      {[](Case& c) { c.gate_dtype = Dtype::fp16; }, "gla.float: no gate dtype fp16; it takes fp32, bf16"},
      {[](Case& c) { c.K = 33; }, "gla.float: K = 33 is beyond its limit of 32"},
      {[](Case& c) { c.V = 17; }, "gla.float: V = 17 is beyond its limit of 16"},
      {[](Case& c) { c.direction = Direction::backward; },
       "gla.float: no entry point for direction backward"},
      {[](Case& c) { c.B = 0; }, "B = 0: must be at least 1"},
  };
  EXPECT_NO_THROW(accepted(float_case(), float_kernel()));
  for (const auto& [change, message] : table) {
    Case c = float_case();
    change(c);
    try {
      accepted(c, float_kernel());
      ADD_FAILURE() << message;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

TEST(Acceptance, TheFormatOfAnAbsentGateDoesNotMatter) {
  Case c = float_case();
  c.gate_dtype = Dtype::fp16;
  c.without = {"g"};
  EXPECT_NO_THROW(accepted(c, float_kernel()));
}

TEST(Acceptance, DecaysBeyondTheKernelsOwnRangeAreOutOfDomain) {
  Kernel kernel = float_kernel();
  kernel.limits.gate_min = -5;
  const Operator& op = find_operator("gla");
  TensorMap inputs = draw_inputs(float_case(), op);
  EXPECT_TRUE(domain_faults(inputs, kernel, op).empty());
  inputs.at("g").set(11, -6);
  const auto faults = domain_faults(inputs, kernel, op);
  ASSERT_EQ(faults.size(), 1);
  EXPECT_NE(faults[0].find("this kernel takes log decays in [-5, 0]"), std::string::npos) << faults[0];
  EXPECT_TRUE(domain_faults(inputs, float_kernel(), op).empty());
}

TEST(Acceptance, RatesBeyondTheKernelsOwnAreOutOfDomain) {
  Kernel kernel = find_kernel("delta_rule.fused_recurrent");
  kernel.limits.rate_max = 1;
  const Operator& op = find_operator("delta_rule");
  Case c = parse_token("delta_rule.fused_recurrent/B1/T50/H1/K8/V8/bf16/g-fp32/none/s1");
  EXPECT_EQ(domain_faults(draw_inputs(c, op), kernel, op).size(), 1u);
  c.rates = 1;
  TensorMap inputs = draw_inputs(c, op);
  EXPECT_TRUE(domain_faults(inputs, kernel, op).empty());
  inputs.at("beta").set(7, 1.5);
  const auto faults = domain_faults(inputs, kernel, op);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_NE(faults[0].find("this kernel takes rates in [0, 1]"), std::string::npos) << faults[0];
}

/// What a tensor that is not held may hold is known from how it is drawn; where that leaves the domain, it is
/// looked at.
TEST(Acceptance, DecaysAndRatesThatAreNotHeldAreNotTakenOnTrust) {
  const struct {
    const char *decay, *said;  ///< none where all is inside
    double gate_min, gate_max;
  } table[] = {{"mild", "", -1e4, 0},
               {"-inf", "= -inf (", -1e4, 0},
               {"mild", "", -0.25, 0},
               {"mild", "this kernel takes log decays in [-0.05, 0]", -0.05, 0},
               {"extreme", "this kernel takes log decays in [-5, 0]", -5, 0},
               {"near-one", "this kernel takes log decays in [-5, -0.02]", -5, -0.02},
               {"strong:1,4", "", -5, -0.02},
               {"constant:-0.02", "", -0.0201, -0.0199}};
  const Operator& op = find_operator("simple_gla");
  Case c = parse_token("simple_gla.chunk/B300000/T64/H1/K128/V100/bf16/g-bf16/mild/s5/blocks-last-1..last");
  for (const auto& [decay, said, gate_min, gate_max] : table) {
    Kernel kernel = float_kernel();
    kernel.limits.gate_min = gate_min, kernel.limits.gate_max = gate_max;
    c.decay = decay;
    const TensorMap inputs = draw_inputs(c, op);
    ASSERT_FALSE(inputs.at("g").is_held());
    const auto faults = domain_faults(inputs, kernel, op);
    ASSERT_EQ(faults.size(), *said ? 1u : 0u) << decay << ' ' << gate_min << ' ' << gate_max;
    if (*said) {
      EXPECT_NE(faults[0].find(said), std::string::npos) << faults[0];
    }
  }
  Kernel kernel = find_kernel("delta_rule.fused_recurrent");
  kernel.limits.rate_max = 1;
  c = parse_token("delta_rule.chunk/B300000/T64/H1/K128/V100/bf16/g-fp32/none/s5/blocks-last-1..last");
  for (const double most : {1.0, 2.0}) {
    c.rates = most;
    const TensorMap inputs = draw_inputs(c, find_operator("delta_rule"));
    ASSERT_FALSE(inputs.at("beta").is_held());
    EXPECT_EQ(domain_faults(inputs, kernel, find_operator("delta_rule")).size(), most > 1 ? 1u : 0u);
  }
}

TEST(Acceptance, ACaseLargerThanTheMemoryIsRefusedBeforeAnythingIsAllocated) {
  Case c = float_case();
  c.T = int64_t{1} << 34;
  EXPECT_THROW(require_memory(resolve(c, find_operator("gla"))), BadInput);
  c.T = 1000;
  EXPECT_NO_THROW(require_memory(resolve(c, find_operator("gla"))));
}

TEST(Acceptance, APlanThatWritesWhatTheOperatorLacksIsBadInput) {
  Kernel kernel = float_kernel();
  kernel.plan = [](const ResolvedCase&, const TensorMap&) {
    Program plan;
    plan.outputs = {{"z", Dtype::fp32, {}}};
    return plan;
  };
  EXPECT_THROW(program_of(kernel, resolve(float_case(), find_operator("gla")), {}), BadInput);
}

}  // namespace
}  // namespace assay
