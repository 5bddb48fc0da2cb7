#include "fuzz/cost.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/backend/backend.h"
#include "src/verification/verify/acceptance.h"

namespace assay {
namespace cost_test {

bool has_axis(const Operator& op, std::string_view axis) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ArgumentSpec& input) {
    return std::any_of(input.axes.begin(), input.axes.end(), [&](std::string_view name) {
      return name == axis || name == std::string("H*") + std::string(axis) || (axis == "V" && name == "D");
    });
  });
}

/// As fuzzing draws it: within the kernel's limits, and axes that the operator does not have are 1.
Case as_drawn(Case c, const Kernel& kernel, const Operator& op) {
  c.K = std::min(c.K, kernel.limits.max_K), c.V = std::min(c.V, kernel.limits.max_V);
  for (const auto& [axis, size] : {std::pair{"H", &Case::H}, {"K", &Case::K}, {"V", &Case::V}})
    if (!has_axis(op, axis)) c.*size = 1;
  c.M = has_axis(op, "M") ? std::min<int64_t>(32, kernel.limits.max_M) : 0;
  return c;
}

/// Of operators without a state K x V it may be eight times too large: they are cheap.
TEST(Cost, TheEstimateIsWithinAFactorOfFourOfWhatTheMachineCounts) {
  BackendOptions options;
  options.threads = 1;
  const auto backend = make_vm_backend(options);
  for (const Kernel& kernel : kernels())
    for (const char* sizes : {"T200/H1/K64/V64", "T200/H2/K16/V32", "T600/H1/K32/V32", "T200/H1/K128/V96"}) {
      const Operator& op = find_operator(kernel.operator_name);
      const Case c = as_drawn(parse_token(kernel.name + "/B1/" + sizes + "/bf16/mild"), kernel, op);
      const bool has_state = op.outputs.size() > 1 && has_axis(op, "K") && has_axis(op, "V");
      const ResolvedCase resolved = accepted(c, kernel);
      const TensorMap inputs = draw_inputs(resolved);
      const Outcome run = backend->run(program_of(kernel, resolved, inputs), inputs);
      ASSERT_FALSE(run.trap) << token_of(c) << ": " << run.trap->message;
      const auto counted = static_cast<double>(run.lane_instructions);
      EXPECT_GT(estimated_cost(c), counted / 4) << token_of(c);
      EXPECT_LT(estimated_cost(c), counted * (has_state ? 4 : 8)) << token_of(c);
    }
}

TEST(Cost, GrowsWithEverySize) {
  const char* smaller = "gla.chunk/B1/T100/H1/K32/V32";
  for (const char* larger :
       {"gla.chunk/B2/T100/H1/K32/V32", "gla.chunk/B1/T200/H1/K32/V32", "gla.chunk/B1/T100/H2/K32/V32",
        "gla.chunk/B1/T100/H1/K64/V32", "gla.chunk/B1/T100/H1/K32/V64"})
    EXPECT_GT(estimated_cost(parse_token(larger)), estimated_cost(parse_token(smaller))) << larger;
}

}  // namespace cost_test
}  // namespace assay
