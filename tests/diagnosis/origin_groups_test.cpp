#include "src/verification/diagnosis/origin_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kernels/kernel.h"
#include "src/verification/diagnosis/origin_kind.h"
#include "src/verification/diagnosis/slice.h"
#include "src/verification/diagnosis/source_line.h"
#include "tests/diagnosis/elementwise_kernel.h"

namespace assay {
namespace {

/// Threads 0 to 3 overflow an exponential, 8 and 9 divide by zero, 16 stores nothing, 20 copies a NaN.
const char* const kFourFaults = R"(
  mov.f32 %r, %y;
  setp.eq.u32 %p1, %t, 16; @%p1 ret;
  setp.eq.u32 %p2, %t, 20; @%p2 mov.f32 %r, %x;
  and.b32 %b1, %t, 30; setp.eq.u32 %p3, %b1, 8; mov.f32 %f1, 0f00000000; @%p3 div.rn.f32 %r, %y, %f1;
  setp.lt.u32 %p4, %t, 4; mov.f32 %f2, 0f43480000; @%p4 ex2.approx.f32 %r, %f2;)";

TensorMap inputs_with_nan() {
  TensorMap inputs = elementwise_inputs(1, 1, 1);
  inputs.at("x").set(20, NAN);
  return inputs;
}

TEST(OriginGroups, EveryDistinctOriginIsListedOnceWithItsElements) {
  const AllOrigins all = find_all_origins(elementwise_plan(kFourFaults), inputs_with_nan(), {});
  ASSERT_EQ(all.groups.size(), 4u);
  struct Row {
    const char *kind, *element, *outputs;
    int64_t elements;
  };
  const std::set<std::string> seen = [&] {
    std::set<std::string> found;
    for (const OriginGroup& g : all.groups)
      found.insert(std::string(name_of(g.origin.kind)) + " " + g.origin.element + " " + g.outputs.at(0) +
                   " " + std::to_string(g.elements));
    return found;
  }();
  EXPECT_EQ(seen, (std::set<std::string>{"exp-overflow o[t=0] o 4 4", "division-by-zero o[t=8] o 2 2",
                                         "unwritten-memory o[t=16] o 1 1", "input o[t=20] o 1 1"}));
  EXPECT_EQ(all.groups.front().origin.kind, OriginKind::exp_overflow) << "most elements first";
}

TEST(OriginGroups, TheFirstInTheOrderOfExecutionIsNotTheFirstByIndex) {
  // The division stands before the exponential.
  const AllOrigins all = find_all_origins(elementwise_plan(kFourFaults), inputs_with_nan(), {}, false);
  ASSERT_TRUE(all.first);
  EXPECT_EQ(all.first->second, 8);
  EXPECT_TRUE(all.groups.empty());
}

TEST(OriginGroups, ARunWithoutNonFiniteElementsHasNone) {
  const AllOrigins all =
      find_all_origins(elementwise_plan("add.rn.f32 %r, %x, %y;"), elementwise_inputs(1, 1, 1), {});
  EXPECT_TRUE(all.groups.empty());
  EXPECT_FALSE(all.first);
}

/// One pass over all events against one walk per element, on a kernel full of NaN.
TEST(OriginGroups, EveryElementHasTheOriginThatAWalkOfItsOwnFinds) {
  Case c;
  c.kernel = "gla.chunk", c.T = 40, c.K = 16, c.V = 8, c.dtype = Dtype::fp32;
  const Kernel& kernel = find_kernel(c.kernel);
  const Operator& op = find_operator(kernel.operator_name);
  TensorMap inputs = draw_inputs(c, op);
  inputs.at("k").set(5 * 16 + 3, NAN);
  inputs.at("v").set(20 * 8 + 1, INFINITY);
  for (int64_t column = 0; column < 4; ++column) {
    inputs.at("k").set(10 * 16 + column, 3e38);
    inputs.at("v").set(10 * 8 + column, 3e38);
  }
  const Program plan = kernel.plan(resolve_unchecked(c, op), inputs);
  const AllOrigins all = find_all_origins(plan, inputs, {});
  int64_t grouped = 0, nonfinite = 0;
  vm::Recording recording;
  const Outcome outcome = vm::run_recorded(plan, inputs, {}, &recording);
  std::set<std::string> walked, listed;
  for (const ProgramOutput& output : plan.outputs)
    for (int64_t i = 0; i < outcome.outputs.at(output.name).size(); ++i) {
      if (std::isfinite(outcome.outputs.at(output.name).value(i))) continue;
      ++nonfinite;
      const int32_t event = recording.carrier_event(output.name, i);
      ASSERT_GE(event, 0);
      const vm::Event origin = recording.event_without_inputs(walk_back(recording, event).origin);
      const ptx::Function& function = recording.modules[origin.module]->functions[origin.function];
      walked.insert(
          std::string(name_of(origin_kind(function.body[origin.instruction].form, origin))) +
          std::to_string(
              location_of(*recording.modules[origin.module], origin.function, origin.instruction).line));
    }
  for (const OriginGroup& g : all.groups) {
    grouped += g.elements;
    listed.insert(std::string(name_of(g.origin.kind)) + std::to_string(g.origin.where.line));
  }
  EXPECT_EQ(grouped, nonfinite);
  EXPECT_GT(listed.size(), 2u);
  EXPECT_EQ(listed, walked);
}

}  // namespace
}  // namespace assay
