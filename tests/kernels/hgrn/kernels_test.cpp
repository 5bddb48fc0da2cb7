#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/elementwise/extreme_inputs.h"
#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace hgrn_kernels_test {

constexpr Dtype kDtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
const char* const kModes[] = {"hgrn.fused_recurrent", "hgrn.chunk"};
const char* const kProfiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                 "reset", "contrast",   "ladder",   "extreme"};

struct Shape {
  int64_t B, T, D;
  std::vector<int64_t> cu_seqlens;
};
/// Around the edges of stretches of 16, chunks of 32, and of a block's channels; empty and one-token
/// sequences.
const Shape kShapes[] = {{1, 1, 1, {}},
                         {2, 15, 3, {}},
                         {1, 33, 64, {}},
                         {1, 64, 65, {}},
                         {3, 97, 5, {}},
                         {1, 300, 20, {}},
                         {1, 150, 130, {0, 0, 1, 33, 33, 97, 150}}};

Case case_of(const char* kernel, const Shape& s, Dtype dtype, Dtype gate, const char* decay, uint64_t seed) {
  Case c;
  c.kernel = kernel, c.direction = Direction::both;
  c.B = s.B, c.T = s.T, c.K = 1, c.V = s.D, c.cu_seqlens = s.cu_seqlens;
  c.dtype = dtype, c.gate_dtype = gate, c.decay = decay, c.seed = seed;
  c.initial_state = seed % 2 == 0, c.final_state_gradient = seed % 3 == 0;
  return c;
}

TEST(Hgrn, StaysWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  uint64_t seed = 0;
  for (const char* kernel : kModes)
    for (const Dtype dtype : kDtypes)
      for (const char* profile : kProfiles)
        for (int i = 0; i < 3; ++i, ++seed)
          expect_within_bound(
              case_of(kernel, kShapes[seed % std::size(kShapes)], dtype, kDtypes[seed % 3], profile, seed));
}

TEST(Hgrn, IsExactWhereNoOperationRounds) {
  for (const char* kernel : kModes)
    for (const Dtype dtype : kDtypes) {
      Case c = case_of(kernel, {1, 140, 40, {}}, dtype, Dtype::fp32, "none", 6);
      c.values = "exact";
      for (const OutputComparison& output : judged_run(c).outputs) {
        EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element;
        if (output.name != "dg") {
          EXPECT_EQ(output.worst.bound, 0) << output.name;
        }
      }
    }
}

TEST(Hgrn, GivesStatesAndTheirGradientsBackWhereThereAreNoTokens) {
  for (const char* kernel : kModes) {
    const Case c = case_of(kernel, {2, 0, 70, {}}, Dtype::bf16, Dtype::fp32, "mild", 6);
    const TensorMap inputs = draw_inputs(c, find_operator("hgrn"));
    const JudgedRun run = judged_run(c, inputs, "sm_90");
    EXPECT_EQ(bits_of(run.outcome, "final_state"), inputs.at("initial_state").data);
    EXPECT_EQ(bits_of(run.outcome, "dinitial_state"), inputs.at("dfinal_state").data);
  }
}

TEST(Hgrn, HoldsForTinyAndHugeInputsAndExtremeDecays) {
  for (uint64_t seed = 1; seed <= 60; ++seed)
    for (const char* kernel : kModes)
      expect_judged_at_extremes(
          case_of(kernel, {1, 70, 6, {}}, kDtypes[seed % 3], kDtypes[seed / 3 % 3], "none", seed));
}

TEST(Hgrn, AResetForgetsWhatWasBefore) {
  for (const char* kernel : kModes) {
    const Case c = case_of(kernel, {1, 80, 4, {}}, Dtype::fp32, Dtype::fp32, "logsigmoid", 6);
    TensorMap inputs = draw_inputs(c, find_operator("hgrn"));
    for (int64_t channel = 0; channel < 4; ++channel) inputs.at("g").set(50 * 4 + channel, -1e4);
    const JudgedRun run = judged_run(c, inputs, "sm_90");
    for (const OutputComparison& output : run.outputs) EXPECT_TRUE(output.pass()) << output.worst.element;
    for (int64_t channel = 0; channel < 4; ++channel) {
      EXPECT_EQ(run.outcome.outputs.at("o").value(50 * 4 + channel), inputs.at("x").value(50 * 4 + channel));
      EXPECT_EQ(run.outcome.outputs.at("dg").value(50 * 4 + channel), 0);
    }
  }
}

TEST(Hgrn, ASequenceOfEndlessDecayIsFinite) {
  for (const char* kernel : kModes) {
    const Case c = case_of(kernel, {1, 70, 4, {}}, Dtype::fp32, Dtype::fp32, "none", 6);
    TensorMap inputs = draw_inputs(c, find_operator("hgrn"));
    for (int64_t i = 0; i < inputs.at("g").size(); ++i) inputs.at("g").set(i, -INFINITY);
    const Outcome run =
        vm::run(find_kernel(kernel).plan(resolve_unchecked(c, find_operator("hgrn")), inputs), inputs, {});
    EXPECT_EQ(run.outputs.at("o").data, inputs.at("x").data);
    for (const auto& [name, tensor] : run.outputs)
      for (int64_t i = 0; i < tensor.size(); ++i) ASSERT_TRUE(std::isfinite(tensor.value(i))) << name;
  }
}

}  // namespace hgrn_kernels_test
}  // namespace assay
