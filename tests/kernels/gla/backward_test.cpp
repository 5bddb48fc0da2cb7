// Defects of gla's gradients: each is found in the gradient that it reaches.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/kernels/gradient_cases.h"

namespace assay {
namespace {

struct PlantedInGradient {
  const char* kernel;
  const char* decay;
  const char* output;
  bool nonfinite;  ///< else a finite value beyond its bound
};

TEST(GlaGradientDefects, AreFoundInTheGradientsTheyReach) {
  for (const PlantedInGradient& planted : {PlantedInGradient{"gla.chunk@S2c", "constant:-4", "dq", true},
                                           {"gla.chunk@G1", "mild", "dk", false},
                                           {"gla.chunk@G2", "mild", "dg", false},
                                           {"gla.fused_recurrent@G1", "mild", "dg", false}}) {
    const Case broken =
        gradient_case(planted.kernel, {1, 80, 1, 16, 8, {}}, Dtype::bf16, Dtype::fp32, planted.decay, 2);
    int64_t found = 0;
    for (const OutputComparison& output : judged_run(broken).outputs)
      if (output.name == planted.output) found = planted.nonfinite ? output.nonfinite : output.violation;
    EXPECT_GT(found, 0) << token_of(broken);
    Case clean = broken;
    clean.kernel = clean.kernel.substr(0, clean.kernel.find('@'));
    expect_within_bound(clean);
  }
}

}  // namespace
}  // namespace assay
