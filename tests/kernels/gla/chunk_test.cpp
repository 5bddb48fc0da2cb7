#include <gtest/gtest.h>

#include <cstdlib>

#include "src/plan/plan.h"
#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace {

struct Shape {
  int64_t B, T, H, K, V;
  std::vector<int64_t> cu_seqlens;
};

/// Around the edges of rows, tiles, chunks and 64-channel blocks; aligned and not.
const Shape shapes[] = {
    {1, 1, 1, 1, 1, {}},
    {2, 17, 1, 16, 24, {}},
    {1, 64, 2, 8, 40, {}},
    {1, 80, 1, 33, 7, {}},
    {1, 130, 1, 72, 16, {}},
    {1, 63, 1, 100, 130, {}},
    {1, 150, 1, 40, 16, {0, 0, 15, 100, 100, 150}},
};
const char* const profiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                "reset", "contrast",   "ladder",   "extreme"};
const Dtype dtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};

Case case_of(const char* kernel, const Shape& shape, Dtype dtype, Dtype gate, const char* decay,
             uint64_t seed) {
  Case c;
  c.kernel = kernel;
  c.B = shape.B, c.T = shape.T, c.H = shape.H, c.K = shape.K, c.V = shape.V;
  c.cu_seqlens = shape.cu_seqlens;
  c.dtype = dtype, c.gate_dtype = gate;
  c.decay = decay;
  c.seed = seed;
  c.initial_state = seed % 2 == 0;
  return c;
}

class GlaKernel : public testing::TestWithParam<const char*> {};

TEST_P(GlaKernel, StaysWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  uint64_t seed = 0;
  for (const Dtype dtype : dtypes)
    for (const char* profile : profiles) {
      const Shape& shape = shapes[seed % std::size(shapes)];
      expect_within_bound(case_of(GetParam(), shape, dtype, dtypes[seed % 3], profile, seed));
      ++seed;
    }
}

TEST_P(GlaKernel, IsExactWhereNoOperationRounds) {
  for (const Dtype dtype : dtypes) {
    Case c = case_of(GetParam(), {1, 140, 1, 40, 24, {}}, dtype, Dtype::fp32, "none", 4);
    c.values = "exact";
    for (const OutputComparison& output : judged_run(c).outputs) {
      EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element;
      EXPECT_EQ(output.worst.bound, 0) << output.name;
    }
  }
}

TEST_P(GlaKernel, TakesAnAbsentGateAsAZeroGate) {
  for (const Dtype dtype : dtypes) {
    Case with = case_of(GetParam(), {1, 70, 1, 24, 16, {}}, dtype, Dtype::bf16, "none", 2), without = with;
    without.without = {"g"};
    const JudgedRun a = judged_run(with), b = judged_run(without);
    for (const char* output : {"o", "final_state"})
      EXPECT_EQ(bits_of(a.outcome, output), bits_of(b.outcome, output)) << output;
  }
}

TEST_P(GlaKernel, GivesTheInitialStateBackWhereThereAreNoTokens) {
  const Case c = case_of(GetParam(), {1, 0, 2, 24, 16, {}}, Dtype::bf16, Dtype::fp32, "mild", 2);
  const Operator& op = find_operator("gla");
  const TensorMap inputs = draw_inputs(c, op);
  const Outcome outcome = vm::run(find_kernel(GetParam()).plan(c, op, inputs), inputs, {});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(bits_of(outcome, "final_state"), inputs.at("initial_state").data);
  EXPECT_EQ(outcome.outputs.at("o").size(), 0);
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

TEST_P(GlaKernel, ResumesFromItsStateWithTheSameBits) {
  const Kernel& kernel = find_kernel(GetParam());
  const Operator& op = find_operator("gla");
  const int64_t split = kernel.resume_granularity == 1 ? 37 : kernel.resume_granularity;
  for (const Dtype dtype : dtypes) {
    Case c = case_of(GetParam(), {1, 150, 1, 24, 16, {}}, dtype, Dtype::fp32, "logsigmoid", 2);
    const TensorMap inputs = draw_inputs(c, op);
    const Outcome whole = vm::run(kernel.plan(c, op, inputs), inputs, {});
    TensorMap state = {{"initial_state", inputs.at("initial_state")}};
    std::vector<std::byte> o;
    for (const auto& [begin, length] : {std::pair{int64_t{0}, split}, std::pair{split, 150 - split}}) {
      TensorMap part = state;
      for (const char* name : {"q", "k", "v", "g"}) part[name] = rows_of(inputs.at(name), begin, length);
      c.T = length;
      const Outcome outcome = vm::run(kernel.plan(c, op, part), part, {});
      state["initial_state"] = outcome.outputs.at("final_state");
      o.insert(o.end(), bits_of(outcome, "o").begin(), bits_of(outcome, "o").end());
    }
    EXPECT_EQ(o, bits_of(whole, "o"));
    EXPECT_EQ(state["initial_state"].data, bits_of(whole, "final_state"));
  }
}

INSTANTIATE_TEST_SUITE_P(EachMode, GlaKernel, testing::Values("gla.chunk", "gla.fused_recurrent"));

struct Budget {
  Dtype dtype;
  double relative;
};

TEST(GlaChunk, DeclaresAtMostItsBudgetTimesTheCompanion) {
  for (const Budget& budget : {Budget{Dtype::bf16, 0x1p-6}, {Dtype::fp16, 0x1p-9}, {Dtype::fp32, 0x1p-14}})
    for (const int64_t channels : {1, 64, 128, 256}) {
      const GatedArithmetic a = find_kernel("gla.chunk")
                                    .arithmetic(case_of("gla.chunk", {1, 64, 1, channels, 64, {}},
                                                        budget.dtype, Dtype::fp32, "none", 1));
      EXPECT_LE((1 + a.write) * (1 + a.write_decayed) * (1 + a.readout) * (1 + a.readout_decayed) *
                        (1 + a.boundary) * (1 + a.crossing) -
                    1,
                budget.relative)
          << channels;
    }
}

TEST(GlaChunk, BoundsEveryProfileByItsBudgetAfterResetsAndOverManyChunks) {
  for (const Budget& budget : {Budget{Dtype::bf16, 0x1p-6}, {Dtype::fp16, 0x1p-9}, {Dtype::fp32, 0x1p-14}})
    for (const char* profile : {"none", "near-one", "reset"}) {
      const JudgedRun run = expect_within_bound(
          case_of("gla.chunk", {1, 2100, 1, 16, 8, {}}, budget.dtype, Dtype::fp32, profile, 1));
      for (const OutputComparison& output : run.outputs)
        EXPECT_LE(output.max_relative_bound, budget.relative) << profile << ' ' << output.name;
    }
}

struct Planted {
  const char* kernel;
  const char* decay;
  const char* output;
};

TEST(GlaChunk, BreaksWithEachKnownDefectAndHoldsWithoutIt) {
  setenv("ASSAY_CACHE", (testing::TempDir() + "assay-cache").c_str(), 1);
  for (const Planted& planted : {Planted{"gla.chunk@S1", "constant:-89", "o"},
                                 {"gla.chunk@S2a", "constant:-6", "final_state"},
                                 {"gla.chunk@S2b", "constant:-150", "o"}}) {
    const Case broken =
        case_of(planted.kernel, {1, 80, 1, 16, 8, {}}, Dtype::bf16, Dtype::fp32, planted.decay, 1);
    bool found = false;
    for (const OutputComparison& output : judged_run(broken).outputs)
      if (output.name == planted.output) found = output.nonfinite > 0;
    EXPECT_TRUE(found) << token_of(broken);
    Case clean = broken;
    clean.kernel = "gla.chunk";
    expect_within_bound(clean);
  }
}

}  // namespace
}  // namespace assay
