#include <gtest/gtest.h>

#include <cstdlib>

#include "src/base/program/program.h"
#include "tests/kernels/gated_cases.h"
#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace gla_chunk_test {

struct Budget {
  Dtype dtype;
  double relative;
};

TEST(GlaChunk, DeclaresAtMostItsBudgetTimesTheCompanion) {
  for (const Budget& budget : {Budget{Dtype::bf16, 0x1p-6}, {Dtype::fp16, 0x1p-9}, {Dtype::fp32, 0x1p-14}})
    for (const int64_t channels : {1, 64, 128, 256}) {
      const Case c =
          gated_case("gla.chunk", {1, 64, 1, channels, 64, {}}, budget.dtype, Dtype::fp32, "none", 1);
      const Arithmetic a = find_kernel("gla.chunk").arithmetic(resolve(c, find_operator("gla")));
      EXPECT_LE((1 + a.write) * (1 + a.write_decayed) * (1 + a.readout) * (1 + a.readout_decayed) *
                        (1 + a.write_scaled) * (1 + a.readout_scaled) * (1 + a.boundary) * (1 + a.crossing) -
                    1,
                budget.relative)
          << channels;
    }
}

TEST(GlaChunk, BoundsEveryProfileByItsBudgetAfterResetsAndOverManyChunks) {
  for (const Budget& budget : {Budget{Dtype::bf16, 0x1p-6}, {Dtype::fp16, 0x1p-9}, {Dtype::fp32, 0x1p-14}})
    for (const char* profile : {"none", "near-one", "reset"}) {
      const Case c = gated_case("gla.chunk", {1, 2100, 1, 16, 8, {}}, budget.dtype, Dtype::fp32, profile, 1);
      expect_within_bound(c);
      const Operator& op = find_operator("gla");
      const TensorMap inputs = draw_inputs(c, op);
      Problem problem;
      problem.sizes = sizes_of(c), problem.scale = scale_of(c, op), problem.inputs = &inputs;
      problem.arithmetic = find_kernel("gla.chunk").arithmetic(resolve(c, op));
      const std::vector<ReferenceOutput> outputs = op.evaluate(problem).outputs;
      problem.arithmetic.stored = 0;  // whose companion is the sum over all terms
      const std::vector<ReferenceOutput> terms = op.evaluate(problem).outputs;
      for (size_t n = 0; n < outputs.size(); ++n)
        for (size_t i = 0; i < outputs[n].bound.size(); ++i)
          ASSERT_LE(
              outputs[n].bound[i],
              (budget.relative + 1.1 * outputs[n].roundoff) * terms[n].companion[i] + terms[n].underflow[i])
              << profile << ' ' << outputs[n].name << '[' << i << ']';
    }
}

struct Planted {
  const char* kernel;
  const char* decay;
  const char* output;
};

TEST(GlaChunk, BreaksWithEachKnownDefectAndHoldsWithoutIt) {
  for (const Planted& planted : {Planted{"gla.chunk@S1", "constant:-89", "o"},
                                 {"gla.chunk@S2a", "constant:-6", "final_state"},
                                 {"gla.chunk@S2b", "constant:-150", "o"}}) {
    const Case broken =
        gated_case(planted.kernel, {1, 80, 1, 16, 8, {}}, Dtype::bf16, Dtype::fp32, planted.decay, 1);
    bool found = false;
    for (const OutputComparison& output : judged_run(broken).outputs)
      if (output.name == planted.output) found = output.nonfinite > 0;
    EXPECT_TRUE(found) << token_of(broken);
    Case clean = broken;
    clean.kernel = "gla.chunk";
    expect_within_bound(clean);
  }
}

}  // namespace gla_chunk_test
}  // namespace assay
