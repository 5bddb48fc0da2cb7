// Programs that were written without a look at the instruction table: each gives what the host computes, or
// is refused by the name of what is missing.
#include "tests/ptx/programs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <sstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/machine.h"

namespace assay {
namespace programs_test {

std::shared_ptr<const std::string> text() {
  static const auto made = [] {
    std::ifstream file(ASSAY_PROGRAMS_PTX);
    std::stringstream whole;
    whole << file.rdbuf();
    return std::make_shared<const std::string>(whole.str());
  }();
  return made;
}

Outcome run(const std::string& name, const Words& in, size_t out, std::array<uint32_t, 3> grid,
            std::array<uint32_t, 3> block, uint32_t n) {
  Program plan;
  plan.name = name;
  plan.modules.push_back({"m", "programs.ptx", text()});
  Tensor words("in", Dtype::i32, {{"T", static_cast<int64_t>(in.size())}});
  for (size_t i = 0; i < in.size(); ++i) words.set_bits(static_cast<int64_t>(i), in[i]);
  plan.outputs.push_back({"out", Dtype::i32, {{"T", static_cast<int64_t>(out)}}});
  plan.launches.push_back({"m",
                           name,
                           grid,
                           block,
                           0,
                           {PointerArgument{"in", 0}, PointerArgument{"out", 0}, static_cast<int32_t>(n)}});
  return vm::run(plan, {{"in", words}}, {"sm_90", 1, uint64_t{1} << 22});
}

TEST(Programs, GiveWhatTheHostComputes) {
  EXPECT_GE(programs().size(), 20u);
  for (const ListedProgram& program : programs()) {
    const Words in = inputs_of(program);
    const Outcome outcome = run(program.name, in, program.out, program.grid, program.block, program.n);
    if (outcome.trap) {
      ADD_FAILURE() << program.name << ": " << outcome.trap->message;
      continue;
    }
    const Words expected = program.expected(in, program.n);
    ASSERT_EQ(expected.size(), program.out) << program.name;
    const Allowed allowed = program.allowed ? program.allowed(in) : Allowed{};
    int wrong = 0;
    for (size_t i = 0; i < program.out && wrong < 3; ++i) {
      const auto got = static_cast<uint32_t>(outcome.outputs.at("out").bits(static_cast<int64_t>(i)));
      const double difference =
          std::fabs(static_cast<double>(std::bit_cast<float>(got)) - std::bit_cast<float>(expected[i]));
      const bool good = got == expected[i] || (allowed && difference <= allowed(i));
      wrong += !good;
      EXPECT_TRUE(good) << program.name << "[" << i << "] gave " << std::hex << got << ", the host has "
                        << expected[i] << ", difference " << difference << " of "
                        << (allowed ? allowed(i) : 0);
    }
  }
}

TEST(Programs, PrintAndAllocateAsNvccCompilesIt) {
  Words in(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = 3 * i;
  const Outcome printing = run("printing", in, 32, {1, 1, 1}, {32, 1, 1}, 8);
  ASSERT_FALSE(printing.trap) << printing.trap->message;
  ASSERT_EQ(printing.printed.size(), 32u);
  EXPECT_EQ(printing.printed[5], "block (0,0,0), thread (5,0,0): 15");
  const Outcome allocation = run("allocation", in, 32, {1, 1, 1}, {32, 1, 1}, 8);
  ASSERT_FALSE(allocation.trap) << allocation.trap->message;
  for (int64_t i = 0; i < 32; ++i)
    EXPECT_EQ(allocation.outputs.at("out").bits(i), in[static_cast<size_t>(i)]);
}

TEST(Programs, CallThemselvesAsNvccCompilesIt) {
  Words in(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = i;
  const Outcome outcome = run("recursion", in, 32, {1, 1, 1}, {32, 1, 1}, 3);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  std::vector<uint64_t> fibonacci{0, 1};
  for (int i = 2; i < 12; ++i) fibonacci.push_back(fibonacci.back() + fibonacci[fibonacci.size() - 2]);
  for (int64_t i = 0; i < 32; ++i)
    EXPECT_EQ(outcome.outputs.at("out").bits(i), fibonacci[static_cast<size_t>(i % 8 + 3)]) << i;
}

TEST(Programs, AreRefusedByTheNameOfWhatIsMissing) {
  const std::pair<const char*, const char*> refused[] = {
      {"several_gpus", "multimem"},
      {"texture", "tex.1d"},
  };
  for (const auto& [name, message] : refused) {
    try {
      run(name, Words(32, 1), 32, {1, 1, 1}, {32, 1, 1}, 8);
      ADD_FAILURE() << name << " ran";
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

}  // namespace programs_test
}  // namespace assay
