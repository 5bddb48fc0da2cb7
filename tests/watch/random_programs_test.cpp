// Programs drawn at random: with the watch in them they leave the same bits, and note what the machine's own
// trace sees, no more.
#include <gtest/gtest.h>

#include "tests/vm/drawn_program.h"
#include "tests/vm/small_kernel.h"
#include "tests/watch/traced_and_noted.h"

namespace assay::watch {
namespace random_programs_test {

TEST(RandomPrograms, LeaveTheSameBitsAndNoteWhatTheTraceSees) {
  int births = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    vm::DrawnProgram drawing(seed);
    const std::string body = drawing.body();
    TensorMap inputs;
    const auto a = drawing.words(), b = drawing.words(), c = drawing.words();
    const Program program = vm::plan_of({.body = body, .a = a, .b = b, .c = c}, inputs);
    const TracedAndNoted made = traced_and_noted(program, inputs);
    ASSERT_FALSE(made.trapped) << "seed " << seed << body;
    ASSERT_TRUE(made.same_outputs && made.same_trap) << "seed " << seed << body;
    ASSERT_EQ(made.traced, made.noted) << "seed " << seed << vm::text_of({.body = body}) << made.text;
    births += static_cast<int>(made.noted.size());
  }
  EXPECT_GT(births, 1000);
}

}  // namespace random_programs_test
}  // namespace assay::watch
