// gated_delta_product's kernel on the machine, against the proved reference: what the tests of every kernel
// do not ask.
#include <gtest/gtest.h>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace {

struct ProductShape {
  int64_t B, T, M, H, K, V;
  std::vector<int64_t> cu_seqlens;
};
/// Around the edges of batches, segments and kept states, which are of writes here, and blocks of channels.
const ProductShape product_shapes[] = {
    {1, 1, 1, 1, 1, 1, {}},
    {2, 11, 3, 2, 16, 24, {}},
    {1, 16, 4, 2, 8, 40, {}},
    {1, 35, 2, 1, 33, 7, {}},
    {1, 31, 1, 1, 100, 130, {}},
    {1, 5, 4, 1, 20, 256, {}},
    {1, 10, 2, 3, 256, 12, {}},
    {1, 13, 8, 1, 72, 16, {}},
    {1, 48, 2, 2, 40, 16, {0, 0, 15, 16, 40, 40, 48}},
    {3, 7, 5, 1, 12, 12, {}},
    {2, 0, 2, 1, 5, 6, {}},
};
const char* const product_profiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                        "reset", "contrast",   "ladder",   "extreme"};

Case product_case(const ProductShape& shape, uint64_t seed) {
  const Dtype formats[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  Case c;
  c.kernel = "gated_delta_product.fused_recurrent", c.direction = Direction::both;
  c.B = shape.B, c.T = shape.T, c.M = shape.M, c.H = shape.H, c.K = shape.K, c.V = shape.V;
  c.cu_seqlens = shape.cu_seqlens;
  c.dtype = formats[seed % 3], c.gate_dtype = formats[seed / 3 % 3], c.seed = seed;
  c.decay = product_profiles[seed % std::size(product_profiles)];
  c.initial_state = seed % 2 == 0, c.final_state_gradient = seed % 3 != 0;
  if (seed % 8 == 3) c.without.insert("beta");
  if (seed % 8 == 5) c.without.insert("g"), c.decay = "none";
  return c;
}

TEST(GatedDeltaProduct, StaysWithinTheProvedBoundOnEveryShapeFormatAndProfile) {
  for (uint64_t seed = 0; seed < 2 * std::size(product_shapes); ++seed)
    expect_within_bound(product_case(product_shapes[seed % std::size(product_shapes)], seed));
}

TEST(GatedDeltaProduct, IsExactWhereNoOperationRounds) {
  Case c = product_case({1, 30, 3, 1, 40, 24, {}}, 6);
  c.values = "exact", c.decay = "none";
  for (const OutputComparison& output : judged_run(c).outputs) {
    EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element << " got " << output.worst.got
                               << " expected " << output.worst.expected;
    if (output.name != "dg") {
      EXPECT_EQ(output.worst.bound, 0) << output.name;
    }
  }
}

/// Of as many tokens as there are writes, of which every M-th has a query and a decay.
TEST(GatedDeltaProduct, HasTheBitsOfTheGatedDeltaRuleOnItsWrites) {
  Case c = product_case({2, 9, 4, 2, 20, 12, {}}, 4);
  const TensorMap inputs = draw_inputs(c, find_operator("gated_delta_product"));
  Case rule = c;
  rule.kernel = "gated_delta_rule.fused_recurrent", rule.T *= c.M, rule.M = 0;
  TensorMap of_writes = inputs;
  for (auto& [name, tensor] : of_writes) {
    if (tensor.axes[0].name != "B") continue;
    const bool spread = tensor.axes[2].name != "M";
    std::vector<Axis> axes = tensor.axes;
    axes[1].size *= c.M;
    if (!spread) axes.erase(axes.begin() + 2);
    Tensor rows(name, tensor.dtype, axes);
    const int64_t width = rows.size() / (c.B * c.T * c.M), place = name == "g" ? 0 : c.M - 1;
    for (int64_t i = 0; i < tensor.size(); ++i)
      rows.set_bits(spread ? (i / width * c.M + place) * width + i % width : i, tensor.bits(i));
    tensor = rows;
  }
  const Outcome own = vm::run(
                    find_kernel(c.kernel).plan(resolve(c, find_operator("gated_delta_product")), inputs),
                    inputs, {}),
                whole =
                    vm::run(find_kernel(rule.kernel)
                                .plan(resolve_unchecked(rule, find_operator("gated_delta_rule")), of_writes),
                            of_writes, {});
  ASSERT_FALSE(own.trap || whole.trap);
  for (const auto& [name, output] : own.outputs) {
    const Tensor& rows = whole.outputs.at(name);
    const bool gathered = rows.size() != output.size();
    const int64_t width = gathered ? output.size() / (c.B * c.T) : 1, place = name == "dg" ? 0 : c.M - 1;
    for (int64_t i = 0; i < output.size(); ++i)
      ASSERT_EQ(output.bits(i), rows.bits(gathered ? (i / width * c.M + place) * width + i % width : i))
          << output.element_name(i);
  }
}

}  // namespace
}  // namespace assay
