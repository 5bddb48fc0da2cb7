// Every kernel of the project and programs for Hopper, with the watch in them.
#include <gtest/gtest.h>

#include "fuzz/generator.h"
#include "kernels/claim.h"
#include "kernels/kernel.h"
#include "tests/watch/traced_and_noted.h"
#include "tools/hopper/programs.h"

namespace assay::watch {
namespace watched_kernels_test {

TEST(WatchedKernels, LeaveTheSameBitsAndNoteWhatTheTraceSees) {
  for (const Kernel& kernel : kernels()) {
    const Operator& op = find_operator(kernel.operator_name);
    Feedback feedback;
    int cases = 0;
    for (uint64_t i = 0; cases < 1 && i < 60; ++i) {
      Case c = draw_case(kernel, op, feedback, 22, i);
      if (c.T * c.B * c.H > 100 || c.K * c.V > 3000 || !c.blocks.empty()) continue;
      if (i % 2 == 1) c.decay = "extreme";
      const ResolvedCase resolved = resolve_unchecked(c, op);
      const TensorMap inputs = draw_inputs(resolved);
      const TracedAndNoted made = traced_and_noted(program_of(kernel, resolved, inputs), inputs);
      EXPECT_TRUE(made.same_outputs && made.same_trap) << token_of(c) << made.text.substr(0, 300);
      EXPECT_EQ(made.traced, made.noted) << token_of(c);
      EXPECT_FALSE(made.trapped) << token_of(c);
      EXPECT_LT(made.added, 1) << token_of(c);
      ++cases;
    }
    EXPECT_GT(cases, 0) << kernel.name;
  }
}

hopper::NamedProgram hopper_program(const std::string& name) {
  for (hopper::NamedProgram& program : hopper::programs())
    if (program.name == name) return std::move(program);
  return {};
}

TEST(WatchedHopperPrograms, LeaveTheSameBits) {
  for (const hopper::NamedProgram& program : hopper::programs()) {
    const TracedAndNoted made = traced_and_noted(program.program, program.inputs);
    EXPECT_TRUE(made.same_outputs && made.same_trap) << program.name << made.text.substr(0, 200);
    EXPECT_EQ(made.traced, made.noted) << program.name;
  }
}

/// A group of wgmma is one site, its last: here of all on one line of the source.
std::map<std::string, std::pair<bool, bool>> of_groups(
    const std::map<std::string, std::pair<bool, bool>>& lines) {
  std::map<std::string, std::pair<bool, bool>> groups;
  for (const auto& [line, born] : lines) {
    auto& group = groups[line.substr(line.find(' '))];
    group.first |= born.first, group.second |= born.second;
  }
  return groups;
}

TEST(WatchedHopperPrograms, NoteBirthsInSumsOfWarpgroups) {
  // What a and b hold at an element of a row and of a column that meet; what is born.
  struct Row {
    uint64_t a, b;
    bool nan, infinity;
  };
  const Row rows[] = {
      {0x7f7f, 0x7f7f, false, true},   // overflow
      {0x7f80, 0x0000, true, false},   // infinity times zero: b's whole column is zero
      {0x7fc0, 0x3f80, false, false},  // came in
      {0x7f80, 0x3f80, false, false}, {0x3f80, 0x3f80, false, false},
  };
  for (const Row& row : rows) {
    hopper::NamedProgram gemm = hopper_program("gemm");
    Tensor &a = gemm.inputs.at("a"), &b = gemm.inputs.at("b");
    const int64_t depth = a.axes[1].size;
    a.set_bits(109 * depth + 5, row.a);
    for (int64_t k = 0; k < depth; ++k)
      if (k == 5 || row.b == 0) b.set_bits(33 * depth + k, row.b);
    // Elsewhere other values come in.
    a.set_bits(50 * depth + 9, 0x7fc0), b.set_bits(40 * depth + 2, 0x7fc0);
    const TracedAndNoted made = traced_and_noted(gemm.program, gemm.inputs);
    EXPECT_TRUE(made.same_outputs && made.same_trap && !made.trapped) << made.text.substr(0, 300);
    EXPECT_EQ(of_groups(made.traced), of_groups(made.noted));
    bool nan = false, infinity = false;
    for (const auto& [line, born] : made.noted) nan |= born.first, infinity |= born.second;
    EXPECT_EQ(nan, row.nan) << std::hex << row.a;
    EXPECT_EQ(infinity, row.infinity) << std::hex << row.a;
  }
}

}  // namespace watched_kernels_test
}  // namespace assay::watch
