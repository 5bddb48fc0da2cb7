// Which sides of its guards a run took: of conditional branches and of every other predicated instruction.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/vm/code.h"
#include "src/base/vm/trace.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

/// Sees guards and nothing else, so that a run costs hardly more than with PlainTrace.
struct BranchTrace : PlainTrace {
  static constexpr unsigned hooks = hook::guarded;
  static constexpr uint8_t held = 1, failed = 2;

  void enter(const Code& code) {
    ops = code.ops.data();
    sides.assign(code.ops.size(), 0);
  }
  void guarded(const Warp& warp, const Op& op, uint32_t active) {
    const uint32_t guard = op.guard_negated ? ~warp.mask(op.guard) : warp.mask(op.guard);
    sides[static_cast<size_t>(&op - ops)] |=
        static_cast<uint8_t>(((guard & active) != 0 ? held : 0) | ((~guard & active) != 0 ? failed : 0));
  }

  const Op* ops = nullptr;
  std::vector<uint8_t> sides;  ///< by instruction: 0 where it has no guard, or never ran
};

}  // namespace assay::vm
