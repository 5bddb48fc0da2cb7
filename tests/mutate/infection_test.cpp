// Results of a changed instruction against those of the original.
#include "src/campaign/mutate/infection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/mutate/subject.h"

namespace assay {
namespace {

TEST(Infection, SeesWhetherTheInstructionsResultChanges) {
  const CleanCase clean = make_clean_case(small_case(), subject(), one_thread(), 0);
  const Module& module = clean.plan.modules[0];
  const ptx::MutableText text(module.ptx, module.path);
  const int32_t function = clean.reach.executed.begin()->first.second;
  bool differs = false, rounded = false, stores = false;
  for (const ptx::Mutation& m : text.mutations(function)) {
    const std::string& opcode = text.module()
                                    .functions[static_cast<size_t>(function)]
                                    .body[static_cast<size_t>(m.instruction)]
                                    .opcode;
    if (!clean.reach.has(module.name, function, m.instruction)) continue;
    Program changed = clean.plan;
    changed.modules[0].ptx = std::make_shared<const std::string>(text.with(m));
    if (opcode.starts_with("fma.rn.f32") && m.change->name == "zero-result" && !differs) {
      EXPECT_EQ(result_changes(clean.plan, clean.plan, clean.inputs, one_thread(), module.name, m), false);
      differs = result_changes(clean.plan, changed, clean.inputs, one_thread(), module.name, m) == true;
    }
    if (opcode.starts_with("fma.rn.f32") && m.change->name == "round-to-bf16" && !rounded)
      rounded = result_changes(clean.plan, changed, clean.inputs, one_thread(), module.name, m) == true;
    if (opcode.starts_with("st.global") && m.change->name == "drop-store" && !stores)
      stores = !result_changes(clean.plan, changed, clean.inputs, one_thread(), module.name, m).has_value();
  }
  EXPECT_TRUE(differs);
  EXPECT_TRUE(rounded) << "what is rounded after the instruction is its result";
  EXPECT_TRUE(stores) << "a store leaves nothing in registers";
}

/// Of a module that is launched by several entries, each read alone: the same text gives the same results.
TEST(Infection, SeesTheInstructionWhicheverEntryComesLast) {
  Case c;
  c.kernel = "gsa.chunk", c.dtype = Dtype::bf16, c.gate_dtype = Dtype::fp16, c.decay = "logsigmoid";
  c.T = 3, c.K = 8, c.V = 8, c.M = 80;
  const CleanCase clean = make_clean_case({c, 0}, find_kernel(c.kernel), one_thread(), 0);
  std::map<std::string, int> entries;
  for (const auto& [where, flags] : clean.reach.executed) {
    ++entries[where.first];
    const auto module = std::find_if(clean.plan.modules.begin(), clean.plan.modules.end(),
                                     [&](const Module& each) { return each.name == where.first; });
    const ptx::MutableText text(module->ptx, module->path);
    int seen = 0;
    for (const ptx::Mutation& m : text.mutations(where.second)) {
      if (m.change->name != "zero-result" || !clean.reach.has(where.first, where.second, m.instruction))
        continue;
      EXPECT_EQ(result_changes(clean.plan, clean.plan, clean.inputs, one_thread(), where.first, m), false)
          << text.name(m);
      if (++seen == 3) break;
    }
    EXPECT_GT(seen, 0) << where.first << " " << where.second;
  }
  EXPECT_GT(entries.begin()->second, 2) << "states, the readout, a softmax, outputs";
}

TEST(Infection, SeesWhetherTheRunGoesAnotherWay) {
  const CleanCase clean = make_clean_case(small_case(), subject(), one_thread(), 0);
  const Module& module = clean.plan.modules[0];
  const ptx::MutableText text(module.ptx, module.path);
  const int32_t function = clean.reach.executed.begin()->first.second;
  int other = 0, same = 0;
  for (const ptx::Mutation& m : text.mutations(function)) {
    const ptx::Instruction& in =
        text.module().functions[static_cast<size_t>(function)].body[static_cast<size_t>(m.instruction)];
    const bool is_value = in.opcode.starts_with("fma.rn.f32") && m.change->name == "zero-result";
    const bool is_branch = in.opcode == "bra" && m.change->name == "invert-guard";
    if (!(is_value && same < 3) && !(is_branch && other < 5)) continue;
    if (!clean.reach.has(module.name, function, m.instruction)) continue;
    Program changed = clean.plan;
    changed.modules[0].ptx = std::make_shared<const std::string>(text.with(m));
    vm::MachineOptions options = one_thread();
    options.instruction_budget = 100'000;
    const bool changes = path_changes(clean.plan, changed, clean.inputs, options, module.name, in.ptx_line);
    EXPECT_EQ(changes, is_branch) << in.ptx_line;
    ++(is_branch ? other : same);
  }
  EXPECT_GT(same, 0);
  EXPECT_GT(other, 0);
}

}  // namespace
}  // namespace assay
