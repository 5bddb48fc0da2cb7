// Which guard kept a store from a byte: in small programs whose one answer is known.
#include "src/base/vm/store_search.h"

#include <gtest/gtest.h>

#include <set>

namespace assay::vm {
namespace store_search_test {

/// Two blocks of 32 threads over o[64] and the workspace w; %n is the thread of all, %ao its place in o, %aw
/// in w.
Program plan_of(const std::string& body) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 po, .param .u64 pw) {
  .reg .b32 %t, %c, %n, %b<16>;
  .reg .b64 %ao, %aw, %step, %d<8>;
  .reg .pred %p<8>;
  ld.param.u64 %ao, [po];
  ld.param.u64 %aw, [pw];
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  mad.lo.s32 %n, %c, 32, %t;
  mul.wide.u32 %step, %n, 4;
  add.s64 %ao, %ao, %step;
  add.s64 %aw, %aw, %step;
)" + body + "\n  ret;\n}\n";
  Program plan;
  plan.name = "small";
  plan.modules.push_back({"m", "small.ptx", std::make_shared<const std::string>(text)});
  plan.outputs.push_back({"o", Dtype::fp32, {{"T", 64}}});
  plan.workspaces.push_back({"w", 256});
  plan.launches.push_back(
      {"m", "kernel", {2, 1, 1}, {32, 1, 1}, 0, {PointerArgument{"o"}, PointerArgument{"w"}}});
  return plan;
}

/// PTX lines of the guards that kept a store from element `flat`, each as it stands in the body (from 1).
std::vector<int> guards_of(const std::string& body, int64_t flat, const std::string& buffer = "o") {
  std::vector<int> lines;
  for (const WithheldStore& w :
       find_withheld_stores(plan_of(body), {}, {}, buffer, static_cast<uint64_t>(flat) * 4, 4)) {
    const ptx::Function& f = w.guard.module->functions[static_cast<size_t>(w.guard.function)];
    lines.push_back(f.body[static_cast<size_t>(w.guard.instruction)].ptx_line - 15);
    EXPECT_EQ(w.store.launch, 0);
  }
  return lines;
}

const struct {
  const char* what;
  const char* body;
  int64_t flat;
  std::vector<int> guards;
} kRows[] = {
    {"a predicated store", "setp.lt.u32 %p1, %n, 63;\n@%p1 st.global.b32 [%ao], %n;", 63, {2}},
    {"a branch around it, taken",
     "setp.ge.u32 %p1, %n, 63;\n@%p1 bra L;\nst.global.b32 [%ao], %n;\nL:",
     63,
     {2}},
    {"of two guards the one that does not hold there",
     "setp.lt.u32 %p1, %t, 8;\n@!%p1 bra L;\nsetp.lt.u32 %p2, %n, 5;\n@!%p2 bra L;\nst.global.b32 [%ao], "
     "%n;\nL:",
     6,
     {4}},
    {"a loop that never begins",
     "setp.ge.u32 %p1, %c, 1;\n@%p1 bra E;\nL:\nst.global.b32 [%ao], %n;\nadd.u32 %c, %c, 1;\nsetp.lt.u32 "
     "%p1, %c, 1;\n"
     "@%p1 bra L;\nE:",
     40,
     {2}},
    {"a loop that ends a round early",
     "setp.gt.u32 %p1, %t, 0;\n@%p1 exit;\nmov.u32 %b1, 0;\nL:\nst.global.b32 [%ao], %n;\nadd.s64 %ao, %ao, "
     "4;\n"
     "add.u32 %b1, %b1, 1;\nsetp.lt.u32 %p2, %b1, 31;\n@%p2 bra L;",
     63,
     {2, 9}},
    {"two guards, neither enough",
     "setp.lt.u32 %p1, %n, 5;\n@!%p1 bra L;\nsetp.lt.u32 %p2, %t, 3;\n@!%p2 bra L;\n"
     "st.global.b32 [%ao], %n;\nL:",
     7,
     {}},
    {"a predicate that two instructions share",
     "setp.gt.u32 %p1, %n, 99;\n@%p1 mov.u32 %b2, 1;\n@%p1 st.global.b32 [%ao], %n;",
     5,
     {3}},
    {"one that keeps threads from places of others comes last, however near it stands",
     "setp.ge.u32 %p1, %n, 63;\n@%p1 bra L;\nmov.u32 %b1, %n;\nadd.u32 %b1, %b1, 1;\n"
     "st.global.b32 [%ao], %b1;\nL:\nsetp.ge.u32 %p2, %n, 64;\n@%p2 st.global.b32 [%ao + 4], %n;",
     63,
     {2, 8}},
    {"no store", "mov.u32 %b1, 1;", 3, {}},
    {"a vector that reaches over it",
     "setp.lt.u32 %p1, %n, 10;\nand.b32 %b1, %n, 1;\nsetp.eq.u32 %p2, %b1, 0;\n"
     "@!%p2 bra L;\n@!%p1 bra L;\nst.global.v2.b32 [%ao], {%n, %n};\nL:",
     11,
     {5}},
};

TEST(StoreSearch, TheGuardThatKeptAStoreFromAnElementIsFound) {
  for (const auto& row : kRows) EXPECT_EQ(guards_of(row.body, row.flat), row.guards) << row.what;
}

TEST(StoreSearch, AForcedRunMayTrapOrLoopWithoutEnd) {
  // Without the guard thread 0 writes far outside, and the loop's condition never becomes false.
  EXPECT_EQ(guards_of("setp.ne.u32 %p1, %n, 3;\n@%p1 st.global.b32 [%ao], %n;\nsetp.eq.u32 %p2, %n, 99;\n"
                      "@%p2 st.global.b32 [%ao + 99999], %n;\nL:\nsetp.eq.u32 %p3, %n, 98;\n@%p3 bra L;",
                      3),
            std::vector<int>{2});
}

TEST(StoreSearch, OfAWorkspaceToo) {
  EXPECT_EQ(guards_of("setp.gt.u32 %p1, %n, 99;\n@%p1 st.global.b32 [%aw], %n;", 12, "w"),
            std::vector<int>{2});
}

/// Threads up to 14 of the second block write s; without the guard thread 15 does.
TEST(StoreSearch, OfABlocksSharedMemoryToo) {
  const std::string address =
      ".shared .align 4 .b32 s[32];\nmov.u32 %b1, s;\nshl.b32 %b2, %t, 2;\nadd.u32 %b1, %b1, %b2;\n";
  for (const char* store :
       {"@%p1 st.shared.b32 [%b1], %n;", "@%p1 cp.async.ca.shared.global [%b1], [%ao], 4;"}) {
    const Program plan = plan_of(address + "setp.lt.u32 %p1, %n, 47;\n" + store);
    SharedBytes place{0, {1, 0, 0}, 4 * 15, 4};
    const std::vector<WithheldStore> found = find_withheld_stores(plan, {}, {}, place);
    ASSERT_EQ(found.size(), 1U) << store;
    EXPECT_EQ(found[0].guard.block, (std::array<uint32_t, 3>{1, 0, 0}));
    EXPECT_EQ(found[0].store.thread, (std::array<uint32_t, 3>{15, 0, 0}));
    EXPECT_FALSE(store_into(plan, {}, {}, place));
    place.offset = 4 * 14;
    const auto writer = store_into(plan, {}, {}, place);
    ASSERT_TRUE(writer) << store;
    EXPECT_EQ(writer->thread, (std::array<uint32_t, 3>{14, 0, 0}));
  }
}

TEST(StoreSearch, StoresAreShownWithTheirPlaces) {
  std::set<uint64_t> offsets;
  const Program plan = plan_of("setp.ne.u32 %p1, %n, 3;\n@%p1 st.global.b32 [%ao], %n;");
  const bool whole = visit_stores(plan, {}, {}, "o", [&](const StoreEvent& event) {
    offsets.insert(event.offset);
    EXPECT_EQ(event.bytes, 4u);
    EXPECT_EQ(event.at.block[0] * 32 + event.at.thread[0], event.offset / 4);
    EXPECT_EQ(event.at.module->functions[0].body[static_cast<size_t>(event.at.instruction)].opcode,
              "st.global.b32");
  });
  EXPECT_TRUE(whole);
  EXPECT_EQ(offsets.size(), 63u);
  EXPECT_FALSE(offsets.contains(12));
}

}  // namespace store_search_test
}  // namespace assay::vm
