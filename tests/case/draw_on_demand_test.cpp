#include "src/case/draw_on_demand.h"

#include <gtest/gtest.h>

#include <string>

#include "src/case/decay_profiles.h"
#include "src/case/values.h"

namespace assay {
namespace {

void expect_same_elements(const Case& c, const std::string& text) {
  const ResolvedCase r = resolve(c, find_operator(c.kernel.substr(0, c.kernel.find('.'))));
  const TensorMap inputs = draw_inputs(r);
  ASSERT_FALSE(r.inputs.empty());
  for (const SizedArgument& input : r.inputs) {
    const Tensor& whole = inputs.at(std::string(input.spec.name));
    const Tensor single = draw_on_demand(input, r);
    EXPECT_EQ(single.axes, whole.axes);
    EXPECT_FALSE(single.is_held());
    for (int64_t i = 0; i < whole.size(); ++i)
      ASSERT_EQ(single.bits(i), whole.bits(i)) << text << ' ' << whole.element_name(i);
  }
}

TEST(DrawOnDemand, GivesTheElementsThatDrawInputsGives) {
  for (const char* token : {"gla.chunk/B2/T7/H3/K5/V4/bf16/g-fp32/ladder/s42/h0",
                            "gla.chunk/B1/T9/H1/K2/V3/fp16/g-bf16/reset/s7/cu0,4,9",
                            "rwkv7.fused_recurrent/B1/T5/H2/K4/V4/fp32/g-fp32/mild/s3"})
    expect_same_elements(parse_token(token), token);
}

/// Elements on demand are drawn one by one, whole inputs by rows.
TEST(DrawOnDemand, RowsAreTheirElementsOfEveryKindAndProfile) {
  for (const char* kernel : {"gla.chunk", "rwkv7.fused_recurrent", "kda.fused_recurrent"})
    for (const char* format : {"fp32/g-fp32", "bf16/g-fp32"}) {
      const std::string sizes = std::string(kernel) + "/B1/T19/H2/K37/V21/" + format;
      for (const DecayProfile& profile : decay_profiles())
        if (profile.in_domain) {
          const std::string token = sizes + '/' + std::string(profile.name) + "/s5/h0";
          expect_same_elements(parse_token(token), token);
        }
      for (const ValueKind& kind : value_kinds()) {
        const std::string token = sizes + "/none/v-" + std::string(kind.name) + "/s6/h0";
        Case c = parse_token(sizes + "/none/s6/h0");
        c.values = kind.name;
        expect_same_elements(c, token);
      }
    }
}

}  // namespace
}  // namespace assay
