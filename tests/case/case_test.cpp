#include "src/case/case.h"

#include <gtest/gtest.h>

#include <functional>

#include "src/base/numerics/bad_input.h"
#include "tests/case/gated_operator.h"

namespace assay {
namespace {

Case good() {
  Case c;
  c.kernel = "gated.test";
  return c;
}

TEST(Case, WhatMakesNoSenseIsNamed) {
  const std::pair<std::function<void(Case&)>, const char*> table[] = {
      {[](Case& c) { c.B = 0; }, "B = 0: must be at least 1"},
      {[](Case& c) { c.H = 0; }, "H = 0: must be at least 1"},
      {[](Case& c) { c.K = -3; }, "K = -3: must be at least 1"},
      {[](Case& c) { c.V = 0; }, "V = 0: must be at least 1"},
      {[](Case& c) { c.T = -1; }, "T = -1: must be at least 0"},
      {[](Case& c) { c.HV = 2; }, "value heads: gated has no axis HV"},
      {[](Case& c) { c.M = 2; }, "M: gated has no such axis"},
      {[](Case& c) { c.T = 1LL << 40; }, "at most 2^40"},
      {[](Case& c) { c.T = 0, c.H = (1LL << 30) + 1; }, "H = 1073741825: must be at most 2^30"},
      {[](Case& c) { c.T = 0, c.K = 1LL << 32; }, "K = 4294967296: must be at most 2^30"},
      {[](Case& c) {
         c.cu_seqlens = {0, 64}, c.B = 2;
       },
       "packed sequences need B = 1"},
      {[](Case& c) { c.cu_seqlens = {0}; }, "at least two offsets"},
      {[](Case& c) {
         c.cu_seqlens = {1, 64};
       },
       "must start at 0"},
      {[](Case& c) {
         c.cu_seqlens = {0, 40, 30, 64};
       },
       "must not decrease"},
      {[](Case& c) {
         c.cu_seqlens = {0, 15, 100};
       },
       "must end at T = 64"},
      {[](Case& c) { c.dtype = Dtype::fp64; }, "dtype fp64: must be bf16, fp16 or fp32"},
      {[](Case& c) { c.gate_dtype = Dtype::i32; }, "gate dtype i32"},
      {[](Case& c) { c.decay = "spikes"; }, "did you mean 'spike'?"},
      {[](Case& c) { c.values = "dense"; }, "unknown kind of values"},
      {[](Case& c) { c.scale = 0; }, "scale 0: must be a normal number of fp32"},
      {[](Case& c) { c.scale = 1e300; }, "scale 1e+300: must be a normal number of fp32"},
      {[](Case& c) { c.scale = 1e-39; }, "scale 1e-39"},
      {[](Case& c) { c.scale = INFINITY; }, "scale inf"},
      {[](Case& c) { c.values = "exact"; }, "nothing may decay; use --decay none"},
      {[](Case& c) { c.values = "exact", c.decay = "none", c.scale = 0.3; }, "must be a power of two"},
      {[](Case& c) { c.values = "exact", c.decay = "none", c.overrides = {"q[0,0,0,0]=1"}; },
       "cannot be changed"},
      {[](Case& c) { c.without = {"q"}; }, "unknown optional input of gated 'q'"},
      {[](Case& c) { c.without = {"intial_state"}; }, "did you mean 'initial_state'?"},
      {[](Case& c) { c.kernel = "a b"; }, "kernel name 'a b'"},
      {[](Case& c) { c.overrides = {"g=1"}; }, "override 'g=1'"},
  };
  EXPECT_NO_THROW(validate(good(), gated_operator()));
  for (const auto& [change, message] : table) {
    Case c = good();
    change(c);
    try {
      validate(c, gated_operator());
      ADD_FAILURE() << message;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(Case, LegalEdgesAreLegal) {
  Case c = good();
  c.T = 0;
  EXPECT_NO_THROW(validate(c, gated_operator()));
  c.cu_seqlens = {0, 0, 0};
  EXPECT_NO_THROW(validate(c, gated_operator()));
  EXPECT_EQ(sizes_of(c).N, 2);
  c = good();
  c.values = "exact", c.decay = "none", c.scale = -0.25;
  EXPECT_NO_THROW(validate(c, gated_operator()));
}

TEST(Case, ScaleIsTheOperatorsUnlessGivenAndAPowerOfTwoInExactCases) {
  Case c = good();
  c.K = 60;
  EXPECT_DOUBLE_EQ(scale_of(c, gated_operator()), 1 / std::sqrt(60.0));
  c.values = "exact";
  EXPECT_EQ(scale_of(c, gated_operator()), 0.125);
  c.K = 64;
  EXPECT_EQ(scale_of(c, gated_operator()), 0.125);
  c.scale = 3;
  EXPECT_EQ(scale_of(c, gated_operator()), 3);
}

std::vector<std::string> names_of(const std::vector<ArgumentSpec>& specs) {
  std::vector<std::string> names;
  for (const ArgumentSpec& spec : specs) names.emplace_back(spec.name);
  return names;
}

TEST(Case, ADirectionSaysWhatARunTakesAndGives) {
  using Names = std::vector<std::string>;
  const Operator op = gated_operator();
  const Names inputs = {"q", "k", "v", "g", "initial_state"}, outputs = {"o", "final_state"};
  Names all = inputs;
  all.insert(all.end(), {"do", "dfinal_state"});
  Case c = good();
  EXPECT_EQ(names_of(inputs_of(c, op)), inputs);
  EXPECT_EQ(names_of(outputs_of(c, op)), outputs);
  c.direction = Direction::backward;
  EXPECT_EQ(names_of(inputs_of(c, op)), all);
  EXPECT_EQ(names_of(outputs_of(c, op)), (Names{"dq", "dk", "dv", "dg"}))
      << "no initial state, no gradient of it";
  c.without = {"g"}, c.initial_state = true;
  EXPECT_EQ(names_of(outputs_of(c, op)), (Names{"dq", "dk", "dv", "dinitial_state"}));
  c.direction = Direction::both;
  EXPECT_EQ(names_of(outputs_of(c, op)), (Names{"o", "final_state", "dq", "dk", "dv", "dinitial_state"}));
}

TEST(Case, GradientsHaveTheFormatsOfTheirInputs) {
  const Operator op = gated_operator();
  Case c = good();
  c.direction = Direction::backward, c.initial_state = true, c.dtype = Dtype::bf16,
  c.gate_dtype = Dtype::fp16;
  std::vector<std::pair<std::string, Dtype>> got;
  for (const ArgumentSpec& spec : outputs_of(c, op)) got.emplace_back(spec.name, dtype_of(c, spec));
  const std::vector<std::pair<std::string, Dtype>> expected = {{"dq", Dtype::bf16},
                                                               {"dk", Dtype::bf16},
                                                               {"dv", Dtype::bf16},
                                                               {"dg", Dtype::fp16},
                                                               {"dinitial_state", Dtype::fp32}};
  EXPECT_EQ(got, expected);
}

TEST(Case, AFinalStatesGradientIsDrawnOnlyBackwardAndOnlyWhereItIsAskedFor) {
  const Operator op = gated_operator();
  Case c = good();
  c.final_state_gradient = true;
  EXPECT_THROW(validate(c, op), BadInput);
  c.direction = Direction::backward;
  EXPECT_NO_THROW(validate(c, op));
  EXPECT_TRUE(draw_inputs(c, op).contains("dfinal_state"));
  c.final_state_gradient = false;
  EXPECT_FALSE(draw_inputs(c, op).contains("dfinal_state"));
  EXPECT_TRUE(draw_inputs(c, op).contains("do"));
  c.direction = Direction::forward;
  EXPECT_FALSE(draw_inputs(c, op).contains("do"));
}

}  // namespace
}  // namespace assay
