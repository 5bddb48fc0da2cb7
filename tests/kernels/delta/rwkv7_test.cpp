// rwkv7's kernels on the machine, against the proved reference: what the tests of every gated kernel do not
// ask of them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace delta_rwkv7_test {

const char *const kRecurrent = "rwkv7.fused_recurrent", *const kChunk = "rwkv7.chunk";
const Dtype dtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};

struct Shape {
  int64_t B, T, H, K, V;
  std::vector<int64_t> cu_seqlens;
};
/// Around the edges of batches, segments, kept states and blocks of channels.
const Shape shapes[] = {
    {1, 1, 1, 1, 1, {}},     {2, 33, 1, 16, 24, {}},  {1, 64, 2, 8, 40, {}},
    {1, 80, 1, 33, 7, {}},   {1, 97, 1, 72, 16, {}},  {1, 31, 1, 100, 130, {}},
    {1, 40, 1, 20, 256, {}}, {1, 39, 1, 256, 12, {}}, {1, 96, 1, 40, 16, {0, 0, 15, 16, 80, 80, 96}},
};
const char* const profiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                "reset", "contrast",   "ladder",   "extreme"};

Case case_of(const Shape& shape, Dtype dtype, Dtype gate, const char* decay, uint64_t seed,
             const char* kernel = kRecurrent) {
  Case c;
  c.kernel = kernel, c.direction = Direction::backward;
  c.B = shape.B, c.T = shape.T, c.H = shape.H, c.K = shape.K, c.V = shape.V;
  c.cu_seqlens = shape.cu_seqlens;
  c.dtype = dtype, c.gate_dtype = gate, c.decay = decay, c.seed = seed;
  c.initial_state = seed % 2 == 0, c.final_state_gradient = seed % 3 != 0;
  return c;
}
const Operator& rwkv7() {
  return find_operator("rwkv7");
}
Outcome run(const Case& c, const TensorMap& inputs) {
  Outcome outcome =
      vm::run(find_kernel(c.kernel).plan(
                  resolve_unchecked(c, find_operator(find_kernel(c.kernel).operator_name)), inputs),
              inputs, {});
  EXPECT_FALSE(outcome.trap) << outcome.trap->message;
  return outcome;
}

TEST(Rwkv7Campaign, GradientsStayWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  uint64_t seed = 0;
  for (const Dtype dtype : dtypes)
    for (const char* profile : profiles) {
      const Shape& shape = shapes[(seed + seed / 9) % std::size(shapes)];
      expect_within_bound(case_of(shape, dtype, dtypes[seed % 3], profile, seed));
      ++seed;
    }
}

TEST(Rwkv7Campaign, ChunkStaysWithinTheProvedBoundOnEveryShapeAndProfile) {
  for (size_t seed = 0; seed < std::size(shapes); ++seed) {
    Case c =
        case_of(shapes[seed], dtypes[(seed + seed / 3) % 3], dtypes[seed % 3], profiles[seed], seed, kChunk);
    c.direction = Direction::both;
    expect_within_bound(c);
  }
}

/// What is written for what was read may also make states grow: errors grow with them, and no faster.
TEST(Rwkv7, StaysWithinItsBoundWhereStatesGrow) {
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    Case c = case_of({1, 90, 1, 20, 12, {}}, Dtype::fp32, Dtype::fp32, "none", 4);
    c.values = "growing", c.direction = direction;
    double largest = 0;
    for (const OutputComparison& output : expect_within_bound(c).outputs)
      largest = std::max(largest, std::fabs(output.worst.expected));
    EXPECT_GT(largest, 0x1p20) << name_of(direction);
  }
}

TEST(Rwkv7Gradients, AreExactWhereNoOperationRounds) {
  for (const Dtype dtype : dtypes)
    for (const Direction direction : {Direction::backward, Direction::both}) {
      Case c = case_of({1, 140, 1, 40, 24, {}}, dtype, Dtype::fp32, "none", 4);
      c.values = "exact", c.direction = direction;
      const TensorMap inputs = draw_inputs(c, rwkv7());
      int64_t removing = 0;
      for (int64_t i = 0; i < inputs.at("a").size(); ++i) removing += inputs.at("a").value(i) != 0;
      EXPECT_GT(removing, 2) << "nothing is removed from the states";
      for (const OutputComparison& output : judged_run(c).outputs) {
        EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element << " got "
                                   << output.worst.got << " expected " << output.worst.expected;
        if (output.name != "dw") {
          EXPECT_EQ(output.worst.bound, 0) << output.name;
        }
      }
    }
}

TEST(Rwkv7Gradients, ExistForTheInputsThatAreThere) {
  for (const char* kernel : {kRecurrent, kChunk})
    for (const bool state : {true, false}) {
      Case c = case_of({1, 20, 1, 8, 8, {}}, Dtype::bf16, Dtype::bf16, "mild", 1, kernel);
      c.initial_state = state;
      std::set<std::string> expected = {"dr", "dw", "dk", "dv", "da", "db"}, got;
      if (state) expected.insert("dinitial_state");
      for (const auto& [name, tensor] : judged_run(c).outcome.outputs) got.insert(name);
      EXPECT_EQ(got, expected);
    }
}

TEST(Rwkv7Gradients, PassTheFinalStatesGradientOnWhereThereAreNoTokens) {
  for (const char* kernel : {kRecurrent, kChunk})
    for (const bool cotangent : {true, false}) {
      Case c = case_of({1, 0, 2, 24, 16, {}}, Dtype::bf16, Dtype::fp32, "mild", 2, kernel);
      c.final_state_gradient = cotangent;
      const TensorMap inputs = draw_inputs(c, rwkv7());
      const Outcome outcome = run(c, inputs);
      const Tensor zeros("zeros", Dtype::fp32, outcome.outputs.at("dinitial_state").axes);
      EXPECT_EQ(bits_of(outcome, "dinitial_state"), cotangent ? inputs.at("dfinal_state").data : zeros.data);
    }
}

/// A token that reads or writes nothing steps as gla does, bit for bit.
TEST(Rwkv7, HasTheBitsOfGlaWhereNothingIsRemoved) {
  for (const char* zeroed : {"a", "b"}) {
    Case c = case_of({1, 70, 2, 24, 40, {}}, Dtype::bf16, Dtype::fp32, "logsigmoid", 2);
    c.direction = Direction::forward, c.scale = 0.5;
    TensorMap inputs = draw_inputs(c, rwkv7());
    for (int64_t i = 0; i < inputs.at(zeroed).size(); ++i) inputs.at(zeroed).set(i, 0);
    TensorMap gla = {{"q", inputs.at("r")},
                     {"k", inputs.at("k")},
                     {"v", inputs.at("v")},
                     {"g", inputs.at("w")},
                     {"initial_state", inputs.at("initial_state")}};
    Case other = c;
    other.kernel = "gla.fused_recurrent";
    const Outcome got = run(c, inputs), expected = run(other, gla);
    EXPECT_EQ(bits_of(got, "final_state"), bits_of(expected, "final_state")) << zeroed;
  }
}

/// Outside the domain, but harmless: e^w is 0, and so is its gradient.
TEST(Rwkv7, IsFiniteWhereAGateIsMinusInfinity) {
  for (const char* kernel : {kRecurrent, kChunk})
    for (const Dtype dtype : dtypes) {
      Case c = case_of({1, 60, 1, 20, 24, {}}, dtype, Dtype::fp32, "logsigmoid", 2, kernel);
      c.direction = Direction::both;
      TensorMap inputs = draw_inputs(c, rwkv7());
      Tensor& w = inputs.at("w");
      for (int64_t i = 0; i < w.size(); i += 7) w.set(i, -std::numeric_limits<double>::infinity());
      const Outcome outcome = run(c, inputs);
      for (const auto& [name, tensor] : outcome.outputs)
        for (int64_t i = 0; i < tensor.size(); ++i)
          ASSERT_TRUE(std::isfinite(tensor.value(i))) << tensor.element_name(i) << ' ' << token_of(c);
      for (int64_t i = 0; i < w.size(); i += 7) ASSERT_EQ(outcome.outputs.at("dw").value(i), 0) << i;
    }
}

/// Tokens read at once but not there must leave G alone, the sign of a zero included.
TEST(Rwkv7Gradients, TokensThatAreNotThereLeaveAZeroItsSign) {
  for (const double scale : {1.0, -1.0}) {
    Case c = case_of({1, 3, 1, 4, 5, {}}, Dtype::fp32, Dtype::fp32, "none", 2);
    c.scale = scale, c.final_state_gradient = true;
    TensorMap inputs = draw_inputs(c, rwkv7());
    const auto all = [&](const char* name, double value) {
      Tensor& tensor = inputs.at(name);
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value);
    };
    all("dfinal_state", -0.0), all("r", 0), all("do", scale < 0 ? 1 : -1);
    all("a", -0.0), all("b", 0);  // G^T b is a sum that starts from +0, a times it -0
    EXPECT_EQ(bits_of(run(c, inputs), "dinitial_state"), inputs.at("dfinal_state").data) << scale;
  }
}

}  // namespace delta_rwkv7_test
}  // namespace assay
