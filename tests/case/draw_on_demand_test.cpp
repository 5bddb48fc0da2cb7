#include "src/case/draw_on_demand.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(DrawOnDemand, GivesTheElementsThatDrawInputsGives) {
  for (const char* token : {"gla.chunk/B2/T7/H3/K5/V4/bf16/g-fp32/ladder/s42/h0",
                            "gla.chunk/B1/T9/H1/K2/V3/fp16/g-bf16/reset/s7/cu0,4,9",
                            "rwkv7.fused_recurrent/B1/T5/H2/K4/V4/fp32/g-fp32/mild/s3"}) {
    const Case c = parse_token(token);
    const Operator& op = find_operator(c.kernel.substr(0, c.kernel.find('.')));
    const ResolvedCase r = resolve(c, op);
    const TensorMap inputs = draw_inputs(r);
    ASSERT_FALSE(r.inputs.empty());
    for (const SizedArgument& input : r.inputs) {
      const Tensor& whole = inputs.at(std::string(input.spec.name));
      const Tensor single = draw_on_demand(input, r);
      EXPECT_EQ(single.axes, whole.axes);
      EXPECT_FALSE(single.is_held());
      for (int64_t i = 0; i < whole.size(); ++i)
        ASSERT_EQ(single.bits(i), whole.bits(i)) << token << ' ' << whole.element_name(i);
    }
  }
}

}  // namespace
}  // namespace assay
