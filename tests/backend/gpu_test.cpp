// What only a GPU can show. Skipped where there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace gpu_test {

/// y[i] = a[i] * b[i] + a[i] with plain mul and add; the address of y is shifted by `shift` bytes; shared
/// memory is used up to its last declared byte.
const char* kPtx = R"(.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 scratch[];
.visible .entry multiply_add(.param .u64 pa, .param .u64 pb, .param .u64 py, .param .u32 shared,
                             .param .u64 shift)
{
  .reg .f32 %f<6>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [pa];
  ld.param.u64 %rd2, [pb];
  ld.param.u64 %rd3, [py];
  ld.param.u32 %r1, [shared];
  ld.param.u64 %rd4, [shift];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd5, %r2, 4;
  add.s64 %rd6, %rd1, %rd5;
  add.s64 %rd7, %rd2, %rd5;
  add.s64 %rd8, %rd3, %rd5;
  add.s64 %rd9, %rd8, %rd4;
  ld.global.f32 %f1, [%rd6];
  ld.global.f32 %f2, [%rd7];
  mul.f32 %f3, %f1, %f2;
  add.f32 %f4, %f3, %f1;
  mov.u32 %r3, scratch;
  add.s32 %r4, %r3, %r1;
  st.shared.f32 [%r4+-4], %f4;
  ld.shared.f32 %f5, [%r4+-4];
  st.global.f32 [%rd9], %f5;
  ret;
}
)";

Program small_program(uint32_t shared_bytes, int64_t shift) {
  Program plan;
  plan.name = "test";
  plan.modules = {{"m", "test.ptx", std::make_shared<const std::string>(kPtx)}};
  plan.outputs = {{"y", Dtype::fp32, {{"T", 1}}}};
  Launch launch{.module = "m", .function = "multiply_add", .shared_bytes = shared_bytes};
  launch.arguments = {PointerArgument{"a"}, PointerArgument{"b"}, PointerArgument{"y"},
                      static_cast<int32_t>(shared_bytes), shift};
  plan.launches = {launch, launch};
  return plan;
}

TensorMap small_inputs() {
  // -a b = 1 + 2^-11 + 2^-24 rounds to 1 + 2^-11; fused, the sum with a keeps the 2^-24.
  Tensor a("a", Dtype::fp32, {{"T", 1}}), b("b", Dtype::fp32, {{"T", 1}});
  a.set(0, 1 + 0x1p-12), b.set(0, -1 - 0x1p-12);
  return {{"a", a}, {"b", b}};
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_available()) GTEST_SKIP() << describe_gpu();
    backend_ = make_cuda_backend({});
  }
  std::unique_ptr<Backend> backend_;
};

TEST_F(Gpu, RoundsProductAndSumApart) {
  const float a = 1 + 0x1p-12f, b = -a, product = a * b, separate = product + a;
  ASSERT_NE(separate, std::fma(a, b, a)) << "the operands must tell fused from separate";
  for (uint32_t shared_bytes : {4u, 48u * 1024, 100u * 1024, 227u * 1024}) {
    const Outcome outcome = backend_->run(small_program(shared_bytes, 0), small_inputs());
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    EXPECT_EQ(outcome.outputs.at("y").bits(0), std::bit_cast<uint32_t>(separate)) << shared_bytes;
    EXPECT_GT(outcome.seconds, 0);
  }
}

TEST_F(Gpu, TrapsNameKindAndLaunchAndTheNextRunStartsAfresh) {
  const struct {
    uint32_t shared_bytes;
    int64_t shift;
    const char* kind;
  } rows[] = {{4, int64_t{1} << 44, "out-of-bounds"}, {4, 2, "misaligned"}, {228 * 1024, 0, "launch"}};
  for (const auto& row : rows) {
    const Outcome outcome = backend_->run(small_program(row.shared_bytes, row.shift), small_inputs());
    ASSERT_TRUE(outcome.trap) << row.kind;
    EXPECT_EQ(name_of(outcome.trap->kind), row.kind) << outcome.trap->message;
    EXPECT_EQ(outcome.trap->where.function, "multiply_add");
    EXPECT_FALSE(backend_->run(small_program(4, 0), small_inputs()).trap);
  }
}

TEST_F(Gpu, KernelThatDoesNotEndIsAHangAndTheNextRunStartsAfresh) {
  setenv("ASSAY_GPU_TIMEOUT", "1", 1);
  const auto backend = make_cuda_backend({});
  unsetenv("ASSAY_GPU_TIMEOUT");
  Program plan = small_program(4, 0);
  std::string text = kPtx;
  text.insert(text.find("  mov.u32 %r2"), "$L:\n  ld.volatile.global.f32 %f1, [%rd1];\n  bra $L;\n");
  plan.modules[0].ptx = std::make_shared<const std::string>(text);
  const Outcome outcome = backend->run(plan, small_inputs());
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::hang);
  EXPECT_FALSE(backend->run(small_program(4, 0), small_inputs()).trap);
}

TEST_F(Gpu, RefusedPtxGivesTheLogOfTheDriver) {
  Program plan = small_program(4, 0);
  std::string text = kPtx;
  const size_t at = text.find("st.global.f32");
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  text.replace(at, 13, "st.global.u99");
  plan.modules[0].ptx = std::make_shared<const std::string>(text);
  try {
    backend_->run(plan, small_inputs());
    ADD_FAILURE() << "the driver took st.global.u99";
  } catch (const BadInput& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("test.ptx: the driver refuses this PTX: "), std::string::npos) << message;
    EXPECT_NE(message.find("line " + std::to_string(line)), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST_F(Gpu, TimesAsManyRepeatsAsAsked) {
  EXPECT_EQ(backend_->time(small_program(4, 0), small_inputs(), 20, 2).size(), 20u);
}

}  // namespace gpu_test
}  // namespace assay
