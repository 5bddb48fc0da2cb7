// The kernels for Hopper on the machine, beside those in chunks.
#include <algorithm>
#include <limits>

#include "src/base/vm/checks/checks.h"
#include "tests/kernels/gradient_cases.h"

namespace assay {
namespace {

const char* const scalar_operators[] = {"linear_attn", "simple_gla", "retention", "lightning_attn"};
/// Around the edges of chunks, of blocks of 32 and 64 channels and of one or two tiles of keys; sequences
/// that end inside a chunk, right before others.
const CaseShape hopper_shapes[] = {
    {1, 1, 1, 8, 8, {}},      {2, 64, 2, 64, 64, {}},   {1, 130, 1, 72, 40, {}},
    {1, 65, 1, 128, 128, {}}, {1, 300, 1, 16, 256, {}}, {1, 150, 2, 40, 96, {0, 0, 15, 16, 100, 100, 150}},
    {1, 80, 34, 32, 104, {}},
};

bool runs_on_hopper(const Case& c) {
  const Operator& op = operator_of(c);
  const Program plan = find_kernel(c.kernel).plan(resolve_unchecked(c, op), draw_inputs(c, op));
  return std::ranges::any_of(plan.launches, [](const Launch& launch) {
    return launch.function.find("_hopper_") != std::string::npos;
  });
}

Case in_chunks(Case c) {
  c.kernel = c.kernel.substr(0, c.kernel.find("_hopper"));
  return c;
}

void expect_same_bits(const Case& c, std::initializer_list<const char*> outputs) {
  EXPECT_TRUE(runs_on_hopper(c)) << token_of(c);
  const TensorMap inputs = draw_inputs(c, operator_of(c));
  const Outcome a = outcome_of(c, inputs), b = outcome_of(in_chunks(c), inputs);
  for (const char* output : outputs) {
    if (!a.outputs.contains(output)) continue;
    EXPECT_EQ(bits_of(a, output), bits_of(b, output)) << output << ' ' << token_of(c);
  }
}

TEST(ChunkHopper, HasTheOutputsOfChunkBitForBit) {
  uint64_t seed = 0;
  for (const char* op : scalar_operators)
    for (const CaseShape& shape : hopper_shapes)
      for (const bool per_head : {false, true}) {
        Case c = gated_case(std::string(op) + ".chunk_hopper", shape, Dtype::bf16, gradient_dtypes[seed % 3],
                            gradient_profiles[seed % std::size(gradient_profiles)], seed);
        if (per_head && c.kernel.starts_with("simple")) c.without = {"g"};
        ++seed;
        expect_same_bits(c, {"o", "final_state"});
      }
}

/// But for those of learned gates, whose sums are in another order.
TEST(ChunkHopper, HasTheGradientsOfChunkBitForBit) {
  uint64_t seed = 0;
  for (const char* op : scalar_operators)
    for (const CaseShape& shape : hopper_shapes)
      for (const bool per_head : {false, true}) {
        if (shape.V > 128) continue;
        Case c =
            gradient_case(std::string(op) + ".chunk_hopper", shape, Dtype::bf16, gradient_dtypes[seed % 3],
                          gradient_profiles[seed % std::size(gradient_profiles)], seed);
        ++seed;
        const bool learned = c.kernel.starts_with("simple");
        if (per_head && !learned) continue;
        if (per_head) c.without = {"g"};
        expect_same_bits(c, {"dq", "dk", "dv", "dinitial_state"});
        if (learned) expect_within_bound(c);
      }
}

TEST(ChunkHopper, LeavesToChunkWhatTensorMapsOrRegistersDoNotHold) {
  const auto forward = [](const CaseShape& shape, Dtype dtype) {
    return gated_case("simple_gla.chunk_hopper", shape, dtype, Dtype::fp32, "mild", 2);
  };
  EXPECT_TRUE(runs_on_hopper(forward({1, 70, 1, 24, 16, {}}, Dtype::bf16)));
  EXPECT_FALSE(runs_on_hopper(forward({1, 70, 1, 24, 16, {}}, Dtype::fp16)));
  EXPECT_FALSE(runs_on_hopper(forward({1, 70, 1, 20, 16, {}}, Dtype::bf16))) << "rows of 40 bytes";
  EXPECT_FALSE(runs_on_hopper(forward({1, 70, 1, 24, 12, {}}, Dtype::bf16))) << "rows of 24 bytes";
  EXPECT_FALSE(runs_on_hopper(forward({1, 70, 1, 136, 16, {}}, Dtype::bf16))) << "three tiles of keys";
  EXPECT_FALSE(runs_on_hopper(forward({1, 0, 1, 24, 16, {}}, Dtype::bf16))) << "a map of no tokens";
  const auto gradients = [](const char* op, int64_t V) {
    return gradient_case(std::string(op) + ".chunk_hopper", {1, 70, 1, 24, V, {}}, Dtype::bf16, Dtype::fp32,
                         "mild", 2);
  };
  EXPECT_TRUE(runs_on_hopper(gradients("retention", 128)));
  EXPECT_FALSE(runs_on_hopper(gradients("retention", 136))) << "dq and dk contract over V";
  EXPECT_TRUE(runs_on_hopper(gradients("simple_gla", 128))) << "its gates have gradients";
}

TEST(ChunkHopper, LeavesNothingToRaceAndNoAsynchronousWorkUnwaitedFor) {
  for (const char* op : {"simple_gla", "retention"})
    for (const CaseShape& shape : {hopper_shapes[2], hopper_shapes[5]}) {
      Case c = gradient_case(std::string(op) + ".chunk_hopper", shape, Dtype::bf16, Dtype::fp32, "mild", 2);
      c.direction = Direction::both;
      EXPECT_TRUE(runs_on_hopper(c)) << token_of(c);
      const TensorMap inputs = draw_inputs(c, operator_of(c));
      const CheckReport report = vm::run_checked(
          find_kernel(c.kernel).plan(resolve_unchecked(c, operator_of(c)), inputs), inputs, {}, {});
      EXPECT_EQ(report.skipped, "");
      for (const CheckFinding& finding : report.findings)
        ADD_FAILURE() << token_of(c) << ": " << finding.message;
    }
}

/// Tiles hold the next sequence's tokens too.
TEST(ChunkHopper, ReadsNothingOfTheNextSequence) {
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    Case c = gated_case("retention.chunk_hopper", {1, 150, 1, 72, 40, {0, 70, 150}}, Dtype::bf16, Dtype::fp32,
                        "none", 2);
    c.direction = direction;
    TensorMap inputs = draw_inputs(c, operator_of(c));
    const Outcome clean = outcome_of(c, inputs);
    for (const char* name : {"q", "k", "v", "do"})
      if (const auto found = inputs.find(name); found != inputs.end())
        for (int64_t i = found->second.size() * 70 / 150; i < found->second.size(); ++i)
          found->second.set(i, std::numeric_limits<double>::quiet_NaN());
    const Outcome poisoned = outcome_of(c, inputs);
    for (const auto& [name, tensor] : clean.outputs) {
      const bool of_tokens = tensor.axes[1].name == "T";
      const auto rows =
          static_cast<std::ptrdiff_t>(of_tokens ? tensor.bytes() * 70 / 150 : tensor.bytes() / 2);
      const std::vector<std::byte>& other = bits_of(poisoned, name);
      EXPECT_TRUE(std::equal(other.begin(), other.begin() + rows, tensor.data.begin())) << name;
      EXPECT_NE(other, tensor.data) << name << ": nothing of the second sequence was read";
    }
  }
}

}  // namespace
}  // namespace assay
