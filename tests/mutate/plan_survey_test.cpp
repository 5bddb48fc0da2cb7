// What all plans of a kernel pass.
#include "src/campaign/mutate/plan_survey.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "kernels/claim.h"
#include "kernels/kernel.h"
#include "src/campaign/mutate/case_set.h"

namespace assay {
namespace {

/// The launch of a backward pass of K key channels in the first formats whose entry's name begins so.
Launch launch_of(const Kernel& kernel, const std::string& entry, int64_t K) {
  Case c;
  c.kernel = kernel.name, c.direction = Direction::backward, c.T = 3, c.K = K, c.V = 8, c.decay = "none";
  std::tie(c.dtype, c.gate_dtype) = format_pairs(kernel).front();
  const ResolvedCase resolved = resolve(c, find_operator(kernel.operator_name));
  for (const Launch& launch : program_of(kernel, resolved, draw_inputs(resolved)).launches)
    if (launch.function.starts_with(entry)) return launch;
  ADD_FAILURE() << "no launch " << entry;
  return {};
}

int32_t position_of(const Launch& launch, const Argument& argument) {
  const auto found = std::find(launch.arguments.begin(), launch.arguments.end(), argument);
  return static_cast<int32_t>(found - launch.arguments.begin());
}

/// Parameters of a launch that are null in all plans; its first never is.
size_t nulls_of(const Kernel& kernel, const PlanSurvey& survey) {
  const Launch launch = launch_of(kernel, "delta_chunk_gradients", 16);
  const ParameterRoles roles = roles_of({}, kernel.limits, launch.module, launch.function, &survey);
  EXPECT_TRUE(roles.places.contains(0)) << "q is always there";
  return roles.nulls.size();
}

TEST(PlanSurvey, KnowsWhichWidthsLaunchAnEntryAndWhatIsNeverPassed) {
  const Kernel& kernel = find_kernel("delta_rule.chunk");
  const PlanSurvey survey(kernel, {Direction::backward}, 2);
  EXPECT_GT(survey.plans(), 5'000);
  EXPECT_TRUE(survey.has_every_width());
  const struct { int64_t K, least, most; } rows[] = {{9, 1, 64}, {100, 65, 128}, {200, 129, 256}};
  for (const auto& row : rows) {
    const Launch launch = launch_of(kernel, "delta_chunk_scans_", row.K);
    const int32_t at = position_of(launch, Argument(static_cast<int32_t>(row.K)));
    const ParameterRoles roles = roles_of({}, kernel.limits, launch.module, launch.function, &survey);
    ASSERT_TRUE(roles.least.contains(at)) << row.K;
    EXPECT_EQ(roles.least.at(at), row.least);
    EXPECT_EQ(roles.most.at(at), row.most);
    EXPECT_TRUE(roles_of({}, kernel.limits, launch.module, launch.function).numbers.empty());
  }
  EXPECT_EQ(survey.arguments("delta/chunk_scan.bf16", "delta_chunk_scan_64"), nullptr) << "forward alone";
  EXPECT_EQ(nulls_of(kernel, survey), 4u) << "gates, their gradient, and two parts of value heads";
}

TEST(PlanSurvey, KnowsThatAnythingMayBePassed) {
  // Keys of gated_delta_rule may be shared by value heads; those of delta_rule never are.
  const Kernel& kernel = find_kernel("gated_delta_rule.chunk");
  EXPECT_EQ(nulls_of(kernel, PlanSurvey(kernel, {Direction::backward}, 2)), 0u);
}

TEST(PlanSurvey, MeetsInputsThatOnlyTogetherMayBeAbsent) {
  // Without a gate and with rates of value channels: leaving out one input alone, or all, does not give it.
  const Kernel& kernel = find_kernel("gated_delta_rule.fused_recurrent");
  const PlanSurvey survey(kernel, {Direction::forward}, 2);
  Case c;
  c.kernel = kernel.name, c.T = 3, c.K = 16, c.V = 16, c.decay = "none", c.without = {"beta", "g"};
  std::tie(c.dtype, c.gate_dtype) = format_pairs(kernel).front();
  const ResolvedCase resolved = resolve(c, find_operator(kernel.operator_name));
  const Program program = program_of(kernel, resolved, draw_inputs(resolved));
  for (const Launch& launch : program.launches) {
    const ParameterRoles roles = roles_of({}, kernel.limits, launch.module, launch.function, &survey);
    for (size_t i = 0; i < launch.arguments.size(); ++i)
      EXPECT_FALSE(!launch.arguments[i].relocations.empty() && roles.nulls.contains(static_cast<int32_t>(i)))
          << launch.function << " " << i;
  }
}

TEST(PlanSurvey, MeetsLaunchesOfManyBlocks) {
  const Kernel& kernel = find_kernel("gla.chunk");
  const PlanSurvey survey(kernel, {Direction::forward}, 2);
  Case c;
  c.kernel = kernel.name, c.T = 20, c.H = 132, c.K = 16, c.V = 64, c.decay = "none";
  std::tie(c.dtype, c.gate_dtype) = format_pairs(kernel).front();
  const ResolvedCase resolved = resolve(c, find_operator(kernel.operator_name));
  for (const Launch& launch : program_of(kernel, resolved, draw_inputs(resolved)).launches) {
    const ParameterRoles roles = roles_of({}, kernel.limits, launch.module, launch.function, &survey);
    const int32_t at = position_of(launch, Argument(int32_t{64}));
    if (roles.most.contains(at)) {
      EXPECT_EQ(roles.most.at(at), launch.function == "gla_chunk_output_64" ? 64 : 256) << launch.function;
    }
  }
}

TEST(PlanSurvey, OfManyWidthsSaysNothingOfThem) {
  const PlanSurvey survey(find_kernel("hgrn.fused_recurrent"), {Direction::forward}, 2);
  EXPECT_GT(survey.plans(), 10);
  EXPECT_FALSE(survey.has_every_width());
}

TEST(PlanSurvey, KnowsWhichSlotsLaunchAnEntry) {
  const Kernel& kernel = find_kernel("gsa.chunk");
  const PlanSurvey survey(kernel, {Direction::forward}, 2);
  EXPECT_TRUE(survey.has_every_width());
  Case c;
  c.kernel = kernel.name, c.T = 3, c.K = 16, c.V = 24, c.M = 80, c.decay = "none";
  std::tie(c.dtype, c.gate_dtype) = format_pairs(kernel).front();
  const ResolvedCase resolved = resolve(c, find_operator(kernel.operator_name));
  const struct {
    const char* entry;
    int64_t least;
  } rows[] = {{"gsa_softmax", 65}, {"gsa_chunk_readout", 1}};
  for (const auto& row : rows) {
    int met = 0;
    for (const Launch& launch : program_of(kernel, resolved, draw_inputs(resolved)).launches) {
      if (launch.function != row.entry) continue;
      const ParameterRoles roles = roles_of({}, kernel.limits, launch.module, launch.function, &survey);
      const int32_t at = position_of(launch, Argument(int32_t{80}));
      ASSERT_TRUE(roles.least.contains(at)) << row.entry;
      EXPECT_EQ(roles.least.at(at), row.least) << row.entry << ": 64 slots or fewer are one block's";
      EXPECT_EQ(roles.most.at(at), 128) << row.entry;
      ++met;
    }
    EXPECT_EQ(met, 1) << row.entry;
  }
}

}  // namespace
}  // namespace assay
