// What holds for every kernel of the gated family, forward: those with a state [N, H, K, V].
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/program/program.h"
#include "tests/kernels/gated_cases.h"
#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace {

/// Around the edges of rows, tiles, chunks and 64-channel blocks; aligned and not.
const CaseShape shapes[] = {
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

const Operator& operator_of(const std::string& kernel) {
  return find_operator(find_kernel(kernel).operator_name);
}

bool takes(const Operator& op, std::string_view input) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](const ArgumentSpec& a) { return a.name == input; });
}

std::vector<std::string> gated_kernels() {
  const std::vector<std::string_view> state = {"N", "H", "K", "V"};
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels())
    for (const ArgumentSpec& output : find_operator(kernel.operator_name).outputs)
      if (output.axes == state) names.push_back(kernel.name);
  return names;
}

class GatedKernel : public testing::TestWithParam<std::string> {};

TEST_P(GatedKernel, StaysWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  uint64_t seed = 0;
  for (const Dtype dtype : dtypes)
    for (const char* profile : profiles) {
      const CaseShape& shape = shapes[seed % std::size(shapes)];
      expect_within_bound(gated_case(GetParam(), shape, dtype, dtypes[seed % 3], profile, seed));
      ++seed;
    }
}

TEST_P(GatedKernel, IsExactWhereNoOperationRounds) {
  if (operator_of(GetParam()).inexact) GTEST_SKIP() << "its heads decay";
  for (const Dtype dtype : dtypes) {
    Case c = gated_case(GetParam(), {1, 140, 1, 40, 24, {}}, dtype, Dtype::fp32, "none", 4);
    c.values = "exact";
    for (const OutputComparison& output : judged_run(c).outputs) {
      EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element;
      EXPECT_EQ(output.worst.bound, 0) << output.name;
    }
  }
}

TEST_P(GatedKernel, TakesAnAbsentGateAsAZeroGate) {
  if (!takes(operator_of(GetParam()), "g")) GTEST_SKIP() << "no gate";
  for (const Dtype dtype : dtypes) {
    Case with = gated_case(GetParam(), {1, 70, 1, 24, 16, {}}, dtype, Dtype::bf16, "none", 2), without = with;
    without.without = {"g"};
    const JudgedRun a = judged_run(with), b = judged_run(without);
    for (const char* output : {"o", "final_state"})
      EXPECT_EQ(bits_of(a.outcome, output), bits_of(b.outcome, output)) << output;
  }
}

TEST_P(GatedKernel, GivesTheInitialStateBackWhereThereAreNoTokens) {
  const Case c = gated_case(GetParam(), {1, 0, 2, 24, 16, {}}, Dtype::bf16, Dtype::fp32, "mild", 2);
  const Operator& op = operator_of(GetParam());
  const TensorMap inputs = draw_inputs(c, op);
  const Outcome outcome = vm::run(find_kernel(GetParam()).plan(resolve_unchecked(c, op), inputs), inputs, {});
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

TEST_P(GatedKernel, ResumesFromItsStateWithTheSameBits) {
  const Kernel& kernel = find_kernel(GetParam());
  const Operator& op = operator_of(GetParam());
  const int64_t split = kernel.resume_granularity == 1 ? 37 : kernel.resume_granularity;
  if (split >= 150) GTEST_SKIP() << "sums in other blocks where it is split";
  for (const Dtype dtype : dtypes) {
    Case c = gated_case(GetParam(), {1, 150, 1, 24, 16, {}}, dtype, Dtype::fp32, "logsigmoid", 2);
    const TensorMap inputs = draw_inputs(c, op);
    const Outcome whole = vm::run(kernel.plan(resolve_unchecked(c, op), inputs), inputs, {});
    // The states a run leaves and those it starts from, in the order of the operator's arguments.
    TensorMap states;
    std::vector<std::string> initial, last;
    for (const ArgumentSpec& input : op.inputs)
      if (input.role == Role::state)
        initial.emplace_back(input.name), states[initial.back()] = inputs.at(initial.back());
    for (const ArgumentSpec& output : op.outputs)
      if (output.role == Role::state) last.emplace_back(output.name);
    std::vector<std::byte> o;
    for (const auto& [begin, length] : {std::pair{int64_t{0}, split}, std::pair{split, 150 - split}}) {
      TensorMap part = states;
      for (const auto& [name, tensor] : inputs)
        if (!states.contains(name))
          part[name] =
              tensor.axes.size() > 1 && tensor.axes[1].name == "T" ? rows_of(tensor, begin, length) : tensor;
      c.T = length;
      const Outcome outcome = vm::run(kernel.plan(resolve_unchecked(c, op), part), part, {});
      for (size_t i = 0; i < initial.size(); ++i) states[initial[i]] = outcome.outputs.at(last[i]);
      o.insert(o.end(), bits_of(outcome, "o").begin(), bits_of(outcome, "o").end());
    }
    EXPECT_EQ(o, bits_of(whole, "o"));
    for (size_t i = 0; i < initial.size(); ++i)
      EXPECT_EQ(states[initial[i]].data, bits_of(whole, last[i])) << last[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Each, GatedKernel, testing::ValuesIn(gated_kernels()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(FusedChunk, HasTheBitsOfTheChunkedKernel) {
  uint64_t seed = 0;
  for (const Kernel& kernel : kernels()) {
    const size_t at = kernel.name.find(".fused_chunk");
    if (at == kernel.name.npos) continue;
    for (const Dtype dtype : dtypes)
      for (const CaseShape& shape : shapes) {
        ++seed;
        const Case fused = gated_case(kernel.name, shape, dtype, dtypes[seed % 3], profiles[seed % 9], seed);
        Case chunked = fused;
        chunked.kernel = kernel.operator_name + ".chunk";
        const JudgedRun a = judged_run(fused), b = judged_run(chunked);
        for (const char* output : {"o", "final_state"})
          EXPECT_EQ(bits_of(a.outcome, output), bits_of(b.outcome, output))
              << token_of(fused) << ' ' << output;
      }
  }
}

}  // namespace
}  // namespace assay
