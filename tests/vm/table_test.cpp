// The instruction table as a whole: the forms that kernels in the field compile to, and no form twice.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/availability.h"
#include "src/base/vm/instruction_row.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(std::string(ASSAY_SOURCE_DIR) + "/" + path);
  std::vector<std::string> result;
  for (std::string line; std::getline(file, line);) result.push_back(line.substr(0, line.find(' ')));
  return result;
}

TEST(InstructionTable, HasTheFormsOfLinearAttentionKernels) {
  const std::vector<std::string> forms = lines_of("tests/data/ptx_forms.txt");
  ASSERT_GT(forms.size(), 100u);
  for (const std::string& form : forms) {
    EXPECT_NE(find_row(form), nullptr) << form;
  }
}

TEST(InstructionTable, HasTheFormsOfOurKernels) {
  const std::vector<std::string> forms = lines_of("kernels/forms.txt");
  ASSERT_GT(forms.size(), 50u);
  for (const std::string& form : forms)
    if (!form.starts_with("%") && !form.starts_with("#")) {
      EXPECT_NE(find_row(form), nullptr) << form;
    }
}

TEST(InstructionTable, SpellsEachFormOnce) {
  std::set<std::string> seen;
  for (const Row& row : rows())
    for (const std::string& form : forms_of(row))
      EXPECT_TRUE(seen.insert(form).second) << form << " of " << row.pattern;
  EXPECT_GT(rows().size(), 500u);
}

/// tests/data/ptxas_forms.txt: form and least architecture.
TEST(InstructionTable, HasTheFormsThatTheAssemblerTakes) {
  std::ifstream file(std::string(ASSAY_SOURCE_DIR) + "/tests/data/ptxas_forms.txt");
  size_t checked = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::string form = line.substr(0, line.find(' '));
    const int least = std::stoi(line.substr(line.find(' ') + 1));
    EXPECT_EQ(least_architecture(form), least) << form;
    EXPECT_EQ(find_row(form) != nullptr, least != 0 && least <= 90) << form;
    ++checked;
  }
  EXPECT_GT(checked, 1000u);
}

TEST(InstructionTable, IsListedWithAStatusForEachArchitecture) {
  std::set<std::string> listed;
  for (const InstructionRow& row : instruction_rows()) {
    EXPECT_EQ(row.forms.find("call "), std::string::npos) << row.forms;
    for (const std::string& status : row.status)
      EXPECT_TRUE(status == "exact" || status == "measured" || status == "modelled" || status == "-")
          << row.forms << ": " << status;
    EXPECT_NE(row.status[2], "-") << row.forms;
    EXPECT_NE(row.status[0], "measured") << row.forms;
    for (const std::string& form : alternatives(row.forms)) listed.insert(form);
  }
  const std::map<std::string, std::array<std::string, 3>> some = {
      {"add.bf16", {"-", "-", "exact"}},
      {"fma.rn.bf16", {"exact", "exact", "exact"}},
      {"ex2.approx.ftz.f32", {"modelled", "modelled", "measured"}},
      {"cvt.rn.satfinite.e4m3x2.f32", {"-", "modelled", "measured"}}};
  for (const auto& [form, status] : some) {
    bool found = false;
    for (const InstructionRow& row : instruction_rows())
      for (const std::string& each : alternatives(row.forms))
        if (each == form) {
          found = true;
          EXPECT_EQ(row.status, status) << form;
        }
    EXPECT_TRUE(found) << form;
  }
  for (const char* form : {"red.exch.b32", "fma.f32", "atom.add.f16", "membar", "wmma.load register"})
    EXPECT_FALSE(listed.contains(form)) << form;
  for (const char* form :
       {"atom.global.add.noftz.f16", "membar.gl", "setp.lt.and.s32", "wgmma.fence.sync.aligned"})
    EXPECT_TRUE(listed.contains(form)) << form;
}

TEST(InstructionTable, IgnoresQualifiersThatChangeNoBits) {
  const std::map<std::string, std::string> same = {
      {"ld.global.nc.L1::no_allocate.L2::128B.v4.f32", "ld.global.v4.f32"},
      {"ld.volatile.shared::cta.u32", "ld.shared.u32"},
      {"st.release.gpu.global.b32", "st.global.b32"},
      {"cp.async.cg.shared.global.L2::128B", "cp.async.shared.global"},
      {"bra.uni", "bra"},
      {"atom.acq_rel.gpu.global.add.u32", "atom.global.add.u32"}};
  for (const auto& [opcode, form] : same) {
    EXPECT_EQ(ptx::canonical_form(opcode), form);
    EXPECT_NE(find_row(opcode), nullptr) << opcode;
  }
}

/// What ptxas 13.0 takes in any order, and what it takes behind the name alone.
TEST(InstructionTable, TakesPartsInAnyOrderThatTheAssemblerTakes) {
  const std::map<std::string, std::string> same = {
      {"ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"},
      {"stmatrix.b16.shared.trans.m8n8.x2.sync.aligned", "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16"},
      {"vote.ballot.sync.b32", "vote.sync.ballot.b32"},
      {"vote.pred.all.sync", "vote.sync.all.pred"},
      {"shfl.bfly.sync.b32", "shfl.sync.bfly.b32"},
      {"fma.rn.f32.ftz.sat", "fma.rn.ftz.sat.f32"},
      {"cvt.f16.f32.ftz.rn", "cvt.rn.ftz.f16.f32"},
      {"atom.global.u32.gpu.add.relaxed", "atom.global.add.u32"},
      {"ld.nc.f32.v4.global", "ld.global.v4.f32"},
      {"mad.lo.u32.cc", "mad.lo.cc.u32"},
      {"setp.f32.and.lt.ftz", "setp.lt.and.ftz.f32"},
      {"mma.row.sync.col.aligned.m16n8k16.f32.f16.f16.f32",
       "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
      {"wmma.mma.row.aligned.col.sync.m16n16k16.f32.f32", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"}};
  for (const auto& [opcode, form] : same) {
    EXPECT_EQ(spelling_of(opcode), form);
    EXPECT_EQ(find_row(opcode), find_row(form)) << opcode;
    EXPECT_NE(find_row(opcode), nullptr) << opcode;
  }
  for (const char* opcode : {"mul.u32.wide", "mad.s32.lo", "div.ftz.f32.full", "shf.wrap.l.b32",
                             "cvt.s32.f32.rn", "cvta.global.to.u64", "cp.async.global.shared"})
    EXPECT_EQ(find_row(opcode), nullptr) << opcode;
}

TEST(InstructionTable, EveryFormIsToldFromTheOthersInAnyOrder) {
  std::map<std::string, std::string> known;
  for (const Row& row : rows())
    for (const std::string& form : forms_of(row)) {
      const auto [found, is_new] = known.try_emplace(ptx::unordered_form(form), form);
      const bool is_second_spelling = !is_new && find_row(form) == find_row(found->second) &&
                                      ptx::form_of(form).types == ptx::form_of(found->second).types &&
                                      form.size() == found->second.size();
      EXPECT_TRUE(is_new || is_second_spelling) << form << " and " << found->second;
    }
  const std::string voted = "setp.ne.u32 %p1, %a, 0; vote.ballot.sync.b32 %d, %p1, 0xffffffff;";
  EXPECT_EQ(first_word({.body = voted, .a = {1}}), 0xffffffffu);
}

TEST(InstructionTable, RefusesAnUnknownFormBeforeAnythingRuns) {
  try {
    run_small({.body = "@%p1 ex2.rn.f32 %f1, %f2;"});
    FAIL() << "accepted";
  } catch (const BadInput& error) {
    EXPECT_EQ(std::string(error.what()),
              "test.ptx:13:1: ex2.rn.f32 in k: the machine does not implement this form of ex2");
  }
}

TEST(InstructionTable, RefusesOperandsThatDoNotFit) {
  for (const char* body :
       {"add.s32 %d, %a;", "add.s64 %d, %a, %b;", "add.s32 %d, %rd1, %b;", "@%r1 add.s32 %d, %a, %b;",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%a,%a}, {%b,%b}, "
        "{%f1,%f2,%f3,%f4};"})
    EXPECT_THROW(run_small({.body = body}), BadInput) << body;
}

}  // namespace
}  // namespace assay::vm
