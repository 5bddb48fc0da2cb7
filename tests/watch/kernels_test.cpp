// Every kernel of the project and programs for Hopper, with the watch in them.
#include <gtest/gtest.h>

#include <iostream>

#include "fuzz/generator.h"
#include "kernels/claim.h"
#include "kernels/kernel.h"
#include "tests/watch/traced_and_noted.h"

namespace assay::watch {
namespace watched_kernels_test {

TEST(WatchedKernels, LeaveTheSameBitsAndNoteWhatTheTraceSees) {
  for (const Kernel& kernel : kernels()) {
    const Operator& op = find_operator(kernel.operator_name);
    Feedback feedback;
    double added = 0;
    int cases = 0;
    WatchCounts counts;
    for (uint64_t i = 0; cases < 2 && i < 40; ++i) {
      Case c = draw_case(kernel, op, feedback, 22, i);
      if (c.T * c.B * c.H > 160 || c.K * c.V > 4000 || !c.blocks.empty()) continue;
      if (cases == 1) c.decay = "extreme";
      const ResolvedCase resolved = resolve_unchecked(c, op);
      const TensorMap inputs = draw_inputs(resolved);
      const TracedAndNoted made = traced_and_noted(program_of(kernel, resolved, inputs), inputs);
      EXPECT_TRUE(made.same_outputs && made.same_trap) << token_of(c) << made.text.substr(0, 300);
      EXPECT_EQ(made.traced, made.noted) << token_of(c);
      EXPECT_FALSE(made.trapped) << token_of(c);
      added += made.added, counts = made.counts, ++cases;
      std::cout << token_of(c) << ": " << made.noted.size() << " births, " << counts.watched << " of "
                << counts.instructions << " watched, added " << counts.added << ", aside " << counts.added_aside
                << ", run " << 100 * made.added << " %" << std::endl;
    }
    EXPECT_GT(cases, 0) << kernel.name;
  }
}

}  // namespace watched_kernels_test
}  // namespace assay::watch
