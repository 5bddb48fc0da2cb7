// What a rehearsal folds into its sums: each value that may be born and that no later one surely tells of,
// on whatever way to a barrier where it ends.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/watch/rehearsal.h"
#include "src/base/watch/watched_instruction.h"

namespace assay::watch {

struct RehearsalTest {
  int32_t behind = -1;  ///< the instruction, with its guard; of wgmma's sums the wait for them
  int32_t reg = -1;
  ptx::Type type = ptx::Type::none;
  /// >= 0: exponentials tell of NaN; an infinity counts where this register holds none, as in Segment::Value.
  int32_t first = -1;
};

/// In the order of the text. `starts`: where branches lead. False: sums of wgmma that nothing waits for
/// before the run may go elsewhere, or sums that begin with infinities.
bool rehearsal_tests(const FunctionView&, const Rehearsal&, const std::vector<WatchedInstruction>&,
                     const std::vector<bool>& starts, std::vector<RehearsalTest>& tests);

}  // namespace assay::watch
