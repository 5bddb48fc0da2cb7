// Memory that lies elsewhere, at the addresses that it has there; runs that are given up, or are too long.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "src/base/numerics/abandon.h"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/exact_run.h"
#include "src/base/vm/machine.h"

namespace assay::vm {
namespace {

/// bump: p[i] += 1 for every thread i. spin: has no end.
const char* kText = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry bump(.param .u64 p) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r3, %r2, 1;
  st.global.u32 [%rd3], %r3;
  ret;
}
.visible .entry spin(.param .u64 p) {
LOOP:
  bra LOOP;
}
)";

Program program_of(const char* entry, uint64_t address, uint32_t threads) {
  Program program;
  program.modules.push_back({"m", "test.ptx", std::make_shared<std::string>(kText)});
  Launch launch;
  launch.module = "m", launch.function = entry;
  launch.block = {threads, 1, 1};
  launch.arguments.push_back(Argument::of_bytes(8).put_bytes(0, &address, sizeof address));
  program.launches.push_back(launch);
  return program;
}

struct Words {
  uint32_t before = 5, of_storage[32] = {}, after = 5;

  uint64_t address() const { return reinterpret_cast<uint64_t>(of_storage); }
  LiveStorage storage() {
    return {"words", address(), sizeof of_storage, reinterpret_cast<std::byte*>(of_storage),
            nullptr, nullptr};
  }
};

TEST(InPlace, ALaunchWorksOnTheMemoryItself) {
  Words words;
  const LiveStorage live[] = {words.storage()};
  EXPECT_FALSE(run_in_place(program_of("bump", words.address(), 32), live, {}).trap);
  EXPECT_FALSE(run_in_place(program_of("bump", words.address(), 32), live, {}).trap);
  for (const uint32_t word : words.of_storage) EXPECT_EQ(word, 2u);
}

TEST(InPlace, WhatLiesBesideIsOutOfReach) {
  Words words;
  const LiveStorage live[] = {words.storage()};
  for (const auto& [address, threads] :
       {std::pair{words.address(), 33u}, std::pair{words.address() - 4, 1u}, std::pair{uint64_t{0}, 1u}}) {
    const Outcome outcome = run_in_place(program_of("bump", address, threads), live, {});
    ASSERT_TRUE(outcome.trap);
    EXPECT_EQ(outcome.trap->kind, TrapKind::out_of_bounds);
  }
  EXPECT_EQ(words.before, 5u);
  EXPECT_EQ(words.after, 5u);
}

TEST(InPlace, ABufferMayHaveAnAddressOfItsOwn) {
  constexpr uint64_t place = 0x7f12'3456'7000;
  Program program = program_of("bump", place, 32);
  program.places["x"] = place;
  const TensorMap inputs{{"x", Tensor("x", Dtype::i32, {{"", 32}})}};
  const Outcome outcome = run(program, inputs, {});
  ASSERT_FALSE(outcome.trap);
  EXPECT_EQ(outcome.changed_inputs.at("x").bits(31), 1u);
  EXPECT_TRUE(run_checked(program, inputs, {}, {}).findings.empty());
}

TEST(InPlace, ALaunchThatIsTooLongEnds) {
  MachineOptions options;
  options.most_lane_instructions = 1'000'000;
  EXPECT_THROW(run_in_place(program_of("spin", 0, 32), {}, options), OverBudget);
  EXPECT_FALSE(run_in_place(program_of("bump", 0, 1), {}, options).trap->message.empty());
}

TEST(InPlace, ARunThatIsGivenUpEndsWhateverLooksAtIt) {
  const std::atomic<int> flag{1};
  const LentFlag lent(&flag);
  const Program program = program_of("spin", 0, 32);
  EXPECT_THROW(run_in_place(program, {}, {}), Abandoned);
  EXPECT_THROW(run(program, {}, {}), Abandoned);
  EXPECT_THROW(run_checked(program, {}, {}, {}), Abandoned);
  EXPECT_THROW(run_exact(program, {}, {}), Abandoned);
}

TEST(InPlace, AFlagIsLentToItsOwnThreadAndGivenBack) {
  const std::atomic<int> flag{1};
  {
    const LentFlag lent(&flag);
    EXPECT_TRUE(is_abandoned());
    const LentFlag none(nullptr);
    EXPECT_FALSE(is_abandoned());
  }
  EXPECT_FALSE(is_abandoned());
}

}  // namespace
}  // namespace assay::vm
