// The delta rules' kernels on the machine, against the proved reference: what the tests of every kernel do
// not ask of them.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace {

const Dtype formats[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
const char* const members[] = {"delta_rule", "gated_delta_rule", "kda"};

struct RuleShape {
  int64_t B, T, H, HV, K, V;
  std::vector<int64_t> cu_seqlens;
};
/// Around the edges of batches, segments, kept states and blocks of channels; heads that share keys.
const RuleShape rule_shapes[] = {
    {1, 1, 1, 1, 1, 1, {}},
    {2, 33, 1, 2, 16, 24, {}},
    {1, 64, 2, 2, 8, 40, {}},
    {1, 70, 1, 3, 33, 7, {}},
    {1, 31, 1, 1, 100, 130, {}},
    {1, 20, 1, 1, 20, 256, {}},
    {1, 19, 1, 1, 256, 12, {}},
    {1, 97, 1, 1, 72, 16, {}},
    {1, 96, 1, 2, 40, 16, {0, 0, 15, 16, 80, 80, 96}},
};
const char* const rule_profiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                     "reset", "contrast",   "ladder",   "extreme"};

Case rule_case(const std::string& kernel, const RuleShape& shape, uint64_t seed) {
  Case c;
  c.kernel = kernel, c.direction = Direction::both;
  c.B = shape.B, c.T = shape.T, c.H = shape.H, c.K = shape.K, c.V = shape.V;
  c.HV = kernel.starts_with("delta_rule") ? 0 : shape.HV;
  c.cu_seqlens = shape.cu_seqlens;
  c.dtype = formats[seed % 3], c.gate_dtype = formats[seed / 3 % 3], c.seed = seed;
  c.decay = c.HV == 0 ? "none" : rule_profiles[seed % std::size(rule_profiles)];
  c.initial_state = seed % 2 == 0, c.final_state_gradient = seed % 3 != 0;
  const bool by_channel = seed % 4 == 1 && kernel.ends_with(".fused_recurrent");
  c.without.insert(by_channel ? "beta" : "beta_v");
  if (seed % 8 == 3) c.without.insert("beta");
  return c;
}

TEST(DeltaRulesCampaign, StayWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  uint64_t seed = 0;
  for (const char* mode : {".fused_recurrent", ".chunk"})
    for (const char* member : members)
      for (size_t i = 0; i < std::size(rule_shapes); ++i, ++seed)
        expect_within_bound(rule_case(std::string(member) + mode,
                                      rule_shapes[(i + seed / 9) % std::size(rule_shapes)], seed));
}

TEST(DeltaRules, AreExactWhereNoOperationRounds) {
  for (const char* member : members) {
    Case c = rule_case(std::string(member) + ".fused_recurrent", {1, 70, 1, 1, 40, 24, {}}, 6);
    c.values = "exact", c.decay = "none";
    for (const OutputComparison& output : judged_run(c).outputs) {
      EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element << " got " << output.worst.got
                                 << " expected " << output.worst.expected;
      if (output.name != "dg") {
        EXPECT_EQ(output.worst.bound, 0) << output.name;
      }
    }
  }
}

/// One rate for all value channels, or the same one for each of them: the same bits.
TEST(DeltaRules, TakeRatesOfValueChannelsAsThoseOfHeads) {
  for (const char* member : members) {
    Case c = rule_case(std::string(member) + ".fused_recurrent", {1, 40, 1, 1, 24, 40, {}}, 2);
    const Operator& op = find_operator(member);
    TensorMap inputs = draw_inputs(c, op);
    Case other = c;
    other.without = {"beta"};
    TensorMap channels = draw_inputs(other, op);
    for (const auto& [name, tensor] : inputs)
      if (name != "beta") channels.at(name) = tensor;
    Tensor& rates = channels.at("beta_v");
    for (int64_t i = 0; i < rates.size(); ++i) rates.set(i, inputs.at("beta").value(i / c.V));
    const auto run = [&](const Case& x, const TensorMap& given) {
      return vm::run(find_kernel(x.kernel).plan(resolve_unchecked(x, op), given), given, {});
    };
    const Outcome got = run(other, channels), expected = run(c, inputs);
    ASSERT_FALSE(got.trap || expected.trap);
    for (const char* name : {"o", "final_state", "dq", "dk", "dv"})
      EXPECT_EQ(bits_of(got, name), bits_of(expected, name)) << member << ' ' << name;
  }
}

}  // namespace
}  // namespace assay
