#include <gtest/gtest.h>

#include "reference/domain.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/case.h"
#include "src/case/draw_on_demand.h"
#include "src/case/resolved_case.h"
#include "src/case/values.h"
#include "tests/case/gated_operator.h"

namespace assay {
namespace {

uint64_t digest(const TensorMap& inputs) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const auto& [name, tensor] : inputs) {
    for (std::byte b : tensor.data) hash = (hash ^ static_cast<uint8_t>(b)) * 0x100000001b3u;
  }
  return hash;
}

Case small() {
  Case c;
  c.kernel = "gated.test";
  c.B = 2, c.T = 19, c.H = 2, c.K = 7, c.V = 5;
  c.initial_state = true;
  return c;
}

TEST(Draw, SameCaseGivesTheBitsRecordedOnOtherHosts) {
  const std::pair<const char*, uint64_t> table[] = {
      {"gated.test/B2/T19/H2/K7/V5/bf16/g-fp32/logsigmoid/s1/h0", 9351916160353689093u},
      {"gated.test/T33/K5/V3/fp32/g-bf16/ladder:8/s7", 15665955360621508570u},
      {"gated.test/T40/K9/V2/fp16/g-fp16/extreme/v-sparse/s3", 6617236700272526207u},
      {"gated.test/B1/T64/H1/K8/V8/fp32/none/v-exact/s5/h0", 12997126503805713096u},
      {"gated.test/B1/T70/K4/V4/cu0,20,70/reset/v-positive/s9", 17739985815846408035u},
      {"gated.test/T50/near-one/s4/g@0,1,0,0=-90", 6067716011422676338u}};
  for (const auto& [token, expected] : table) {
    EXPECT_EQ(digest(draw_inputs(parse_token(token), gated_operator())), expected) << token;
  }
}

TEST(Draw, AnyNumberOfThreadsDrawsTheSameBits) {
  Case c = small();
  c.cu_seqlens = {0, 700, 4000}, c.B = 1, c.T = 4000;
  const ResolvedCase resolved = resolve_unchecked(c, gated_operator());
  const uint64_t alone = digest(draw_inputs(resolved, 1));
  for (const int threads : {2, 7}) EXPECT_EQ(digest(draw_inputs(resolved, threads)), alone) << threads;
}

TEST(Draw, EveryArgumentHasTheAxesAndTheFormatOfTheCase) {
  Case c = small();
  c.dtype = Dtype::fp16;
  c.gate_dtype = Dtype::bf16;
  const TensorMap inputs = draw_inputs(c, gated_operator());
  EXPECT_EQ(inputs.at("q").shape_text(), "[B=2,T=19,H=2,K=7]");
  EXPECT_EQ(inputs.at("v").shape_text(), "[B=2,T=19,H=2,V=5]");
  EXPECT_EQ(inputs.at("q").dtype, Dtype::fp16);
  EXPECT_EQ(inputs.at("g").dtype, Dtype::bf16);
  EXPECT_EQ(inputs.at("initial_state").dtype, Dtype::fp32);
}

TEST(Draw, AbsentInputsAreAbsent) {
  Case c = small();
  c.initial_state = false;
  c.without = {"g"};
  const TensorMap inputs = draw_inputs(c, gated_operator());
  EXPECT_EQ(inputs.size(), 3);
  EXPECT_FALSE(inputs.contains("g"));
  c.initial_state = true;
  c.without = {"initial_state"};
  EXPECT_FALSE(draw_inputs(c, gated_operator()).contains("initial_state"));
}

TEST(Draw, ASmallerCaseKeepsTheValuesItKeeps) {
  Case c = small();
  const Tensor large = draw_inputs(c, gated_operator()).at("k");
  c.B = 1, c.T = 6, c.H = 1, c.K = 3;
  const Tensor less = draw_inputs(c, gated_operator()).at("k");
  for (int64_t i = 0; i < less.size(); ++i)
    EXPECT_EQ(less.value(i), large.value(large.offset(less.index(i))));
}

TEST(Draw, PackedSequencesAreDrawnAsTheBatchesTheyWouldBe) {
  Case packed = small();
  packed.B = 1, packed.T = 12, packed.cu_seqlens = {0, 5, 5, 12};
  packed.decay = "spike:3";
  const TensorMap inputs = draw_inputs(packed, gated_operator());
  Case separate = packed;
  separate.cu_seqlens.clear();
  separate.B = 3, separate.T = 7;
  const TensorMap batches = draw_inputs(separate, gated_operator());
  for (const char* name : {"q", "v", "g"}) {
    const Tensor &p = inputs.at(name), &s = batches.at(name);
    for (int64_t i = 0; i < p.size(); ++i) {
      std::vector<int64_t> index = p.index(i);
      index[0] = index[1] < 5 ? 0 : 2;
      if (index[1] >= 5) index[1] -= 5;
      EXPECT_EQ(p.value(i), s.value(s.offset(index))) << name << " " << i;
    }
  }
  EXPECT_EQ(inputs.at("initial_state").axes[0].size, 3);
}

TEST(Draw, DecaysAndRatesAloneMayLieOutsideADomain) {
  for (const Operator& op : operators())
    for (const ValueKind& kind : value_kinds())
      for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
        Case c = small();
        c.kernel = std::string(op.name) + ".test", c.dtype = c.gate_dtype = dtype;
        c.values = kind.name, c.decay = "none", c.M = usual_slots(op);
        c.direction = Direction::both, c.final_state_gradient = true;
        const ResolvedCase resolved = resolve_unchecked(c, op);
        const TensorMap all = draw_inputs(resolved), limited = draw_limited_inputs(resolved);
        TensorMap others = all;
        for (const auto& [name, drawn] : limited) {
          EXPECT_EQ(drawn.data, all.at(name).data) << name;
          others.erase(name);
        }
        for (const DomainFault& fault : outside_domain(op, others))
          ADD_FAILURE() << token_of(c) << ": " << describe(fault);
        const TensorMap shapes = inputs_without_values(resolved);
        EXPECT_EQ(shapes.size(), all.size());
        for (const SizedArgument& input : resolved.inputs) {
          const Role role = input.spec.role;
          EXPECT_EQ(limited.contains(input.shape.name), role == Role::log_decay || role == Role::rate);
          EXPECT_EQ(shapes.at(input.shape.name).shape_text(), all.at(input.shape.name).shape_text());
          EXPECT_TRUE(shapes.at(input.shape.name).data.empty());
        }
      }
}

TEST(Draw, OfChangedElementsAllMayLieOutsideADomain) {
  Case c = small();
  c.overrides = {"k[1,3,0,2]=inf"};
  const ResolvedCase resolved = resolve_unchecked(c, gated_operator());
  EXPECT_EQ(digest(draw_limited_inputs(resolved)), digest(draw_inputs(resolved)));
}

TEST(Draw, OverridesChangeOneElementRoundedToItsFormat) {
  Case c = small();
  c.gate_dtype = Dtype::bf16;
  const Tensor before = draw_inputs(c, gated_operator()).at("g");
  c.overrides = {"g[1,3,0,2]=-90.1"};
  const Tensor after = draw_inputs(c, gated_operator()).at("g");
  int64_t changed = 0;
  for (int64_t i = 0; i < before.size(); ++i) changed += before.bits(i) != after.bits(i);
  EXPECT_EQ(changed, 1);
  const int64_t index[] = {1, 3, 0, 2};
  EXPECT_EQ(after.value(after.offset(index)), -90);
  c.without = {"g"};
  EXPECT_THROW(draw_inputs(c, gated_operator()), BadInput);
}

TEST(Draw, NoTokensGiveEmptyTensors) {
  Case c = small();
  c.T = 0;
  const TensorMap inputs = draw_inputs(c, gated_operator());
  EXPECT_EQ(inputs.at("q").size(), 0);
  EXPECT_EQ(inputs.at("initial_state").size(), 2 * 2 * 7 * 5);
}

}  // namespace
}  // namespace assay
