#include "src/case/given_inputs.h"

#include <gtest/gtest.h>

#include <functional>

#include "src/base/numerics/bad_input.h"
#include "tests/case/gated_operator.h"

namespace assay {
namespace {

Tensor tensor(Dtype dtype, const std::vector<int64_t>& shape) {
  std::vector<Axis> axes;
  for (int64_t size : shape) axes.push_back({"", size});
  return Tensor("", dtype, axes);
}

/// B=1, T=30, H=2, K=16, V=8, two packed sequences.
TensorMap packed() {
  TensorMap raw;
  raw["q"] = tensor(Dtype::fp16, {1, 30, 2, 16});
  raw["k"] = tensor(Dtype::fp16, {1, 30, 2, 16});
  raw["v"] = tensor(Dtype::fp16, {1, 30, 2, 8});
  raw["g"] = tensor(Dtype::bf16, {1, 30, 2, 16});
  raw["initial_state"] = tensor(Dtype::fp32, {2, 2, 16, 8});
  raw["cu_seqlens"] = tensor(Dtype::i64, {3});
  raw["cu_seqlens"].set(1, 11);
  raw["cu_seqlens"].set(2, 30);
  return raw;
}

Case base() {
  Case c;
  c.kernel = "gated.test";
  return c;
}

TEST(GivenInputs, SizesFormatsAndPackingAreReadFromTheTensors) {
  const GivenInputs given = fit_inputs(base(), gated_operator(), packed(), "x");
  const Case& c = given.case_;
  EXPECT_EQ(c.T, 30);
  EXPECT_EQ(c.H, 2);
  EXPECT_EQ(c.K, 16);
  EXPECT_EQ(c.V, 8);
  EXPECT_EQ(c.dtype, Dtype::fp16);
  EXPECT_EQ(c.gate_dtype, Dtype::bf16);
  EXPECT_EQ(c.cu_seqlens, (std::vector<int64_t>{0, 11, 30}));
  EXPECT_TRUE(c.initial_state);
  EXPECT_TRUE(c.without.empty());
  EXPECT_EQ(given.inputs.at("initial_state").shape_text(), "[N=2,H=2,K=16,V=8]");
  EXPECT_EQ(given.inputs.at("g").element_name(17), "g[b=0,t=0,h=1,k=1]");
}

TEST(GivenInputs, AbsentOptionalInputsAreAbsentInTheCase) {
  TensorMap raw = packed();
  raw.erase("g"), raw.erase("initial_state");
  const Case c = fit_inputs(base(), gated_operator(), raw, "x").case_;
  EXPECT_FALSE(c.initial_state);
  EXPECT_EQ(c.without, (std::set<std::string>{"g"}));
}

TEST(GivenInputs, WhatDoesNotFitIsNamed) {
  const std::pair<std::function<void(TensorMap&)>, const char*> table[] = {
      {[](TensorMap& t) { t.erase("q"); }, "x: no tensor 'q', which gated needs"},
      {[](TensorMap& t) { t["w"] = t["g"]; }, "x: unknown input or output of gated 'w'"},
      {[](TensorMap& t) {
         t["initial_state"] = tensor(Dtype::fp32, {2, 2, 8, 16});
       },
       "initial_state: expected [N=2,H=2,K=16,V=8], got [2,2,8,16] (transposed: K and V look exchanged; "},
      {[](TensorMap& t) {
         t["initial_state"] = tensor(Dtype::fp32, {3, 2, 16, 8});
       },
       "cu_seqlens has N + 1 offsets"},
      {[](TensorMap& t) {
         t["k"] = tensor(Dtype::fp16, {1, 16, 2, 30});
       },
       "k: expected [B=1,T=30,H=2,K=16], got [1,16,2,30] (T and K look exchanged"},
      {[](TensorMap& t) {
         t["g"] = tensor(Dtype::bf16, {1, 30, 2});
       },
       "a per-head gate where a per-channel one is expected"},
      {[](TensorMap& t) {
         t["v"] = tensor(Dtype::fp32, {1, 30, 2, 8});
       },
       "x: v: expected fp16 (as q), got fp32"},
      {[](TensorMap& t) {
         t["initial_state"] = tensor(Dtype::fp16, {2, 2, 16, 8});
       },
       "expected fp32 (states are fp32), got fp16"},
      {[](TensorMap& t) {
         t["q"] = tensor(Dtype::i64, {1, 30, 2, 16});
       },
       "x: q: expected bf16, fp16 or fp32, got i64"},
      {[](TensorMap& t) {
         t["q"] = tensor(Dtype::bf16, {1, 30, 2, 16});
       },
       "x: q: expected fp16 (as k), got bf16"},
      {[](TensorMap& t) {
         t["v"] = tensor(Dtype::fp16, {1, 30, 2, 1});
       },
       "v: expected [B=1,T=30,H=2,V=8], got [1,30,2,1] (V has size 1: nothing is broadcast, expand it)"},
      {[](TensorMap& t) { t["cu_seqlens"] = tensor(Dtype::fp32, {3}); },
       "cu_seqlens must be a list of i32 or i64"},
      {[](TensorMap& t) { t["cu_seqlens"].set(2, 29); }, "must end at T = 30"},
  };
  for (const auto& [change, message] : table) {
    TensorMap raw = packed();
    change(raw);
    try {
      fit_inputs(base(), gated_operator(), raw, "x");
      ADD_FAILURE() << message;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

TEST(GivenInputs, OutputsOfTheOperatorAreWhatIsExpectedOfIt) {
  TensorMap raw = packed();
  raw["o"] = tensor(Dtype::fp64, {1, 30, 2, 8});
  raw["final_state"] = tensor(Dtype::bf16, {2, 2, 16, 8});
  const GivenInputs given = fit_inputs(base(), gated_operator(), raw, "x");
  EXPECT_FALSE(given.inputs.contains("o"));
  EXPECT_EQ(given.expected.at("o").shape_text(), "[B=1,T=30,H=2,V=8]");
  EXPECT_EQ(given.expected.at("final_state").dtype, Dtype::bf16);
  EXPECT_EQ(given.case_, fit_inputs(base(), gated_operator(), packed(), "x").case_)
      << "they say nothing of the case";
  const std::pair<std::function<void(TensorMap&)>, const char*> table[] = {
      {[](TensorMap& t) {
         t["o"] = tensor(Dtype::fp16, {1, 31, 2, 8});
       },
       "o: expected [B=1,T=30,H=2,V=8], got [1,31,2,8]"},
      {[](TensorMap& t) {
         t["final_state"] = tensor(Dtype::fp32, {2, 2, 8, 16});
       },
       "give --layout final_state=transposed"},
      {[](TensorMap& t) {
         t["o"] = tensor(Dtype::i64, {1, 30, 2, 8});
       },
       "x: o: expected bf16, fp16, fp32 or fp64, got i64"},
      {[](TensorMap& t) { t["dq"] = t["q"]; }, "x: unknown input or output of gated 'dq'"},
  };
  for (const auto& [change, message] : table) {
    TensorMap changed = raw;
    change(changed);
    try {
      fit_inputs(base(), gated_operator(), changed, "x");
      ADD_FAILURE() << message;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

TEST(GivenInputs, AGradientOfAnAbsentInputIsRefused) {
  TensorMap raw = packed();
  raw.erase("g");
  raw["do"] = tensor(Dtype::fp16, {1, 30, 2, 8});
  raw["dg"] = tensor(Dtype::fp32, {1, 30, 2, 16});
  Case c = base();
  c.direction = Direction::backward;
  try {
    fit_inputs(c, gated_operator(), raw, "x");
    ADD_FAILURE() << "accepted";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "x: dg: gated has no such output here, its input is absent");
  }
  raw["dv"] = tensor(Dtype::fp16, {1, 30, 2, 8});
  raw.erase("dg");
  EXPECT_TRUE(fit_inputs(c, gated_operator(), raw, "x").expected.contains("dv"));
}

TEST(GivenInputs, CotangentsAreTakenBackwardOnly) {
  TensorMap raw = packed();
  raw["do"] = tensor(Dtype::fp16, {1, 30, 2, 8});
  raw["dfinal_state"] = tensor(Dtype::fp32, {2, 2, 16, 8});
  Case c = base();
  EXPECT_THROW(fit_inputs(c, gated_operator(), raw, "x"), BadInput);
  c.direction = Direction::backward;
  const GivenInputs given = fit_inputs(c, gated_operator(), raw, "x");
  EXPECT_TRUE(given.case_.final_state_gradient);
  EXPECT_EQ(given.inputs.at("do").axes.back().name, "V");
  raw.erase("dfinal_state");
  EXPECT_FALSE(fit_inputs(c, gated_operator(), raw, "x").case_.final_state_gradient);
  raw.erase("do");
  EXPECT_THROW(fit_inputs(c, gated_operator(), raw, "x"), BadInput);
}

}  // namespace
}  // namespace assay
