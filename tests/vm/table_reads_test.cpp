// Rows of a table that no thread of a launch reads.
#include "src/base/vm/table_reads.h"

#include <gtest/gtest.h>

namespace assay::vm {
namespace {

/// Two blocks of one thread; each reads the row of three words of the table s that `row` makes (into %r) of
/// its block, and stores into w where the row's first word is not 0.
Program plan_of(const std::string& row) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 pw, .param .u64 ps) {
  .reg .b32 %c, %r, %n;
  .reg .b64 %w, %s, %d;
  .reg .pred %p;
  ld.param.u64 %w, [pw];
  ld.param.u64 %s, [ps];
  mov.u32 %c, %ctaid.x;
)" + row + R"(
  mul.wide.u32 %d, %r, 12;
  add.s64 %s, %s, %d;
  ld.global.u32 %n, [%s];
  setp.eq.u32 %p, %n, 0;
  @%p bra L;
  st.global.b32 [%w], %n;
L:
  ret;
}
)";
  Program plan;
  plan.name = "small";
  plan.modules.push_back({"m", "small.ptx", std::make_shared<const std::string>(text)});
  plan.workspaces.push_back({"w", 4});
  plan.constants.emplace_back("s", Dtype::i32, std::vector<Axis>{{"N", 2}, {"field", 3}});
  plan.constants[0].set(3, 1);
  plan.launches.push_back(
      {"m", "kernel", {2, 1, 1}, {1, 1, 1}, 0, {PointerArgument{"w"}, PointerArgument{"s"}}});
  return plan;
}

/// PTX line of the load, from the table's row on; 0 where the table is read whole.
int line_of(const std::string& row) {
  const Program plan = plan_of(row);
  const auto guards = find_withheld_stores(plan, {}, {}, "w", 0, 4);
  EXPECT_FALSE(guards.empty()) << row;
  if (guards.empty()) return -1;
  const auto unread = find_unread_table(plan, {}, {}, guards.front().guard);
  if (!unread) return 0;
  EXPECT_EQ(unread->table, "s");
  const ptx::Function& f = unread->load.module->functions[static_cast<size_t>(unread->load.function)];
  return f.body[static_cast<size_t>(unread->load.instruction)].ptx_line;
}

TEST(TableReads, ATableOfWhichAllBlocksReadOneRowHasOneThatIsUnread) {
  EXPECT_EQ(line_of("mov.u32 %r, 0;"), 14);
}

TEST(TableReads, ATableThatIsReadWholeHasNone) {
  EXPECT_EQ(line_of("mov.u32 %r, %c;"), 0);
}

}  // namespace
}  // namespace assay::vm
