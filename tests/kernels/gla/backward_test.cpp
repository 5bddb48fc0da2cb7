// Gradients of gla: where their scans run, and defects, each found in the gradient that it reaches.
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

/// How many scans each launch of one has.
std::vector<uint32_t> scans_of(const Case& c) {
  const Kernel& kernel = find_kernel(c.kernel);
  const Operator& op = find_operator(kernel.operator_name);
  std::vector<uint32_t> counts;
  for (const Launch& launch : kernel.plan(resolve_unchecked(c, op), draw_inputs(c, op)).launches)
    if (launch.function.find("_chunk_scans_") != std::string::npos) counts.push_back(launch.grid[1]);
  return counts;
}

TEST(GlaGradients, ScanSideBySideWhereOneScanLeavesMultiprocessorsIdle) {
  for (const char* kernel : {"gla.chunk", "rwkv6.chunk"}) {
    const Case few = gradient_case(kernel, {1, 66, 132, 3, 2, {}}, Dtype::bf16, Dtype::bf16, "mild", 2),
               many = gradient_case(kernel, {1, 66, 133, 3, 2, {}}, Dtype::bf16, Dtype::bf16, "mild", 2);
    EXPECT_EQ(scans_of(few), std::vector<uint32_t>{2});
    EXPECT_EQ(scans_of(many), (std::vector<uint32_t>{1, 1}));
    expect_within_bound(many);
    Case none = few;
    none.T = 0;
    EXPECT_EQ(scans_of(none), std::vector<uint32_t>{1});
  }
}

}  // namespace
}  // namespace assay
