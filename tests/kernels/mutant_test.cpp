// Kernels named with a mutant's identity.
#include "kernels/mutant.h"

#include <gtest/gtest.h>

#include "kernels/module_text.h"
#include "kernels/views/gather_plan.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

Case small() {
  Case c;
  c.T = 5, c.V = 8, c.dtype = Dtype::bf16, c.gate_dtype = Dtype::fp32;
  return c;
}

Program plan_of_kernel(const std::string& name) {
  const Kernel& kernel = find_kernel(name);
  Case c = small();
  c.kernel = name;
  const Operator& op = find_operator(kernel.operator_name);
  return kernel.plan(resolve_unchecked(c, op), draw_inputs(c, op));
}

/// The first change of a kind in the forward entry of hgrn.fused_recurrent.
std::string some_mutant(const std::string& change) {
  const Program plan = plan_of_kernel("hgrn.fused_recurrent");
  const ptx::MutableText text(plan.modules.at(0).ptx, plan.modules.at(0).path);
  for (const ptx::Mutation& m : text.mutations(0))
    if (m.change->name == change) return mutant_id(plan.modules.at(0).name, text.name(m));
  return {};
}

TEST(Mutant, AKernelsNameMayCarryOne) {
  const std::string id = some_mutant("fma-to-mul");
  ASSERT_FALSE(id.empty());
  const Program clean = plan_of_kernel("hgrn.fused_recurrent"),
                changed = plan_of_kernel("hgrn.fused_recurrent%" + id);
  EXPECT_EQ(changed.name, "hgrn.fused_recurrent%" + id);
  EXPECT_NE(*changed.modules.at(0).ptx, *clean.modules.at(0).ptx);
  EXPECT_EQ(plan_of_kernel("hgrn.fused_recurrent%" + id).modules.at(0).ptx, changed.modules.at(0).ptx);
}

TEST(Mutant, ItsTokenIsReadBack) {
  Case c = small();
  c.kernel = "hgrn.fused_recurrent%" + some_mutant("fma-to-mul");
  EXPECT_EQ(parse_token(token_of(c)), c);
}

TEST(Mutant, ModulesOfOtherFormatsStayAsTheyAre) {
  std::string id = some_mutant("fma-to-mul");
  id.replace(id.find("bf16"), 4, "fp16");
  EXPECT_TRUE(*plan_of_kernel("hgrn.fused_recurrent%" + id).modules.at(0).ptx ==
              *plan_of_kernel("hgrn.fused_recurrent").modules.at(0).ptx);
}

TEST(Mutant, OfWhichACaseLaunchesNothingIsRefused) {
  const std::string id = some_mutant("fma-to-mul");
  std::string other = id;
  other.replace(other.find("bf16"), 4, "fp16");
  const Program plan = plan_of_kernel("hgrn.fused_recurrent");
  EXPECT_NO_THROW(require_launched("hgrn.fused_recurrent", plan));
  EXPECT_NO_THROW(require_launched("hgrn.fused_recurrent%" + id, plan));
  EXPECT_THROW(require_launched("hgrn.fused_recurrent%" + other, plan), BadInput);
}

TEST(Mutant, CopiesOfViewsAreChangedToo) {
  const Module gather = kernel_module(gather_module);
  const ptx::MutableText text(gather.ptx, gather.path);
  const Kernel& kernel =
      find_kernel("hgrn.fused_recurrent%" + mutant_id(gather.name, text.name(text.mutations(0).front())));
  const Operator& op = find_operator(kernel.operator_name);
  Case c = small();
  c.kernel = kernel.name, c.layout = "padded";
  const Program plan = program_with_views(kernel, resolve(c, op), draw_inputs(c, op));
  EXPECT_EQ(plan.modules.back().name, gather.name);
  EXPECT_NE(*plan.modules.back().ptx, *gather.ptx);
}

TEST(MutantCampaign, EveryKernelHasItsModules) {
  for (const Kernel& kernel : kernels()) {
    Case c = small();
    c.H = 2, c.K = 8;
    const Operator& op = find_operator(kernel.operator_name);
    for (const Module& module : kernel.plan(resolve_unchecked(c, op), draw_inputs(c, op)).modules) {
      const ptx::MutableText text(module.ptx, module.path);
      EXPECT_NO_THROW(
          find_kernel(kernel.name + "%" + mutant_id(module.name, text.name(text.mutations(0).front()))));
    }
  }
}

TEST(Mutant, WhatIsNoneIsBadInput) {
  for (const char* id : {"nonsense", "hgrn+fused_recurrent.bf16.fp32+", "hgrn+fused_recurrent.bf16.fp32+1",
                         "hgrn+fused_recurrent.bf16.fp32+1+", "hgrn+fused_recurrent.bf16.fp32++drop-guard"})
    EXPECT_THROW(find_kernel(std::string("hgrn.fused_recurrent%") + id), BadInput) << id;
  EXPECT_THROW(find_kernel("nothing%gla+chunk.bf16.fp32+1+drop-guard"), BadInput);
  EXPECT_THROW(find_kernel("hgrn.fused_recurrent%gla+chunk.bf16.fp32+1+drop-guard"), BadInput);
  EXPECT_THROW(plan_of_kernel("hgrn.fused_recurrent%hgrn+fused_recurrent.bf16.fp32+1+drop-guard"), BadInput);
}

}  // namespace
}  // namespace assay
