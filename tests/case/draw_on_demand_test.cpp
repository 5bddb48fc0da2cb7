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

/// Where no value can be judged, nothing is gained by drawing all of a tensor that would fit.
TEST(DrawOnDemand, BesideATensorThatIsNotHeldOnlySmallOnesAre) {
  const auto drawn = [](const std::string& token) {
    return draw_inputs(resolve(parse_token(token), find_operator("simple_gla")));
  };
  const std::string formats = "/T65/H1/K128/V100/bf16/g-bf16/mild/s5";
  const TensorMap far = drawn("simple_gla.chunk/B271017" + formats + "/blocks-last-1..last");
  EXPECT_FALSE(far.at("q").is_held());
  EXPECT_FALSE(far.at("g").is_held()) << far.at("g").bytes() << " bytes of which a few are read";
  const TensorMap near = drawn("simple_gla.chunk/B1000" + formats + "/blocks-last-1..last");
  EXPECT_TRUE(near.at("q").is_held()) << near.at("q").bytes() << " bytes, and its values are judged";
}

}  // namespace
}  // namespace assay
