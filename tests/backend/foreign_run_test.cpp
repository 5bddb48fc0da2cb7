// The example of a stranger's kernel, run on the machine and held against the reference.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/foreign.h"
#include "src/base/backend/backend.h"

namespace assay {
namespace foreign_run_test {

const std::string kPtx = ASSAY_SOURCE_DIR "/tests/data/gla_naive.ptx";
const std::string kPlan = ASSAY_SOURCE_DIR "/examples/strangers_gla/plan.json";
const std::string kGradientsPtx = ASSAY_SOURCE_DIR "/tests/data/gla_naive_backward.ptx";
const std::string kGradientsPlan = ASSAY_SOURCE_DIR "/examples/strangers_gla/plan_with_gradients.json";

/// Elements outside enclosure and bound, over all outputs; -1 after a trap.
int64_t elements_outside(const Kernel& kernel, const Case& c) {
  const Operator& op = find_operator(kernel.operator_name);
  const ResolvedCase resolved = resolve(c, op);
  const TensorMap inputs = draw_inputs(resolved);
  const Outcome outcome = make_vm_backend({})->run(kernel.plan(resolved, inputs), inputs);
  if (outcome.trap) {
    ADD_FAILURE() << outcome.trap->message;
    return -1;
  }
  Problem problem{.sizes = sizes_of(c), .cu_seqlens = c.cu_seqlens, .inputs = &inputs};
  if (c.direction == Direction::backward)
    problem.adjoint = kernel.adjoint_arithmetic(resolved);
  else
    problem.arithmetic = kernel.arithmetic(resolved);
  problem.scale = c.scale.value_or(op.default_scale(problem.sizes));
  const auto evaluate = c.direction == Direction::backward ? op.evaluate_adjoint : op.evaluate;
  int64_t outside = 0;
  for (const ReferenceOutput& reference : evaluate(problem).outputs) {
    const Tensor& got = outcome.outputs.at(reference.name);
    EXPECT_EQ(got.size(), static_cast<int64_t>(reference.mid.size())) << reference.name;
    for (int64_t i = 0; i < got.size(); ++i) {
      const auto at = static_cast<size_t>(i);
      // Written so that NaN counts.
      outside += !(std::fabs(got.value(i) - reference.mid[at]) <= reference.bound[at] + reference.rad[at]);
    }
  }
  return outside;
}

TEST(ForeignRun, ExampleStaysWithinItsDeclaredArithmetic) {
  const Kernel kernel = load_foreign_kernel(kPtx, kPlan);
  for (const char* token : {"gla_naive/B2/T50/H2/K60/V70/bf16/g-fp32/logsigmoid/s1",
                            "gla_naive/B1/T70/H1/K128/V16/fp16/g-fp32/strong/s2",
                            "gla_naive/B1/T33/H2/K7/V65/fp32/g-fp32/ladder/s3",
                            "gla_naive/B1/T40/H1/K16/V16/fp32/g-fp32/extreme/s4"})
    EXPECT_EQ(elements_outside(kernel, parse_token(token)), 0) << token;
}

TEST(ForeignRun, ExampleTakesPackedSequencesStatesAndAbsentGates) {
  const Kernel kernel = load_foreign_kernel(kPtx, kPlan);
  Case c = parse_token("gla_naive/B1/T60/H2/K20/V24/fp32/g-fp32/logsigmoid/s5");
  c.initial_state = true;
  EXPECT_EQ(elements_outside(kernel, c), 0);
  c.cu_seqlens = {0, 7, 7, 60};
  EXPECT_EQ(elements_outside(kernel, c), 0);
  c.without = {"g"};
  EXPECT_EQ(elements_outside(kernel, c), 0);
}

TEST(ForeignRun, GradientsStayWithinTheirDeclaredArithmetic) {
  const Kernel kernel = load_foreign_kernel(kGradientsPtx, kGradientsPlan);
  for (const char* token : {"gla_naive_gradients/B2/T20/H2/K30/V40/bf16/g-fp32/logsigmoid/s1/backward",
                            "gla_naive_gradients/B1/T33/H2/K7/V65/fp32/g-fp32/ladder/s3/backward"})
    EXPECT_EQ(elements_outside(kernel, parse_token(token)), 0) << token;
  Case c = parse_token("gla_naive_gradients/B1/T60/H2/K20/V24/fp32/g-fp32/logsigmoid/s5/backward");
  c.initial_state = c.final_state_gradient = true;
  EXPECT_EQ(elements_outside(kernel, c), 0);
  c.cu_seqlens = {0, 7, 7, 60};
  EXPECT_EQ(elements_outside(kernel, c), 0);
  c.without = {"g"};
  EXPECT_EQ(elements_outside(kernel, c), 0);
}

Kernel load(const nlohmann::json& plan, const std::string& ptx) {
  const auto path =
      std::filesystem::temp_directory_path() / ("assay_foreign_run_" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << plan.dump();
  Kernel kernel = load_foreign_kernel(ptx, path);
  std::filesystem::remove(path);
  return kernel;
}

TEST(ForeignRun, StateThatIsNotZeroedIsOutside) {
  nlohmann::json plan = nlohmann::json::parse(std::ifstream(kGradientsPlan));
  plan["backward_launches"].erase(2);  // of the columns; poison and what the rows left are there
  const Kernel kernel = load(plan, kGradientsPtx);
  EXPECT_GT(elements_outside(kernel, parse_token("gla_naive_gradients/B1/T33/H2/K7/V65/fp32/g-fp32/none/s3/"
                                                 "backward")),
            33 * 2 * 65 / 2);
}

TEST(ForeignRun, WrongScaleInThePlanIsOutside) {
  nlohmann::json plan = nlohmann::json::parse(std::ifstream(kPlan));
  plan["launches"][0]["arguments"][12]["f32"] = "scale * (1 + 2^-7)";
  const Kernel kernel = load(plan, kPtx);
  EXPECT_GT(elements_outside(kernel, parse_token("gla_naive/B1/T33/H2/K7/V65/fp32/g-fp32/ladder/s3")),
            33 * 2 * 65 / 2);
}

}  // namespace foreign_run_test
}  // namespace assay
