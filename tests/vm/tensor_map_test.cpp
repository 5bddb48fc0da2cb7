// Tensor maps that a kernel changes before it loads through them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "src/base/vm/machine.h"

namespace assay::vm {
namespace {

constexpr const char* kText = R"(.version 8.6
.target sm_90a
.address_size 64
.shared .align 128 .b8 map[128];
.shared .align 128 .b8 tile[64];
.shared .align 8 .b8 gate[8];
.visible .entry k(.param .align 64 .b8 pmap[128], .param .u64 pb, .param .u64 pscratch, .param .u64 pd)
{
.reg .pred p; .reg .b32 %r<9>; .reg .b64 %rd<12>;
mov.b64 %rd0, pmap; cvta.param.u64 %rd0, %rd0; ld.param.u64 %rd1, [pb]; ld.param.u64 %rd2, [pscratch];
ld.param.u64 %rd3, [pd];
mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; cvt.u64.u32 %rd4, %r1; mov.u32 %r2, map; mov.u32 %r3, tile;
mov.u32 %r4, gate;
add.u64 %rd5, %rd0, %rd4; ld.b32 %r5, [%rd5]; add.u32 %r6, %r2, %r1; st.shared.b32 [%r6], %r5;
bar.warp.sync -1;
setp.eq.u32 p, %r0, 0;
CHANGE
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [%r2], 128;
fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;
@p mbarrier.init.shared.b64 [%r4], 1; @p fence.mbarrier_init.release.cluster; bar.warp.sync -1;
@p mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 64;
mov.u32 %r7, 0;
@p cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd2, {%r7}],
[%r4];
WAIT: mbarrier.try_wait.parity.shared.b64 p, [%r4], 0; @!p bra WAIT;
and.b32 %r8, %r1, 63; add.u32 %r8, %r8, %r3; ld.shared.b32 %r8, [%r8]; add.u64 %rd3, %rd3, %rd4;
st.global.b32 [%rd3], %r8;
ret;
})";

Outcome run_with(const std::string& change) {
  std::string text = kText;
  text.replace(text.find("CHANGE"), 6, change);
  Program program;
  program.name = "test";
  program.modules.push_back({"m", "test.ptx", std::make_shared<std::string>(text)});
  TensorMap inputs;
  for (const char* name : {"a", "b"}) {
    Tensor x(name, Dtype::i32, {{"T", 16}});
    for (int64_t i = 0; i < 16; ++i) x.set_bits(i, static_cast<uint64_t>(i + (name[0] == 'b' ? 100 : 0)));
    inputs[name] = std::move(x);
  }
  program.workspaces.push_back({"scratch", 128, ""});
  program.outputs.push_back({"d", Dtype::i32, {{"T", 32}}});
  const TileMap map{
      .element = TileMap::Element::i32, .sizes = {16}, .strides = {}, .box = {16}, .steps = {1}};
  Launch launch;
  launch.module = "m", launch.function = "k", launch.block = {32, 1, 1};
  launch.arguments = {Argument::of(PointerArgument{"a"}, map), PointerArgument{"b", 0},
                      PointerArgument{"scratch", 0}, PointerArgument{"d", 0}};
  program.launches.push_back(launch);
  return run(program, inputs, MachineOptions{.threads = 1});
}

TEST(TensorMap, AChangedMapIsWhatACopyGoesBy) {
  const Outcome plain = run_with(""),
                moved =
                    run_with("@p tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r2], %rd1;"),
                shorter = run_with("@p tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r2], 0, 5;");
  for (const Outcome* outcome : {&plain, &moved, &shorter})
    ASSERT_FALSE(outcome->trap) << outcome->trap->message;
  for (int64_t i = 0; i < 16; ++i) {
    const auto value = static_cast<uint64_t>(i);
    EXPECT_EQ(plain.outputs.at("d").bits(i), value);
    EXPECT_EQ(moved.outputs.at("d").bits(i), 100 + value);
    EXPECT_EQ(shorter.outputs.at("d").bits(i), i < 5 ? value : 0);
  }
}

TEST(TensorMap, FormatsAndFillsAreFieldsToo) {
  const Outcome floats = run_with(
      "@p tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r2], 7;\n"
      "@p tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r2], 1;\n"
      "@p tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r2], 0;\n"
      "@p tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r2], 0;\n"
      "@p tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r2], 0, 5;");
  ASSERT_FALSE(floats.trap) << floats.trap->message;
  for (int64_t i = 0; i < 16; ++i) {
    const auto bits = static_cast<uint32_t>(floats.outputs.at("d").bits(i));
    if (i < 5)
      EXPECT_EQ(bits, static_cast<uint32_t>(i));
    else
      EXPECT_TRUE(std::isnan(std::bit_cast<float>(bits))) << i << ": " << bits;
  }
}

TEST(TensorMap, WhatNoMapCanBeTraps) {
  const std::pair<const char*, const char*> cases[] = {
      {"@p tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r2], 1, 5;",
       "no tensor map with that field"},
      {"@p tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r2], 3;", "no multiple of 16"},
      {"@p tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r2], 1;", "no tensor map with that field"},
      {"@p tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r2], 13;",
       "no tensor map with that field"},
      {"@p tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r2], 1;", "there is no tensor map at"},
      {"@p tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r2], 0, 8;", "there is no tensor map at"},
      {"@p tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r3], 0, 5;",
       "reaches shared memory at byte 128"},
      {"@p st.shared.b32 [%r2+8], -1;", "there is no tensor map at"}};
  for (const auto& [change, message] : cases) {
    const Outcome outcome = run_with(change);
    ASSERT_TRUE(outcome.trap) << change;
    EXPECT_NE(outcome.trap->message.find(message), std::string::npos) << outcome.trap->message;
  }
}

}  // namespace
}  // namespace assay::vm
