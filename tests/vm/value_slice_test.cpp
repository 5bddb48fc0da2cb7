// Slices against what is known of small programs: which inputs an element depends on, through every way a
// value can travel; and against perturbed runs.
#include "src/base/vm/value_slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "src/base/vm/block_graph.h"

namespace assay::vm {
namespace value_slice_test {

using Elements = std::set<std::string>;

/// `blocks` blocks of one warp; thread t of block c is n = 32 c + t and has %x = x[n], %y = y[n]; `body`
/// leaves %r, stored to o[n].
Program plan_of(const std::string& body, const std::string& functions = "", uint32_t blocks = 2,
                int launches = 1) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
)" + functions + R"(
.visible .entry kernel(.param .u64 px, .param .u64 py, .param .u64 po, .param .u64 pw) {
  .reg .f32 %x, %y, %r, %f<64>;
  .reg .f64 %fd<8>;
  .reg .b32 %t, %c, %n, %b<32>;
  .reg .b16 %h<16>;
  .reg .b64 %ax, %ay, %ao, %aw, %w, %step, %d<8>;
  .reg .pred %p<8>;
  .shared .align 16 .b8 tile[2048];
  .local .align 8 .b8 stack[16];
  ld.param.u64 %ax, [px];
  ld.param.u64 %ay, [py];
  ld.param.u64 %ao, [po];
  ld.param.u64 %w, [pw];
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  mad.lo.s32 %n, %c, 32, %t;
  mul.wide.u32 %step, %n, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ay, %ay, %step;
  add.s64 %ao, %ao, %step;
  add.s64 %aw, %w, %step;
  ld.global.f32 %x, [%ax];
  ld.global.f32 %y, [%ay];
)" + body + "\n  st.global.f32 [%ao], %r;\n  ret;\n}\n";
  Program plan;
  plan.name = "small";
  plan.modules.push_back({"m", "small.ptx", std::make_shared<const std::string>(text)});
  plan.outputs.push_back({"o", Dtype::fp32, {{"T", 32 * int64_t{blocks}}}});
  plan.workspaces.push_back({"w", 4096});
  for (int i = 0; i < launches; ++i)
    plan.launches.push_back(
        {"m",
         "kernel",
         {blocks, 1, 1},
         {32, 1, 1},
         0,
         {PointerArgument{"x"}, PointerArgument{"y"}, PointerArgument{"o"}, PointerArgument{"w"}}});
  return plan;
}

TensorMap inputs_of(int64_t count = 64) {
  TensorMap inputs;
  for (const char* name : {"x", "y"}) {
    Tensor t(name, Dtype::fp32, {{"T", count}});
    for (int64_t i = 0; i < count; ++i) t.set(i, 1 + static_cast<double>(i * 7 % 13) / 8 + (*name == 'y'));
    inputs[name] = t;
  }
  return inputs;
}

Elements elements_of(const ValueSlice& slice, const TensorMap& inputs) {
  Elements found;
  for (const int64_t packed : slice.inputs)
    found.insert(inputs.at(slice.input_names[static_cast<size_t>(packed >> 40)])
                     .element_name(packed & ((int64_t{1} << 40) - 1)));
  return found;
}

Elements range(const char* name, int64_t first, int64_t last) {
  Elements found;
  for (int64_t i = first; i <= last; ++i) found.insert(std::string(name) + "[t=" + std::to_string(i) + "]");
  return found;
}

Elements operator+(Elements a, const Elements& b) {
  a.insert(b.begin(), b.end());
  return a;
}

struct Way {
  const char* name;
  const char* body;
  Elements expected;  ///< behind o[t=37]: thread 5 of block 1
  const char* functions = "";
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"arithmetic", "fma.rn.f32 %r, %x, %y, %x;", {"x[t=37]", "y[t=37]"}},
      {"an overwritten register", "add.f32 %f1, %y, %y; mov.f32 %f1, %x; mov.f32 %r, %f1;", {"x[t=37]"}},
      {"a select takes one side", "setp.ne.u32 %p1, %t, 5; selp.f32 %r, %x, %y, %p1;", {"y[t=37]"}},
      {"a predicated move that is not taken",
       "mov.f32 %r, %x; setp.ne.u32 %p1, %t, 5; @%p1 mov.f32 %r, %y;",
       {"x[t=37]"}},
      {"a predicated move that is taken",
       "mov.f32 %r, %x; setp.eq.u32 %p1, %t, 5; @%p1 mov.f32 %r, %y;",
       {"y[t=37]"}},
      {"a shuffle",
       "mov.b32 %b1, %x; shfl.sync.bfly.b32 %b2, %b1, 2, 31, -1; mov.b32 %f1, %b2; add.f32 %r, %f1, %y;",
       {"x[t=39]", "y[t=37]"}},
      {"a shuffle onto its own source",
       "mov.b32 %b1, %x; shfl.sync.idx.b32 %b1, %b1, 0, 31, -1; mov.b32 %r, %b1;",
       {"x[t=32]"}},
      {"shared memory of a neighbour",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; st.shared.f32 [%b1], %x; bar.sync 0;"
       "xor.b32 %b3, %b2, 4; mov.u32 %b1, tile; add.s32 %b1, %b1, %b3; ld.shared.f32 %r, [%b1];",
       {"x[t=36]"}},
      {"vectors in shared memory",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 3; add.s32 %b1, %b1, %b2; st.shared.v2.f32 [%b1], {%x, %y}; "
       "bar.sync 0;"
       "ld.shared.v2.f32 {%f1, %f2}, [%b1]; mov.f32 %r, %f2;",
       {"y[t=37]"}},
      {"local memory",
       "mov.u64 %d1, stack; st.local.f32 [%d1+4], %x; st.local.f32 [%d1], %y; ld.local.f32 %r, [%d1+4];",
       {"x[t=37]"}},
      {"packed halves, the low one",
       "cvt.rn.f16x2.f32 %b1, %x, %y; add.rn.f16x2 %b2, %b1, %b1; mov.b32 {%h1, %h2}, %b2; cvt.f32.f16 %r, "
       "%h1;",
       {"y[t=37]"}},
      {"packed halves, the high one",
       "cvt.rn.bf16x2.f32 %b1, %x, %y; and.b32 %b2, %b1, 0xffff0000; mov.b32 %r, %b2;",
       {"x[t=37]"}},
      {"a half moved up",
       "cvt.rn.bf16x2.f32 %b1, %x, %y; shl.b32 %b2, %b1, 16; mov.b32 %r, %b2;",
       {"y[t=37]"}},
      {"halves packed anew",
       "cvt.rn.bf16.f32 %h1, %x; cvt.rn.bf16.f32 %h2, %y; mov.b32 %b1, {%h1, %h2}; mov.b32 {%h3, %h4}, %b1;"
       "mov.b16 %h5, 0; mov.b32 %r, {%h5, %h4};",
       {"y[t=37]"}},
      {"64-bit cells", "mov.b64 %d1, {%x, %y}; mov.b64 {%f1, %f2}, %d1; mov.f32 %r, %f1;", {"x[t=37]"}},
      {"double precision",
       "cvt.f64.f32 %fd1, %x; mul.rn.f64 %fd2, %fd1, %fd1; cvt.rn.f32.f64 %r, %fd2;",
       {"x[t=37]"}},
      {"cp.async",
       "mov.u32 %b1, tile; shl.b32 %b2, %t, 2; add.s32 %b1, %b1, %b2; cp.async.ca.shared.global [%b1], "
       "[%ay], 4;"
       "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; ld.shared.f32 %r, [%b1];",
       {"y[t=37]"}},
      {"atomics of all lanes on one word of shared memory",
       "mov.u32 %b1, tile; mov.f32 %f1, 0f00000000; st.shared.f32 [%b1], %f1; bar.sync 0;"
       "red.shared.add.f32 [%b1], %x; bar.sync 0; ld.shared.f32 %r, [%b1];",
       range("x", 32, 63)},
      {"the old value of an atomic",
       "mov.u32 %b1, tile; mov.f32 %f1, 0f00000000; st.shared.f32 [%b1], %f1; bar.sync 0;"
       "atom.shared.add.f32 %r, [%b1], %x;",
       range("x", 32, 36)},
      {"minimum", "min.f32 %r, %x, %y;", {"x[t=37]", "y[t=37]"}},
      {"a literal", "mov.f32 %r, 0f3F800000;", {}},
      {"an index is no value", "cvt.rn.f32.u32 %r, %t;", {}},
      {"a tensor-core sum",
       "cvt.rn.bf16x2.f32 %b1, %x, %x; cvt.rn.bf16x2.f32 %b2, %y, %y; mov.f32 %f1, 0f00000000;"
       "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f10,%f11,%f12,%f13}, {%b1,%b1,%b1,%b1}, "
       "{%b2,%b2},"
       "{%f1,%f1,%f1,%f1}; mov.f32 %r, %f11;",
       // Lane 5: row 1 (lanes 4 to 7 hold it), column 3 (lanes 12 to 15).
       range("x", 36, 39) + range("y", 44, 47)},
      {"ldmatrix",
       "cvt.rn.bf16x2.f32 %b1, %x, %x; mov.u32 %b2, tile; shl.b32 %b3, %t, 2; add.s32 %b4, %b2, %b3;"
       "st.shared.b32 [%b4], %b1; bar.sync 0; and.b32 %b5, %t, 7; shl.b32 %b5, %b5, 4; add.s32 %b5, %b5, %b2;"
       "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%b6}, [%b5]; and.b32 %b7, %b6, 0xffff0000; mov.b32 "
       "%r, %b7;",
       // Lane 5, high half: row 3, column 1: the word of thread 12.
       {"x[t=44]"}},
      {"stmatrix",
       "cvt.rn.bf16x2.f32 %b1, %x, %x; mov.u32 %b2, tile; and.b32 %b5, %t, 7; shl.b32 %b5, %b5, 4;"
       "add.s32 %b5, %b5, %b2; stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%b5], {%b1}; bar.sync 0;"
       "shl.b32 %b6, %t, 2; add.s32 %b6, %b6, %b2; ld.shared.u16 %h1, [%b6+2]; cvt.u32.u16 %b7, %h1;"
       "shl.b32 %b7, %b7, 16; mov.b32 %r, %b7;",
       // Byte 22: row 1, column 3, which the high half of thread 12 filled.
       {"x[t=44]"}},
      {"a permutation takes the bytes that it names",
       "cvt.rn.bf16x2.f32 %b1, %x, %y; prmt.b32 %b2, %b1, 0, 0x3244; mov.b32 %r, %b2;",
       {"x[t=37]"}},
      {"movmatrix",
       "cvt.rn.bf16x2.f32 %b1, %x, %x; movmatrix.sync.aligned.m8n8.trans.b16 %b6, %b1;"
       "and.b32 %b7, %b6, 0xffff0000; mov.b32 %r, %b7;",
       {"x[t=44]"}},
      {"a tensor-core sum in f16",
       "cvt.rn.f16x2.f32 %b1, %x, %x; cvt.rn.f16x2.f32 %b2, %y, %y; mov.b32 %b3, 0;"
       "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%b4,%b5}, {%b1,%b1,%b1,%b1}, {%b2,%b2}, {%b3,%b3};"
       "mov.b32 {%h1, %h2}, %b4; cvt.f32.f16 %r, %h2;",
       range("x", 36, 39) + range("y", 44, 47)},
      {"a function",
       "{ .param .f32 a; .param .f32 b; st.param.f32 [a], %x; call.uni (b), twice, (a); ld.param.f32 %r, "
       "[b]; }",
       {"x[t=37]"},
       ".func (.param .f32 result) twice(.param .f32 argument) { .reg .f32 %f<2>; ld.param.f32 %f1, "
       "[argument];"
       " add.f32 %f1, %f1, %f1; st.param.f32 [result], %f1; ret; }"},
  };
  return all;
}

/// Of lanes 3 and 5: o[n] = x[n] + y[0].
TEST(ValueSlice, OfSeveralElementsWhatTheyShareIsThereOnce) {
  const Program plan = plan_of(
      "mov.b32 %b1, %y; shfl.sync.idx.b32 %b2, %b1, 0, 31, -1; mov.b32 %f1, %b2; add.f32 %r, %x, %f1;");
  const TensorMap inputs = inputs_of();
  const ValueSlice one = slice_value(plan, inputs, {}, "o", 3), other = slice_value(plan, inputs, {}, "o", 5),
                   both = slice_values(plan, inputs, {}, {{"o", 3}, {"o", 5}, {"o", 3}});
  constexpr size_t kShared = 3;  // lane 0 loads y[0] and moves its halves
  EXPECT_EQ(both.instances.size(), one.instances.size() + other.instances.size() - kShared);
  EXPECT_EQ(elements_of(both, inputs), (Elements{"x[t=3]", "x[t=5]", "y[t=0]"}));
  ASSERT_EQ(both.roots.size(), 3U);
  EXPECT_EQ(both.roots[0], both.roots[2]);
  EXPECT_NE(both.roots[0], both.roots[1]);
  for (const int32_t root : both.roots)
    EXPECT_EQ(both.instances[static_cast<size_t>(root)].flow, Flow::store);
}

TEST(ValueSlice, OfSeveralElementsThatAreTooManyNothingIsSaid) {
  SliceLimits few;
  few.instances = 3;
  const ValueSlice full =
      slice_values(plan_of("add.f32 %r, %x, %y;"), inputs_of(), {}, {{"o", 3}, {"o", 40}}, few);
  EXPECT_TRUE(full.truncated);
  EXPECT_TRUE(full.instances.empty());
}

TEST(ValueSlice, AnElementDependsOnWhatReachedItByEveryWayAValueCanTravel) {
  for (const Way& way : ways()) {
    const TensorMap inputs = inputs_of();
    const ValueSlice slice = slice_value(plan_of(way.body, way.functions), inputs, {}, "o", 37);
    ASSERT_FALSE(slice.instances.empty()) << way.name;
    EXPECT_EQ(elements_of(slice, inputs), way.expected) << way.name;
    EXPECT_FALSE(slice.truncated) << way.name;
    EXPECT_FALSE(slice.unwritten) << way.name;
    EXPECT_EQ(slice.blocks, 1u) << way.name;
    EXPECT_EQ(slice.blocks_of, 2u) << way.name;
  }
}

TEST(ValueSlice, WhatMakesSixteenBitsOfARegisterIsOneInstance) {
  const char* const body =
      "mov.b32 {%h1, %h2}, %x; cvt.u32.u16 %b1, %h2; shl.b32 %b1, %b1, 16; mov.b32 %r, %b1;";
  const ValueSlice slice = slice_value(plan_of(body), inputs_of(), {}, "o", 37);
  EXPECT_EQ(std::count_if(slice.instances.begin(), slice.instances.end(),
                          [](const SliceInstance& instance) { return instance.flow == Flow::unpack; }),
            1);
}

TEST(ValueSlice, ValuesAreThoseOfTheRun) {
  const TensorMap inputs = inputs_of();
  const Program plan = plan_of("mul.rn.f32 %f1, %x, %y; add.rn.f32 %r, %f1, %x;");
  const ValueSlice slice = slice_value(plan, inputs, {}, "o", 37);
  const Outcome whole = run(plan, inputs, {});
  EXPECT_EQ(slice.element_bits, whole.outputs.at("o").bits(37));
  ASSERT_EQ(slice.instances.size(), 5u);  // st, add, mul, two ld
  EXPECT_EQ(slice.instances[0].bits, slice.element_bits);
  const auto bits_of = [&](const char* name) { return inputs.at(name).bits(37); };
  const SliceInstance& sum = slice.instances[1];
  EXPECT_EQ(sum.bits, slice.element_bits);
  EXPECT_EQ(sum.thread[0], 5u);
  EXPECT_EQ(sum.block[0], 1u);
  ASSERT_EQ(sum.operand_count, 2u);
  EXPECT_EQ(slice.operands[sum.first_operand].name, "%f1");
  EXPECT_EQ(slice.operands[sum.first_operand].made_by, 2);
  EXPECT_EQ(slice.operands[sum.first_operand].bits, slice.instances[2].bits);
  EXPECT_EQ(slice.operands[sum.first_operand + 1].bits, bits_of("x"));
}

TEST(ValueSlice, TermsOfLongProductsAreCountedPastThe64th) {
  const ValueSlice slice = slice_value(
      plan_of(
          "mov.b32 %b1, %x; mov.u32 %b6, 0;\n"
          "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%b2, %b3, %b4, %b5}, {%b1, %b1, %b1, "
          "%b1}, {%b1, %b1}, {%b6, %b6, %b6, %b6};\ncvt.rn.f32.s32 %r, %b2;"),
      inputs_of(), {}, "o", 37);
  std::set<std::string> names;
  for (const SliceOperand& operand : slice.operands) names.insert(operand.name);
  for (const char* name : {"a[k=0]", "b[k=63]", "a[k=64]", "b[k=255]", "c"})
    EXPECT_TRUE(names.contains(name)) << name;
}

/// Block 0 of the first launch fills the workspace that block 1 of the second reads; block 2 does nothing for
/// it.
TEST(ValueSlice, OnlyTheBlocksThatMatterAreRunAgain) {
  const char* body =
      "ld.global.f32 %f1, [%aw]; add.f32 %r, %f1, %x; setp.eq.u32 %p1, %c, 0; add.s64 %d1, %aw, 128;"
      "@%p1 st.global.f32 [%d1], %y;";
  Program plan = plan_of(body, "", 3, 2);
  const TensorMap inputs = inputs_of(96);
  const ValueSlice slice = slice_value(plan, inputs, {}, "o", 37);
  EXPECT_EQ(elements_of(slice, inputs), (Elements{"x[t=37]", "y[t=5]"}));
  EXPECT_FALSE(slice.unwritten);
  EXPECT_EQ(slice.blocks_of, 6u);
  EXPECT_EQ(slice.blocks, 2u);
  const ValueSlice bare = slice_value(plan, inputs, {}, "o", 70);  // block 2 reads what nobody wrote
  EXPECT_TRUE(bare.unwritten);
  EXPECT_EQ(bare.blocks, 1u);
}

TEST(ValueSlice, AFullSliceSaysSoAndKeepsTheNearestInstances) {
  const char* body = "mov.f32 %r, %x; add.f32 %r, %r, %y; add.f32 %r, %r, %y; add.f32 %r, %r, %y;";
  const ValueSlice slice = slice_value(plan_of(body), inputs_of(), {}, "o", 37, {.instances = 3});
  EXPECT_TRUE(slice.truncated);
  EXPECT_EQ(slice.instances.size(), 3u);
}

TEST(ValueSlice, OfAFullSliceTheOperandThatIsFollowedReachesItsInputAndNothingElse) {
  // Two sums of 20 steps each, interleaved; room for eight instances.
  std::string body = "mov.f32 %f1, %x; mov.f32 %f2, %y;";
  for (int i = 0; i < 20; ++i) body += "add.f32 %f1, %f1, 0f3F800000; add.f32 %f2, %f2, 0f3F800000;";
  const TensorMap inputs = inputs_of();
  const auto first_beyond = [](const ValueSlice& s) {
    for (size_t i = 0; i < s.operands.size(); ++i)
      if (s.operands[i].source == Source::beyond) return static_cast<int32_t>(i);
    return -1;
  };
  SliceLimits limits{.instances = 8};
  const Program plan = plan_of(body + "add.f32 %r, %f1, %f2;");
  const ValueSlice nearest = slice_value(plan, inputs, {}, "o", 37, limits);
  EXPECT_TRUE(nearest.inputs.empty());
  EXPECT_GE(first_beyond(nearest), 0);
  EXPECT_FALSE(nearest.unwritten);
  limits.follow = [&](const ValueSlice& s) {
    const int32_t beyond = first_beyond(s);  // of the sum whose last step is the latest: %f2
    return s.instances.size() > 8 ? static_cast<int32_t>(s.operands.size()) - 2 : beyond;
  };
  const ValueSlice followed = slice_value(plan, inputs, {}, "o", 37, limits);
  EXPECT_TRUE(followed.truncated);
  EXPECT_FALSE(followed.unwritten);
  EXPECT_EQ(elements_of(followed, inputs), (Elements{"y[t=37]"}));
}

TEST(ValueSlice, AnElementThatNothingWroteHasNoSlice) {
  EXPECT_TRUE(
      slice_value(plan_of("setp.eq.u32 %p1, %t, 5; @%p1 ret; mov.f32 %r, %x;"), inputs_of(), {}, "o", 37)
          .instances.empty());
}

TEST(ValueSlice, AnInputThatIsNotBehindAnElementDoesNotChangeIt) {
  for (const Way& way : ways()) {
    const TensorMap inputs = inputs_of();
    const Program plan = plan_of(way.body, way.functions);
    const uint64_t bits = run(plan, inputs, {}).outputs.at("o").bits(37);
    TensorMap others = inputs;
    for (auto& [name, tensor] : others)
      for (int64_t i = 0; i < tensor.size(); ++i)
        if (!way.expected.contains(tensor.element_name(i))) tensor.set(i, 3.25 + static_cast<double>(i));
    EXPECT_EQ(run(plan, others, {}).outputs.at("o").bits(37), bits)
        << way.name << ": the expectation is wrong";
  }
}

}  // namespace value_slice_test
}  // namespace assay::vm
