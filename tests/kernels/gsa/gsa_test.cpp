// The kernels of gated slot attention on the machine, against the proved reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace gsa_gsa_test {

struct Shape {
  int64_t B, T, H, K, V, M;
  std::vector<int64_t> cu_seqlens;
};

/// Around the edges of tokens read at once, tiles, chunks and blocks of channels and slots; aligned and not.
const Shape shapes[] = {
    {1, 1, 1, 1, 1, 1, {}},      {2, 17, 1, 16, 24, 8, {}},
    {1, 64, 2, 8, 40, 16, {}},   {1, 80, 1, 33, 7, 20, {}},
    {1, 130, 1, 24, 16, 72, {}}, {1, 63, 1, 40, 130, 3, {}},
    {1, 66, 1, 20, 256, 17, {}}, {1, 65, 1, 256, 12, 9, {}},
    {1, 67, 1, 8, 8, 128, {}},   {1, 150, 1, 24, 16, 33, {0, 0, 15, 16, 100, 100, 150}},
};
const char* const profiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                "reset", "contrast",   "ladder",   "extreme"};
const Dtype dtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};

Case case_of(const std::string& kernel, const Shape& shape, Dtype dtype, Dtype gate, const char* decay,
             uint64_t seed, Direction direction = Direction::both) {
  Case c;
  c.kernel = kernel, c.direction = direction;
  c.B = shape.B, c.T = shape.T, c.H = shape.H, c.K = shape.K, c.V = shape.V, c.M = shape.M;
  c.cu_seqlens = shape.cu_seqlens;
  c.dtype = dtype, c.gate_dtype = gate;
  c.decay = decay;
  c.seed = seed;
  c.initial_state = seed % 2 == 0;
  c.final_state_gradient = runs_backward(c) && seed % 3 != 0;
  return c;
}

const Operator& gsa() {
  return find_operator("gsa");
}

Outcome run_of(const Case& c, const TensorMap& inputs) {
  const Outcome outcome =
      vm::run(find_kernel(c.kernel).plan(resolve_unchecked(c, gsa()), inputs), inputs, {});
  EXPECT_FALSE(outcome.trap) << token_of(c) << ": " << outcome.trap->message;
  return outcome;
}

class GsaKernel : public testing::TestWithParam<const char*> {};
class GsaKernelCampaign : public GsaKernel {};

TEST_P(GsaKernelCampaign, StaysWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  uint64_t seed = 0;
  for (const Dtype dtype : dtypes)
    for (const char* profile : profiles) {
      const Shape& shape = shapes[(seed + seed / 9) % std::size(shapes)];
      expect_within_bound(case_of(GetParam(), shape, dtype, dtypes[seed % 3], profile, seed));
      ++seed;
    }
}

/// Then what is written and how it decays follow from s: as in attention with bounded memory.
TEST_P(GsaKernelCampaign, StaysWithinTheProvedBoundWithoutGates) {
  uint64_t seed = 0;
  for (const Shape& shape : shapes)
    for (const Dtype dtype : dtypes) {
      Case c = case_of(GetParam(), shape, dtype, Dtype::fp32, "none", seed);
      c.without = {"g"};
      for (const OutputComparison& output : expect_within_bound(c).outputs)
        EXPECT_EQ(output.undecided, 0) << token_of(c) << ' ' << output.name;
      ++seed;
    }
}

/// Differences of thousands between neighbouring s: all of the weight moves at once, or none. Beside 1e30 the
/// declared error of z says nothing; of 3e38 differences overflow.
TEST_P(GsaKernel, WithoutGatesTakesSlotsOfAnySize) {
  for (const double size : {1e-30, 1e2, 1e4, 1e30, 3e38}) {
    Case c = case_of(GetParam(), {1, 140, 1, 8, 8, 5, {}}, Dtype::fp32, Dtype::fp32, "none", 2);
    c.without = {"g"};
    TensorMap inputs = draw_inputs(c, gsa());
    Tensor& s = inputs.at("s");
    for (int64_t i = 0; i < s.size(); ++i) s.set(i, size * std::clamp(s.value(i), -1.0, 1.0));
    const JudgedRun run = judged_run(c, inputs, "sm_90");
    for (const OutputComparison& output : run.outputs) {
      EXPECT_EQ(output.violation + output.nonfinite + output.wrong_class, 0)
          << size << ' ' << output.worst.element;
      if (size <= 1e4) {
        EXPECT_EQ(output.undecided, 0) << size << ' ' << output.name;
      }
    }
  }
}

TEST_P(GsaKernel, GivesGradientsOfTheInputsThatAreThere) {
  for (const bool gate : {true, false})
    for (const bool state : {true, false}) {
      Case c = case_of(GetParam(), {1, 20, 1, 8, 8, 8, {}}, Dtype::bf16, Dtype::bf16, "none", 1,
                       Direction::backward);
      c.initial_state = state;
      if (!gate) c.without = {"g"};
      std::set<std::string> expected = {"dq", "dk", "dv", "ds"}, got;
      if (gate) expected.insert("dg");
      if (state) expected.insert({"dhk0", "dhv0"});
      for (const auto& [name, tensor] : judged_run(c).outcome.outputs) got.insert(name);
      EXPECT_EQ(got, expected) << token_of(c);
    }
}

TEST_P(GsaKernel, GivesStatesAndTheirGradientsBackWhereThereAreNoTokens) {
  for (const bool gate : {true, false}) {
    Case c = case_of(GetParam(), {1, 0, 2, 24, 16, 10, {}}, Dtype::bf16, Dtype::fp32, "none", 2);
    if (!gate) c.without = {"g"};
    const TensorMap inputs = draw_inputs(c, gsa());
    const Outcome outcome = run_of(c, inputs);
    for (const char* state : {"hk", "hv"}) {
      const std::string name = state;
      EXPECT_EQ(bits_of(outcome, name + "t"), inputs.at(name + "0").data) << name;
      EXPECT_EQ(bits_of(outcome, "d" + name + "0"), inputs.at("d" + name + "t").data) << name;
    }
    EXPECT_EQ(outcome.outputs.at("o").size(), 0);
  }
}

/// Rows [begin, begin + length) of a tensor [1, T, ...].
Tensor rows_of(const Tensor& tensor, int64_t begin, int64_t length) {
  std::vector<Axis> axes = tensor.axes;
  const int64_t row = tensor.bytes() / axes[1].size;
  axes[1].size = length;
  Tensor part(tensor.name, tensor.dtype, axes);
  std::copy_n(tensor.data.begin() + begin * row, length * row, part.data.begin());
  return part;
}

TEST_P(GsaKernel, ResumesFromItsStatesWithTheSameBits) {
  const int64_t step = find_kernel(GetParam()).resume_granularity, split = step == 1 ? 37 : step;
  for (const Dtype dtype : dtypes) {
    Case c = case_of(GetParam(), {1, 150, 1, 24, 16, 12, {}}, dtype, Dtype::fp32, "logsigmoid", 2,
                     Direction::forward);
    const TensorMap inputs = draw_inputs(c, gsa());
    const Outcome whole = run_of(c, inputs);
    TensorMap states = {{"hk0", inputs.at("hk0")}, {"hv0", inputs.at("hv0")}};
    std::vector<std::byte> o;
    for (const auto& [begin, length] : {std::pair{int64_t{0}, split}, std::pair{split, 150 - split}}) {
      TensorMap part = states;
      for (const auto& [name, tensor] : inputs)
        if (!states.contains(name)) part[name] = rows_of(tensor, begin, length);
      c.T = length;
      const Outcome outcome = run_of(c, part);
      states["hk0"] = outcome.outputs.at("hkt"), states["hv0"] = outcome.outputs.at("hvt");
      o.insert(o.end(), bits_of(outcome, "o").begin(), bits_of(outcome, "o").end());
    }
    EXPECT_EQ(o, bits_of(whole, "o"));
    EXPECT_EQ(states["hk0"].data, bits_of(whole, "hkt"));
    EXPECT_EQ(states["hv0"].data, bits_of(whole, "hvt"));
  }
}

/// Outside the domain, but harmless: e^g is 0, and so is the gate's gradient.
TEST_P(GsaKernel, IsFiniteWhereAGateIsMinusInfinity) {
  for (const Dtype dtype : dtypes) {
    const Case c = case_of(GetParam(), {1, 100, 1, 20, 24, 12, {}}, dtype, Dtype::fp32, "logsigmoid", 2);
    TensorMap inputs = draw_inputs(c, gsa());
    Tensor& g = inputs.at("g");
    for (int64_t i = 0; i < g.size(); i += 7) g.set(i, -std::numeric_limits<double>::infinity());
    const Outcome outcome = run_of(c, inputs);
    for (const auto& [name, tensor] : outcome.outputs)
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_TRUE(std::isfinite(tensor.value(i))) << tensor.element_name(i) << ' ' << token_of(c);
    for (int64_t i = 0; i < g.size(); i += 7) ASSERT_EQ(outcome.outputs.at("dg").value(i), 0) << i;
  }
}

/// A logit far below the largest one has a weight of 0, not a NaN; gradients with it.
TEST_P(GsaKernel, TakesLogitsOfAnySize) {
  for (const double size : {1e3, 1e6, 1e-20})
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
      Case c = case_of(GetParam(), {1, 70, 1, 16, 8, 24, {}}, dtype, Dtype::fp32, "logsigmoid", 2);
      TensorMap inputs = draw_inputs(c, gsa());
      Tensor& q = inputs.at("q");
      for (int64_t i = 0; i < q.size(); ++i) q.set(i, size * q.value(i));
      for (const OutputComparison& output : judged_run(c, inputs, "sm_90").outputs)
        EXPECT_EQ(output.violation + output.nonfinite + output.wrong_class, 0)
            << token_of(c) << ' ' << size << ' ' << output.worst.element << " got " << output.worst.got
            << " expected " << output.worst.expected << " bound " << output.worst.bound;
    }
}

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}
const auto modes = testing::Values("gsa.chunk", "gsa.fused_recurrent");
INSTANTIATE_TEST_SUITE_P(EachMode, GsaKernel, modes, name_of);
INSTANTIATE_TEST_SUITE_P(EachMode, GsaKernelCampaign, modes, name_of);

}  // namespace gsa_gsa_test
}  // namespace assay
