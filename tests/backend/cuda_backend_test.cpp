#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "src/backend/backend.h"
#include "src/numerics/bad_input.h"

namespace assay {
namespace {

const char* kPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 from, .param .u64 to, .param .u32 count, .param .f32 term) {
  .reg .f32 %f<3>;
  mul.f32 %f1, %f1, %f2;
  ret;
}
.visible .entry bad(.param .u64 from, .param .u64 to, .param .u32 count, .param .f32 term) { ret; }
)";

Launch launch(const std::string& function, const std::string& from, const std::string& to) {
  return {.module = "m",
          .function = function,
          .grid = {1, 1, 1},
          .block = {32, 1, 1},
          .arguments = {PointerArgument{from}, PointerArgument{to, 4}, int32_t{2}, 0.5f}};
}

/// y[1..2] = constant + 0.5, z[1..2] = x + 0.5; the first element of each stays as it was filled.
Plan small_plan() {
  Plan plan;
  plan.kernel = "test";
  plan.modules = {{"m", "test.ptx", std::make_shared<const std::string>(kPtx)}};
  plan.outputs = {
      {"y", Dtype::fp32, {{"T", 3}}}, {"z", Dtype::fp32, {{"T", 3}}}, {"empty", Dtype::fp32, {{"T", 0}}}};
  Tensor constant("c", Dtype::fp32, {{"T", 2}});
  constant.set(0, 10), constant.set(1, 20);
  plan.constants = {constant};
  plan.workspaces = {{"w", 100}};
  plan.launches = {launch("add", "c", "y"), launch("add", "x", "z")};
  return plan;
}

TensorMap small_inputs() {
  Tensor x("x", Dtype::fp32, {{"T", 2}});
  x.set(0, 1), x.set(1, 2);
  return {{"x", x}};
}

class CudaBackend : public testing::Test {
 protected:
  void SetUp() override { setenv("ASSAY_CUDA_DRIVER", ASSAY_FAKE_DRIVER, 1); }
  void TearDown() override {
    unsetenv("ASSAY_CUDA_DRIVER");
    unsetenv("FAKE_DRIVER");
  }
  static void fake(const char* plan) { setenv("FAKE_DRIVER", plan, 1); }
  template <typename Result>
  static Result ask(const char* function) {
    void* library = dlopen(ASSAY_FAKE_DRIVER, RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<Result (*)()>(dlsym(library, function))();
  }
  static std::string message_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const BadInput& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(CudaBackend, WithoutAGpuSaysWhichPartIsMissing) {
  struct Row {
    const char *library, *plan, *message;
  };
  const Row rows[] = {
      {"/no/such/libcuda.so.1", "",
       "no GPU: the NVIDIA driver's /no/such/libcuda.so.1 cannot be opened; use --backend vm"},
      {"libm.so.6", "", "no GPU: the NVIDIA driver has no cuInit; a driver for CUDA 11 or newer is needed"},
      {ASSAY_FAKE_DRIVER, "cuInit=100",
       "no GPU: the NVIDIA driver lists none (CUDA_VISIBLE_DEVICES hides those it does not name)"},
      {ASSAY_FAKE_DRIVER, "devices=0",
       "no GPU: the NVIDIA driver lists none (CUDA_VISIBLE_DEVICES hides those it does not name)"},
      {ASSAY_FAKE_DRIVER, "cuInit=804",
       "no GPU: the NVIDIA driver does not start: CUDA_ERROR_OTHER (as the driver explains it)"},
  };
  for (const Row& row : rows) {
    setenv("ASSAY_CUDA_DRIVER", row.library, 1);
    fake(row.plan);
    EXPECT_EQ(describe_gpu(), row.message);
    EXPECT_FALSE(gpu_available());
    EXPECT_EQ(gpu_arch(), "");
    EXPECT_EQ(message_of([] { make_cuda_backend({}); }), row.message);
  }
}

TEST_F(CudaBackend, DescribesTheGpu) {
  EXPECT_EQ(describe_gpu(), "Fake GPU (sm_90), 1.5 GiB, CUDA 13.0");
  EXPECT_TRUE(gpu_available());
  EXPECT_EQ(gpu_arch(), "sm_90");
  EXPECT_EQ(make_cuda_backend({})->name(), "cuda Fake GPU (sm_90)");
}

TEST_F(CudaBackend, RunsThePlanOverInputsConstantsAndPoisonedOutputs) {
  const auto backend = make_cuda_backend({});
  const Outcome outcome = backend->run(small_plan(), small_inputs());
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(outcome.seconds, 2.0f * 1e-3);
  ASSERT_EQ(outcome.outputs.size(), 3u);
  const Tensor &y = outcome.outputs.at("y"), &z = outcome.outputs.at("z");
  EXPECT_EQ(y.bits(0), 0xffffffffu);
  EXPECT_EQ(y.value(1), 10.5);
  EXPECT_EQ(y.value(2), 20.5);
  EXPECT_EQ(z.bits(0), 0xffffffffu);
  EXPECT_EQ(z.value(1), 1.5);
  EXPECT_EQ(z.value(2), 2.5);
  EXPECT_EQ(outcome.outputs.at("empty").size(), 0);
  EXPECT_EQ(ask<int>("fake_allocations"), 0);
}

TEST_F(CudaBackend, GivesTheDriverFloatArithmeticThatItMayNotContract) {
  make_cuda_backend({})->run(small_plan(), small_inputs());
  const std::string loaded = ask<const char*>("fake_last_ptx");
  EXPECT_NE(loaded.find("mul.rn.f32"), std::string::npos) << loaded;
  EXPECT_EQ(loaded.find("mul.f32"), std::string::npos);
}

TEST_F(CudaBackend, TimesEachRepeatAlone) {
  const auto backend = make_cuda_backend({});
  const int before = ask<int>("fake_launches");
  EXPECT_EQ(backend->time(small_plan(), small_inputs(), 5, 2), std::vector<double>(5, 2.0f * 1e-3));
  EXPECT_EQ(ask<int>("fake_launches") - before, 2 * (5 + 2));
  EXPECT_EQ(ask<int>("fake_allocations"), 0);
  Plan plan = small_plan();
  plan.launches[1].function = "bad";
  EXPECT_NE(message_of([&] { backend->time(plan, small_inputs(), 5, 2); }).find("test cannot be timed: "),
            std::string::npos);
}

TEST_F(CudaBackend, FailedLaunchIsATrapThatNamesTheLaunch) {
  const auto backend = make_cuda_backend({});
  fake("cuLaunchKernel=1");
  const Outcome outcome = backend->run(small_plan(), small_inputs());
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, "launch");
  EXPECT_EQ(outcome.trap->where.function, "add");
  EXPECT_EQ(outcome.trap->message.rfind(
                "add (grid 1x1x1, block 32x1x1, 0 bytes of dynamic shared memory) cannot be launched: ", 0),
            0u)
      << outcome.trap->message;
  unsetenv("FAKE_DRIVER");
  EXPECT_FALSE(backend->run(small_plan(), small_inputs()).trap);
}

TEST_F(CudaBackend, SharedMemoryBeyondTheDefaultIsAskedFor) {
  const auto backend = make_cuda_backend({});
  fake("cuFuncSetAttribute=1");
  Plan plan = small_plan();
  EXPECT_FALSE(backend->run(plan, small_inputs()).trap);
  plan.launches[0].shared_bytes = 48 * 1024 + 4;
  EXPECT_TRUE(backend->run(plan, small_inputs()).trap);
}

TEST_F(CudaBackend, IllegalAddressIsATrapAndTheNextRunStartsAfresh) {
  const auto backend = make_cuda_backend({});
  Plan plan = small_plan();
  plan.launches[1].function = "bad";
  const Outcome outcome = backend->run(plan, small_inputs());
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, "out-of-bounds");
  EXPECT_EQ(outcome.trap->where.function, "bad") << "the second run, one launch at a time, names it";
  EXPECT_EQ(outcome.trap->message,
            "bad: the GPU reports CUDA_ERROR_ILLEGAL_ADDRESS (as the driver explains it)");
  EXPECT_FALSE(backend->run(small_plan(), small_inputs()).trap);
}

TEST_F(CudaBackend, WhatCannotBePreparedIsBadInput) {
  struct Row {
    const char* plan;
    void (*change)(Plan&);
    const char* message;
  };
  const Row rows[] = {
      {"cuModuleLoadDataEx=218", [](Plan&) {},
       "test.ptx: the driver refuses this PTX: CUDA_ERROR_OTHER (as the driver explains it): "
       "ptxas line 7; error : Unknown opcode; ptxas fatal : Aborted"},
      {"cuMemAlloc=2", [](Plan&) {},
       "allocating 8 bytes for x on the GPU: CUDA_ERROR_OUT_OF_MEMORY (as the driver explains it)"},
      {"", [](Plan& p) { p.launches[0].function = "sub"; }, "test.ptx has no entry sub"},
      {"", [](Plan& p) { p.launches[0].module = "n"; }, "add: no module is called n"},
      {"", [](Plan& p) { p.launches[0].arguments.pop_back(); },
       "add: 3 arguments for 4 parameters (test.ptx)"},
      {"", [](Plan& p) { p.launches[0] = launch("add", "a", "y"); },
       "a launch names a, which is no tensor of the plan"},
      {"", [](Plan& p) { p.workspaces[0].name = "x"; }, "two tensors or workspaces of the plan are called x"},
  };
  for (const Row& row : rows) {
    const auto backend = make_cuda_backend({});
    fake(row.plan);
    Plan plan = small_plan();
    row.change(plan);
    EXPECT_EQ(message_of([&] { backend->run(plan, small_inputs()); }), row.message);
    EXPECT_EQ(ask<int>("fake_allocations"), 0);
    unsetenv("FAKE_DRIVER");
  }
}

}  // namespace
}  // namespace assay
