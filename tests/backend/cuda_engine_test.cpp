#include "src/base/backend/cuda_engine.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "src/base/numerics/bad_input.h"
#include "tests/backend/small_program.h"

namespace assay {
namespace {

class CudaEngineOnFakeDriver : public testing::Test {
 protected:
  void SetUp() override { setenv("ASSAY_CUDA_DRIVER", ASSAY_FAKE_DRIVER, 1); }
  void TearDown() override {
    unsetenv("ASSAY_CUDA_DRIVER");
    unsetenv("FAKE_DRIVER");
  }
  template <typename Result>
  static Result ask(const char* function) {
    void* library = dlopen(ASSAY_FAKE_DRIVER, RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<Result (*)()>(dlsym(library, function))();
  }
};

TEST_F(CudaEngineOnFakeDriver, GivesTheDriverFloatArithmeticThatItMayNotContract) {
  CudaEngine engine;
  engine.run(small_program(), small_inputs(), false);
  const std::string loaded = ask<const char*>("fake_last_ptx");
  EXPECT_NE(loaded.find("mul.rn.f32"), std::string::npos) << loaded;
  EXPECT_EQ(loaded.find("mul.f32"), std::string::npos) << loaded;
}

TEST_F(CudaEngineOnFakeDriver, FreesItsBuffersAlsoWhenTheRunFails) {
  CudaEngine engine;
  engine.run(small_program(), small_inputs(), false);
  EXPECT_EQ(ask<int>("fake_allocations"), 0);
  for (const char* failure :
       {"cuMemcpyHtoD=1", "cuMemsetD8=1", "cuModuleGetFunction=500", "cuMemcpyDtoH=1"}) {
    setenv("FAKE_DRIVER", failure, 1);
    EXPECT_THROW(engine.run(small_program(), small_inputs(), false), BadInput) << failure;
    EXPECT_EQ(ask<int>("fake_allocations"), 0) << failure;
    EXPECT_FALSE(engine.lost());
  }
}

TEST_F(CudaEngineOnFakeDriver, TimesEveryLaunchOfEveryRepeatAndWarmup) {
  CudaEngine engine;
  const int before = ask<int>("fake_launches");
  std::optional<Trap> trap;
  EXPECT_EQ(engine.time(small_program(), small_inputs(), 5, 2, &trap).size(), 5u);
  EXPECT_FALSE(trap);
  EXPECT_EQ(ask<int>("fake_launches") - before, 2 * (5 + 2));
  EXPECT_EQ(ask<int>("fake_allocations"), 0);
}

TEST_F(CudaEngineOnFakeDriver, IsLostAfterAnErrorOfARunningKernel) {
  CudaEngine engine;
  Program plan = small_program();
  plan.launches[0].function = "bad";
  plan.launches.resize(1);
  const Outcome outcome = engine.run(plan, small_inputs(), false);
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::out_of_bounds);
  EXPECT_EQ(outcome.trap->where.function, "bad");
  EXPECT_TRUE(engine.lost());
  EXPECT_THROW(engine.run(small_program(), small_inputs(), false), BadInput);
  ask<int>("fake_restart");
}

TEST_F(CudaEngineOnFakeDriver, AViewIsReadWhereItsFirstElementLies) {
  CudaEngine engine;
  Program plan = small_program();
  plan.layouts["x"] = {{2}, {2}, 3, 6};
  const Outcome outcome = engine.run(plan, small_inputs(), false);
  ASSERT_FALSE(outcome.trap);
  const Tensor& z = outcome.outputs.at("z");
  EXPECT_EQ(z.value(1), 1.5);
  EXPECT_TRUE(std::isnan(z.value(2))) << "the gap behind the first element";
}

TEST_F(CudaEngineOnFakeDriver, BuffersMayShareBytesAndBeReadAndWritten) {
  CudaEngine engine;
  Program program = small_program();
  program.outputs = {{"x", Dtype::fp32, {{"T", 2}}}, {"y", Dtype::fp32, {{"T", 3}}}};
  program.aliases = {{"x", "w", 16}, {"y", "w", 12}};  // y[1] is x[0]
  program.launches = {launch("add", "x", "y")};
  const Outcome outcome = engine.run(program, small_inputs(), false);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(outcome.outputs.at("y").bits(0), 0xffffffffu);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(outcome.outputs.at("x").value(i), static_cast<double>(i) + 1.5);
    EXPECT_EQ(outcome.outputs.at("y").value(i + 1), static_cast<double>(i) + 1.5);
  }
  EXPECT_TRUE(outcome.changed_inputs.empty()) << "x is said to be written";
  EXPECT_EQ(ask<int>("fake_allocations"), 0);
}

TEST_F(CudaEngineOnFakeDriver, ADriverWithoutTensorMapsIsNamed) {
  CudaEngine engine;
  Program program = small_program();
  program.modules[0].ptx = std::make_shared<const std::string>(
      std::string(kPtx) + ".visible .entry tiles(.param .align 64 .b8 map[128]) { ret; }\n");
  const TileMap map{.element = TileMap::Element::f32, .sizes = {2}, .strides = {}, .box = {2}, .steps = {1}};
  program.launches = {launch("tiles", "x", "y")};
  program.launches[0].arguments = {Argument::of(PointerArgument{"x"}, map)};
  try {
    engine.run(program, small_inputs(), false);
    ADD_FAILURE() << "encoded";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "tiles: the NVIDIA driver encodes no tensor maps; one for CUDA 12 or newer is needed");
  }
}

}  // namespace
}  // namespace assay
