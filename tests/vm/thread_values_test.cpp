// What threads make around an instruction of theirs, dead values among it.
#include "src/base/vm/thread_values.h"

#include <gtest/gtest.h>

#include "src/base/vm/value_slice.h"

namespace assay::vm {
namespace {

/// o[t] = 2 x[t]; beside it 3 x[t], which nothing takes, and 4 x[t] of a warp's other lanes.
Program doubled() {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 po) {
  .reg .f32 %x, %y, %z;
  .reg .b32 %t;
  .reg .b64 %ax, %ao, %off;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %off, %t, 4;
  add.s64 %ax, %ax, %off;
  add.s64 %ao, %ao, %off;
  ld.global.f32 %x, [%ax];
  mul.rn.f32 %z, %x, 0f40400000;
  mul.rn.f32 %y, %x, 0f40000000;
  mul.rn.f32 %z, %x, 0f40800000;
  st.global.f32 [%ao], %y;
  ret;
}
)";
  Program program;
  program.name = "doubled";
  program.modules.push_back({"m", "doubled.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 4}}});
  program.launches.push_back(
      {"m", "kernel", {1, 1, 1}, {4, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"o"}}});
  return program;
}

TensorMap four() {
  Tensor x("x", Dtype::fp32, {{"T", 4}});
  for (int64_t i = 0; i < 4; ++i) x.set(i, static_cast<double>(i + 1));
  return {{"x", x}};
}

/// The product behind an element.
ThreadMoment product_of(int64_t element) {
  const ValueSlice slice = slice_value(doubled(), four(), {}, "o", element);
  for (const SliceInstance& i : slice.instances)
    if (i.flow == Flow::arithmetic) return {i.launch, i.block, i.thread, i.record};
  return {};
}

TEST(ThreadValues, DeadOnesAreAmongThem) {
  const ValuesNear near = values_near(doubled(), four(), {}, {product_of(2)}, 10, 1000);
  ASSERT_EQ(near.threads.size(), 1U);
  std::vector<double> numbers;
  for (const HeldValue& value : near.threads[0].values) numbers.push_back(value.number);
  EXPECT_EQ(numbers, (std::vector<double>{3, 9, 6, 12}));
}

TEST(ThreadValues, NoFartherThanIsAsked) {
  const ValuesNear near = values_near(doubled(), four(), {}, {product_of(2)}, 1, 1000);
  ASSERT_EQ(near.threads.size(), 1U);
  std::vector<double> numbers;
  for (const HeldValue& value : near.threads[0].values) numbers.push_back(value.number);
  EXPECT_EQ(numbers, (std::vector<double>{9, 6, 12}));
}

TEST(ThreadValues, OfTheMomentWhatItsWarpMakes) {
  const ValuesNear near = values_near(doubled(), four(), {}, {product_of(1)}, 0, 1000);
  ASSERT_EQ(near.warps.size(), 1U);
  EXPECT_EQ(near.lane[0], 1);
  EXPECT_EQ(near.warps[0].mask, 0xfU);
  for (size_t lane = 0; lane < 4; ++lane)
    EXPECT_EQ(near.warps[0].number[lane], 2.0 * static_cast<double>(lane + 1));
}

TEST(ThreadValues, NothingWhereItWouldBeTooMuch) {
  EXPECT_TRUE(values_near(doubled(), four(), {}, {product_of(2)}, 10, 3).threads.empty());
}

}  // namespace
}  // namespace assay::vm
