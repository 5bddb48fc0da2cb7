#include "src/base/vm/held_entries.h"

#include <gtest/gtest.h>

#include <thread>

#include "src/base/vm/launch.h"

namespace assay::vm {
namespace {

/// A module that no other test has, with two entries that share a variable.
Module module_of(int number) {
  const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.global .b32 counter;\n" +
                           std::string(".visible .entry a()\n{\n.reg .b32 %r<3>;\nmov.u32 %r1, ") +
                           std::to_string(7000 + number) + ";\nst.global.b32 [counter], %r1;\nret;\n}\n" +
                           ".visible .entry b(.param .u64 out)\n{\n.reg .b32 %r<3>; .reg .b64 %rd<3>;\n" +
                           "ld.global.b32 %r1, [counter];\nld.param.u64 %rd1, [out];\n" +
                           "st.global.b32 [%rd1], %r1;\nret;\n}\n";
  return {"m", "held.ptx", std::make_shared<const std::string>(text)};
}

/// What the cache held at most before goes back.
class HeldEntries : public ::testing::Test {
 protected:
  void TearDown() override { hold_at_most(before_); }
  const uint64_t before_ = hold_at_most(uint64_t{1} << 40);
};

TEST_F(HeldEntries, WhatIsKeptIsCountedAndTheSameAgain) {
  const uint64_t begin = bytes_held();
  const auto code = decoded(module_of(1), "a");
  EXPECT_EQ(bytes_held(), begin + held_bytes(*code));
  EXPECT_GT(held_bytes(*code), code->ops.size() * sizeof(Op));
  EXPECT_EQ(decoded(module_of(1), "a"), code) << "the same text, another string";
  EXPECT_EQ(bytes_held(), begin + held_bytes(*code));
  EXPECT_NE(decoded(module_of(1), "b"), code);
}

TEST_F(HeldEntries, WhatWasNotUsedForLongestGoesFirst) {
  const auto first = decoded(module_of(11), "a"), second = decoded(module_of(12), "a");
  EXPECT_EQ(decoded(module_of(11), "a"), first);  // used last
  hold_at_most(held_bytes(*first) + held_bytes(*second));
  const auto third = decoded(module_of(13), "a");
  EXPECT_LE(bytes_held(), held_bytes(*first) + held_bytes(*second));
  EXPECT_EQ(decoded(module_of(13), "a"), third);
  EXPECT_EQ(decoded(module_of(11), "a"), first);
  EXPECT_NE(decoded(module_of(12), "a"), second) << "decoded anew; who has the old one keeps it";
  EXPECT_EQ(second->ops.size(), first->ops.size());
}

TEST_F(HeldEntries, OneIsKeptHoweverLargeItIs) {
  hold_at_most(1);
  const auto code = decoded(module_of(21), "a");
  EXPECT_EQ(bytes_held(), held_bytes(*code));
  EXPECT_EQ(decoded(module_of(21), "a"), code);
}

TEST_F(HeldEntries, LaunchesOfOneModuleShareItsVariables) {
  for (const uint64_t most : {uint64_t{1}, uint64_t{1} << 40}) {
    hold_at_most(most);
    Program program;
    program.name = "test", program.modules = {module_of(31)};
    program.outputs = {{"out", Dtype::i32, {{"T", 1}}}};
    program.launches = {{.module = "m", .function = "a", .grid = {1, 1, 1}, .block = {1, 1, 1}},
                        {.module = "m",
                         .function = "b",
                         .grid = {1, 1, 1},
                         .block = {1, 1, 1},
                         .arguments = {PointerArgument{"out", 0}}}};
    const Outcome outcome = run(program, {}, {});
    EXPECT_EQ(outcome.outputs.at("out").bits(0), 7031u);
    EXPECT_EQ(outcome.changed_variables, std::vector<std::string>{"counter"});
  }
}

TEST_F(HeldEntries, ThreadsThatCrowdASmallCacheGetWhatTheyAskedFor) {
  hold_at_most(1 << 14);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&wrong, t] {
      for (int i = 0; i < 200; ++i) {
        const int number = 41 + (i * (t + 1)) % 7;
        const auto code = decoded(module_of(number), "a");
        bool found = false;
        for (const Immediate& immediate : code->immediates)
          found |= immediate.bits == static_cast<uint64_t>(7000 + number);
        wrong += !found;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace assay::vm
