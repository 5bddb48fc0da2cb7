// Single mutants whose fate is known.
#include "src/campaign/mutate/trial_of_mutant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "src/base/vm/launch.h"
#include "src/campaign/mutate/same_effect.h"
#include "src/campaign/mutate/terms.h"
#include "tests/mutate/subject.h"

namespace assay {
namespace {

class TrialOfMutant : public ::testing::Test {
 protected:
  TrialOfMutant() : source_(subject().name) {
    for (const char* values : {"exact", "normal"})
      cases_.push_back(make_clean_case(small_case(values), subject(), one_thread(), 4'000'000));
    const Module& module = cases_[0].plan.modules[0];
    module_ = {module.name, module.path, module.ptx,
               std::make_unique<ptx::MutableText>(module.ptx, module.path)};
    function_ = cases_[0].reach.executed.begin()->first.second;
  }

  /// Some twenty rounds of other values: what shows in none is rounded away.
  static constexpr uint64_t kWork = 20'000'000;
  MutantResult result(const ptx::Mutation& mutation, uint64_t work = kWork) {
    return *try_mutant(
        {subject(), cases_, module_, mutation, one_thread(), order_, nullptr, nullptr, nullptr, work},
        source_);
  }
  /// Outcomes of the executed instructions of one opcode, changed in one way.
  std::vector<Mutant> outcomes(const std::string& opcode, const std::string& change) {
    std::vector<Mutant> all;
    for (const ptx::Mutation& m : module_.program->mutations(function_)) {
      const auto& in = module_.program->module()
                           .functions[static_cast<size_t>(function_)]
                           .body[static_cast<size_t>(m.instruction)];
      if (m.change->name != change || !in.opcode.starts_with(opcode)) continue;
      if (cases_[0].reach.has(module_.name, function_, m.instruction)) all.push_back(result(m).mutant);
    }
    return all;
  }

  std::vector<CleanCase> cases_;
  MutatedModule module_;
  std::vector<size_t> order_{0, 1};
  int32_t function_ = -1;
  SourceText source_;
};

TEST_F(TrialOfMutant, WhatIsVisibleIsKilledByTheExactCase) {
  for (const auto& [opcode, change] :
       {std::pair{"st.global", "drop-store"}, {"st.global", "shift-address"}}) {
    const std::vector<Mutant> all = outcomes(opcode, change);
    ASSERT_FALSE(all.empty()) << change;
    for (const Mutant& m : all) {
      EXPECT_EQ(m.outcome, MutantOutcome::killed) << m.id;
      EXPECT_EQ(m.token, cases_[0].token) << m.id;
      EXPECT_FALSE(m.reason.empty());
    }
  }
}

TEST_F(TrialOfMutant, AnEndlessLoopIsKilledAsAHang) {
  const std::vector<Mutant> loops = outcomes("bra", "drop-guard");
  ASSERT_FALSE(loops.empty());
  EXPECT_TRUE(
      std::any_of(loops.begin(), loops.end(), [](const Mutant& m) { return m.reason.starts_with("trap/"); }));
}

TEST_F(TrialOfMutant, ARoundingChangedIsNeverAViolation) {
  const std::vector<Mutant> all = outcomes("fma.rn.f32", "change-rounding");
  ASSERT_FALSE(all.empty());
  // Where one of two ways to the same value rounds otherwise, a property that compares them may see it.
  for (const Mutant& m : all)
    EXPECT_TRUE(m.outcome != MutantOutcome::killed || m.reason.starts_with("property/"))
        << m.id << " " << m.reason;
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Mutant& m) {
    return m.outcome == MutantOutcome::within_bound && !m.token.empty();
  }));
  // What no output shows is within bound all the same, and says so.
  EXPECT_TRUE(std::none_of(all.begin(), all.end(), [](const Mutant& m) {
    return m.outcome == MutantOutcome::survived && m.reason.starts_with("its result differs, no output does");
  }));
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Mutant& m) {
    return m.outcome == MutantOutcome::within_bound && m.reason.find("rounds away") != std::string::npos;
  }));
}

TEST_F(TrialOfMutant, OnlyARoundingChangedMayBeRoundedAway) {
  for (const Mutant& m : outcomes("mul.rn.f32", "zero-result"))
    EXPECT_NE(m.outcome, MutantOutcome::within_bound) << m.id;
  for (const Mutant& m : outcomes("fma.rn.f32", "fma-to-add"))
    EXPECT_EQ(m.reason.find("rounds away"), std::string::npos) << m.id;
}

TEST_F(TrialOfMutant, WhatNoCaseReachesIsSearchedFor) {
  int searched = 0;
  for (const ptx::Mutation& m : module_.program->mutations(function_)) {
    if (cases_[0].reach.has(module_.name, function_, m.instruction) || m.change->name != "add-to-sub")
      continue;
    const Mutant mutant = result(m, 0).mutant;
    EXPECT_EQ(mutant.reached_by, 0);
    if (mutant.outcome == MutantOutcome::equivalent) continue;
    EXPECT_EQ(mutant.outcome, MutantOutcome::survived) << "no work is left for a search";
    EXPECT_TRUE(mutant.reason.starts_with("no case comes to this instruction: never this way at kernels/"))
        << mutant.reason;
    const Mutant found = result(m).mutant;
    EXPECT_EQ(found.outcome, MutantOutcome::killed) << found.reason;
    EXPECT_NE(found.token.find("/s"), found.token.npos) << found.token;
    EXPECT_EQ(found.reached_by, 0) << "of the cases that all mutants are tried on";
    if (++searched == 3) return;
  }
  EXPECT_GT(searched, 0);
}

TEST_F(TrialOfMutant, WhatTheMachineRefusesIsNotBorn) {
  for (const ptx::Mutation& m : module_.program->mutations(function_)) {
    bool decodes = true;
    try {
      const auto text = std::make_shared<const std::string>(module_.program->with(m));
      vm::decoded({module_.name, module_.path, text},
                  module_.program->module().functions[static_cast<size_t>(function_)].name);
    } catch (const std::exception&) {
      decodes = false;
    }
    if (decodes) continue;
    EXPECT_FALSE(result(m).born);
    return;
  }
}

TEST_F(TrialOfMutant, IsGivenUpBeforeTheNextRun) {
  const auto all = module_.program->mutations(function_);
  const auto rounding = std::find_if(
      all.begin(), all.end(), [](const ptx::Mutation& m) { return m.change->name == "change-rounding"; });
  ASSERT_NE(rounding, all.end());
  int asked = 0;
  const auto tried = [&](int runs) {
    asked = 0;
    return try_mutant({subject(), cases_, module_, *rounding, one_thread(), order_, nullptr, nullptr,
                       [&asked, runs] { return ++asked > runs; }},
                      source_);
  };
  EXPECT_FALSE(tried(0));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(tried(2));
  EXPECT_EQ(asked, 3) << "the two cases have shown nothing: it is asked again before the checks";
  EXPECT_TRUE(tried(1'000'000));
}

/// A barrier that lanes need only where there are more than 32 value channels: eleven cheaper cases run it,
/// the checks see it in the one that shows more of the function.
TEST(TrialUnderChecks, ComesToTheCaseThatShowsMost) {
  const Kernel& kernel = find_kernel("gsa.chunk");
  std::vector<CleanCase> cases;
  std::vector<size_t> cheap, all;
  for (const int64_t T : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 66}) {
    Case c;
    c.kernel = kernel.name, c.dtype = Dtype::bf16, c.gate_dtype = Dtype::fp16, c.decay = "logsigmoid";
    c.T = T, c.K = 8, c.V = T == 66 ? 64 : 8, c.M = 16;
    if (T < 66) cheap.push_back(cases.size());
    all.push_back(cases.size());
    cases.push_back(make_clean_case({c, all.back()}, kernel, one_thread(), 0));
  }
  const Module& module = cases[0].plan.modules[0];
  const MutatedModule mutated{module.name, module.path, module.ptx,
                              std::make_unique<ptx::MutableText>(module.ptx, module.path)};
  const SourceText source(kernel.name);
  const auto tried = [&](const ptx::Mutation& m, const std::vector<size_t>& order) {
    return try_mutant({kernel, cases, mutated, m, one_thread(), order, nullptr, nullptr, nullptr, 0}, source)
        ->mutant;
  };
  int seen = 0;
  for (const auto& [where, flags] : cases[0].reach.executed) {
    for (const ptx::Mutation& m : mutated.program->mutations(where.second)) {
      if (m.change->name != "drop-barrier" || !cases[0].reach.has(module.name, m.function, m.instruction))
        continue;
      if (!mutated.program->original(m).starts_with("bar.warp") ||
          tried(m, cheap).outcome == MutantOutcome::killed)
        continue;
      const Mutant mutant = tried(m, all);
      seen += mutant.outcome == MutantOutcome::killed && mutant.reason.starts_with("check/warp-race");
    }
  }
  EXPECT_GT(seen, 0);
}

/// Mutants of gla.fused_recurrent on one case of some tokens.
struct OneCase {
  explicit OneCase(Direction direction = Direction::forward) : cases(cases_of(kernel, direction)) {}

  static std::vector<CleanCase> cases_of(const Kernel& kernel, Direction direction) {
    Case c;
    c.kernel = kernel.name, c.dtype = Dtype::bf16, c.gate_dtype = Dtype::fp16, c.decay = "logsigmoid";
    c.direction = direction;
    c.T = 18, c.K = 8, c.V = 8;
    std::vector<CleanCase> cases;
    cases.push_back(make_clean_case({c, 0}, kernel, one_thread(), 0));
    return cases;
  }
  bool comes_to(const ptx::Mutation& m) const {
    return cases[0].reach.has(module.name, m.function, m.instruction);
  }
  const ptx::Instruction& instruction(const ptx::Mutation& m) const {
    return module.program->module()
        .functions[static_cast<size_t>(m.function)]
        .body[static_cast<size_t>(m.instruction)];
  }
  Mutant tried(const ptx::Mutation& m, uint64_t work = 0) const {
    return try_mutant({kernel, cases, module, m, one_thread(), order, nullptr, nullptr, nullptr, work},
                      source)
        ->mutant;
  }

  const Kernel& kernel = find_kernel("gla.fused_recurrent");
  const std::vector<CleanCase> cases;
  const Module& text = cases[0].plan.modules[0];
  const MutatedModule module{text.name, text.path, text.ptx,
                             std::make_unique<ptx::MutableText>(text.ptx, text.path)};
  const SourceText source{kernel.name};
  const int32_t function = cases[0].reach.executed.begin()->first.second;
  const std::vector<size_t> order{0};
};

/// An address that lacks where shared memory begins is right only where that is 0.
TEST(TrialOfAnAddress, IsRightWhereverSharedMemoryBegins) {
  const OneCase one(Direction::backward);
  int seen = 0;
  for (const ptx::Mutation& m : one.module.program->mutations(one.function)) {
    const ptx::Instruction& in = one.instruction(m);
    if (m.change->name != "zero-result" || in.form.operation != ptx::Operation::mov ||
        in.operands[1].kind != ptx::Operand::Kind::symbol || !one.comes_to(m))
      continue;
    const Mutant mutant = one.tried(m);
    seen += mutant.outcome == MutantOutcome::killed &&
            mutant.reason.ends_with(", where shared memory begins at 1024");
    if (seen > 0) break;
  }
  EXPECT_GT(seen, 0);
}

/// The sixth term of a series, which the outputs' format rounds away.
TEST(TrialOfAFormula, ShowsOnRealNumbersWhatIsWithinTheBound) {
  const OneCase one;
  int seen = 0;
  for (const ptx::Mutation& m : one.module.program->mutations(one.function)) {
    const std::string line =
        one.source.line(place_of(one.module.program->module(), m.function, m.instruction));
    if (m.change->name != "fma-to-add" || line.find("ln2^6") == line.npos || !one.comes_to(m)) continue;
    const Mutant mutant = one.tried(m);
    seen += mutant.outcome == MutantOutcome::killed && mutant.reason == "formula/o";
    if (seen > 0) break;
  }
  EXPECT_GT(seen, 0);
}

/// A token that is not there: -1 in place of the -0 meets its query, which is a zero; its scale gives +0.
TEST(TrialOfOtherSteps, IsEquivalentOnlyWhereTermsAgree) {
  const OneCase one(Direction::backward);
  std::map<std::string, std::vector<std::string>> found;
  const ptx::Module& program = one.module.program->module();
  for (const auto& [where, flags] : one.cases[0].reach.executed)
    for (const ptx::Mutation& m : one.module.program->mutations(where.second)) {
      const SourceLocation at = place_of(program, m.function, m.instruction);
      std::vector<std::string>& reasons = found[std::string(m.change->name)];
      if (one.source.line(at).find("step < live ? scale : -0.0f") == std::string::npos || !one.comes_to(m) ||
          !(m.change->name == "change-literal" || m.change->name == "compare-edge") || !reasons.empty())
        continue;
      const MutantTrial trial{one.kernel, one.cases, one.module, m,       one_thread(),
                              one.order,  nullptr,   nullptr,    nullptr, 250'000'000};
      reasons.push_back(only_other_steps(
          {trial, std::make_shared<const std::string>(one.module.program->with(m)), at.ptx_line}, {0}));
    }
  ASSERT_EQ(found["change-literal"].size(), 1u);
  ASSERT_EQ(found["compare-edge"].size(), 1u);
  EXPECT_NE(found["change-literal"][0].find("the same terms of the inputs"), std::string::npos);
  EXPECT_EQ(found["compare-edge"][0], "");
}

/// What chunks behind the fourth decay by is made ahead of their time, of no gates yet where there are none.
TEST(TrialOfOtherSteps, AreTriedInLongSequencesToo) {
  const Kernel& kernel = find_kernel("simple_gla.chunk");
  std::vector<CleanCase> cases;
  for (const int64_t T : {250, 330}) {
    Case c;
    c.kernel = kernel.name, c.dtype = Dtype::bf16, c.gate_dtype = Dtype::fp16, c.decay = "mild:0.01";
    c.direction = Direction::backward;
    c.T = T, c.K = 8, c.V = 8;
    cases.push_back(make_clean_case({c, cases.size()}, kernel, one_thread(), 0));
  }
  const Module& module = cases[0].plan.modules[0];
  const MutatedModule mutated{module.name, module.path, module.ptx,
                              std::make_unique<ptx::MutableText>(module.ptx, module.path)};
  const SourceText source(kernel.name);
  const ptx::Module& program = mutated.program->module();
  int tried = 0;
  for (const auto& [where, flags] : cases[0].reach.executed)
    for (const ptx::Mutation& m : mutated.program->mutations(where.second)) {
      if (m.change->name != "fma-to-mul" || !cases[0].reach.has(module.name, m.function, m.instruction) ||
          source.line(place_of(program, m.function, m.instruction)).find("ln2^3") == std::string::npos)
        continue;
      const std::vector<size_t> order;
      const MutantTrial trial{kernel, cases,   mutated, m,       one_thread(),
                              order,  nullptr, nullptr, nullptr, 300'000'000};
      const MutantRuns runs{trial, std::make_shared<const std::string>(mutated.program->with(m)),
                            place_of(program, m.function, m.instruction).ptx_line};
      const auto same = [&](size_t at) {
        return same_terms(cases[at].plan, runs.changed(cases[at]), cases[at].inputs, one_thread());
      };
      if (tried == 1 || !same(0) || same(1)) continue;
      EXPECT_EQ(only_other_steps(runs, {0, 1}), "") << mutated.program->name(m);
      ++tried;
    }
  EXPECT_EQ(tried, 1);
}

TEST(TrialOfAnotherWay, IsEquivalentOnlyWhereMemoryAgrees) {
  const Kernel& kernel = find_kernel("merge_heads.fused");
  const std::pair<int64_t, int64_t> sizes[] = {{8, 8}, {16, 12}, {24, 4}, {12, 20}, {20, 16}, {5, 7}, {9, 3}};
  std::vector<CleanCase> cases;
  std::vector<size_t> order;
  for (const auto& [outer, inner] : sizes) {
    Case c;
    c.kernel = kernel.name, c.T = 3, c.K = outer, c.V = inner, c.dtype = Dtype::fp32;
    order.push_back(cases.size());
    cases.push_back(make_clean_case({c, order.back()}, kernel, one_thread(), 0));
  }
  const Module& module = cases[0].plan.modules[0];
  const MutatedModule mutated{module.name, module.path, module.ptx,
                              std::make_unique<ptx::MutableText>(module.ptx, module.path)};
  const SourceText source(kernel.name);
  int same = 0, seen = 0;
  const ptx::Module& program = mutated.program->module();
  for (const ptx::Mutation& m : mutated.program->mutations(cases[0].reach.executed.begin()->first.second)) {
    const std::string line = source.line(place_of(program, m.function, m.instruction));
    if (m.change->name != "fix-predicate" || line.find("bool vector = ") == line.npos) continue;
    if (same > 0 && seen > 0) break;
    const Mutant mutant = try_mutant({kernel, cases, mutated, m, one_thread(), order}, source)->mutant;
    same += mutant.outcome == MutantOutcome::equivalent &&
            mutant.reason.find("sizes alone decide") != std::string::npos;
    seen += mutant.outcome == MutantOutcome::killed;
  }
  EXPECT_GT(same, 0) << "elements one by one";
  EXPECT_GT(seen, 0) << "four elements at once, of rows that are not aligned";
}

}  // namespace
}  // namespace assay
