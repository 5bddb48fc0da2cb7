#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "tests/backend/small_program.h"

namespace assay {
namespace {

class CudaBackend : public testing::Test {
 protected:
  void SetUp() override { setenv("ASSAY_CUDA_DRIVER", ASSAY_FAKE_DRIVER, 1); }
  void TearDown() override {
    unsetenv("ASSAY_CUDA_DRIVER");
    unsetenv("FAKE_DRIVER");
  }
  static void fake(const char* plan) { setenv("FAKE_DRIVER", plan, 1); }
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
      {"/no/such/libcuda.so.1", "", "the NVIDIA driver's /no/such/libcuda.so.1 cannot be opened"},
      {"libm.so.6", "", "the NVIDIA driver has no cuInit; a driver for CUDA 11 or newer is needed"},
      {ASSAY_FAKE_DRIVER, "cuInit=100",
       "the NVIDIA driver lists none (CUDA_VISIBLE_DEVICES hides those it does not name)"},
      {ASSAY_FAKE_DRIVER, "devices=0",
       "the NVIDIA driver lists none (CUDA_VISIBLE_DEVICES hides those it does not name)"},
      {ASSAY_FAKE_DRIVER, "cuInit=804",
       "the NVIDIA driver does not start: CUDA_ERROR_OTHER (as the driver explains it)"},
  };
  for (const Row& row : rows) {
    setenv("ASSAY_CUDA_DRIVER", row.library, 1);
    fake(row.plan);
    EXPECT_EQ(describe_gpu(), std::string("none: ") + row.message);
    EXPECT_FALSE(gpu_available());
    EXPECT_EQ(gpu_arch(), "");
    EXPECT_EQ(message_of([] { make_cuda_backend({}); }),
              fmt::format("no GPU: {}; use --backend vm", row.message));
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
  const Outcome outcome = backend->run(small_program(), small_inputs());
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
}

TEST_F(CudaBackend, TimesEachRepeatAlone) {
  const auto backend = make_cuda_backend({});
  EXPECT_EQ(backend->time(small_program(), small_inputs(), 5, 2), std::vector<double>(5, 2.0f * 1e-3));
  Program plan = small_program();
  plan.launches[1].function = "bad";
  EXPECT_NE(message_of([&] { backend->time(plan, small_inputs(), 5, 2); }).find("test cannot be timed: "),
            std::string::npos);
}

TEST_F(CudaBackend, FailedLaunchIsATrapThatNamesTheLaunch) {
  fake("cuLaunchKernel=1");
  const auto backend = make_cuda_backend({});
  const Outcome outcome = backend->run(small_program(), small_inputs());
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::launch);
  EXPECT_EQ(outcome.trap->where.function, "add");
  EXPECT_EQ(outcome.trap->message.rfind(
                "add (grid 1x1x1, block 32x1x1, 0 bytes of dynamic shared memory) cannot be launched: ", 0),
            0u)
      << outcome.trap->message;
}

TEST_F(CudaBackend, SharedMemoryBeyondTheDefaultIsAskedFor) {
  fake("cuFuncSetAttribute=1");
  const auto backend = make_cuda_backend({});
  Program plan = small_program();
  EXPECT_FALSE(backend->run(plan, small_inputs()).trap);
  plan.launches[0].shared_bytes = 48 * 1024 + 4;
  EXPECT_TRUE(backend->run(plan, small_inputs()).trap);
}

TEST_F(CudaBackend, IllegalAddressIsATrapAndTheNextRunStartsAfresh) {
  const auto backend = make_cuda_backend({});
  Program plan = small_program();
  plan.launches[1].function = "bad";
  const Outcome outcome = backend->run(plan, small_inputs());
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::out_of_bounds);
  EXPECT_EQ(outcome.trap->where.function, "bad") << "the second run, one launch at a time, names it";
  EXPECT_EQ(outcome.trap->message,
            "bad: the GPU reports CUDA_ERROR_ILLEGAL_ADDRESS (as the driver explains it)");
  EXPECT_FALSE(backend->run(small_program(), small_inputs()).trap);
}

TEST_F(CudaBackend, KernelThatDoesNotEndIsAHang) {
  fake("cuEventQuery=600");
  setenv("ASSAY_GPU_TIMEOUT", "0.05", 1);
  const Outcome outcome = make_cuda_backend({})->run(small_program(), small_inputs());
  unsetenv("ASSAY_GPU_TIMEOUT");
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::hang);
  EXPECT_EQ(outcome.trap->message, "the GPU did not finish in 0.05 s");
}

TEST_F(CudaBackend, SurvivesADriverThatCrashes) {
  const auto backend = make_cuda_backend({});
  Program plan = small_program();
  plan.launches[1].function = "crash";
  const Outcome outcome = backend->run(plan, small_inputs());
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->message, "test: the NVIDIA driver crashed over this program");
  EXPECT_FALSE(backend->run(small_program(), small_inputs()).trap);
}

TEST_F(CudaBackend, WhatCannotBePreparedIsBadInput) {
  struct Row {
    const char* plan;
    void (*change)(Program&);
    const char* message;
  };
  const Row rows[] = {
      {"cuModuleLoadDataEx=218", [](Program&) {},
       "test.ptx: the driver refuses this PTX: CUDA_ERROR_OTHER (as the driver explains it): "
       "ptxas line 7; error : Unknown opcode; ptxas fatal : Aborted"},
      {"cuMemAlloc=2", [](Program&) {},
       "allocating 8 bytes for x on the GPU: CUDA_ERROR_OUT_OF_MEMORY (as the driver explains it)"},
      {"", [](Program& p) { p.launches[0].function = "sub"; }, "test.ptx has no entry sub"},
      {"", [](Program& p) { p.launches[0].module = "n"; }, "add: no module is called n"},
      {"", [](Program& p) { p.launches[0].arguments.pop_back(); },
       "test: launch of add has 3 arguments, the entry takes 4"},
      {"", [](Program& p) { p.launches[0] = launch("add", "a", "y"); },
       "a launch names a, which is no tensor of the program"},
      {"", [](Program& p) { p.workspaces[0].name = "x"; }, "test: two buffers are named x"},
  };
  for (const Row& row : rows) {
    fake(row.plan);
    const auto backend = make_cuda_backend({});
    Program plan = small_program();
    row.change(plan);
    EXPECT_EQ(message_of([&] { backend->run(plan, small_inputs()); }), row.message);
    unsetenv("FAKE_DRIVER");
  }
}

}  // namespace
}  // namespace assay
