#include "src/base/vm/trace.h"

#include <gtest/gtest.h>

#include "src/base/vm/traced_launch.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

struct Counting : PlainTrace {
  static constexpr unsigned hooks = hook::after | hook::guarded;
  void guarded(Warp&, const Op&, uint32_t) { ++guards; }
  void after(Warp&, const Op& op, uint32_t) { executed += op.guarded; }
  int guards = 0, executed = 0;  ///< of guarded instructions
};
struct Misspelt : PlainTrace {
  static constexpr unsigned hooks = hook::after;
  void afer(Warp&, const Op&, uint32_t) {}
};
struct Unnamed : PlainTrace {
  static constexpr unsigned hooks = hook::after;
  void before(Warp&, const Op&, uint32_t) {}
  void after(Warp&, const Op&, uint32_t) {}
};
struct OtherArguments : PlainTrace {
  void after(Warp&, const Op&) {}
};
struct Foreign {
  static constexpr unsigned hooks = 0;
};

static_assert(IsTrace<PlainTrace> && IsTrace<Counting>);
static_assert(!IsTrace<Misspelt> && !IsTrace<Unnamed> && !IsTrace<OtherArguments> && !IsTrace<Foreign>);

TEST(Trace, SeesWhatItNamesAndNothingElse) {
  SmallKernel kernel;
  kernel.body = "setp.eq.u32 %p1, %t, 99; @%p1 mov.u32 %d, 1; @!%p1 mov.u32 %d, 2;";
  TensorMap inputs;
  const Program plan = plan_of(kernel, inputs);
  PreparedProgram prepared(plan, inputs, {"sm_90", 1, 0});
  Counting trace;
  EXPECT_FALSE(run_traced(prepared, 0, trace).trap);
  EXPECT_EQ(trace.guards, 2);
  EXPECT_EQ(trace.executed, 1);  // no lane takes the first
}

}  // namespace
}  // namespace assay::vm
