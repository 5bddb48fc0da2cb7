// The checking machine's trace: passes every hook to the checks that run.
#pragma once
#include <optional>

#include "src/base/vm/checks/async_check.h"
#include "src/base/vm/checks/bounds_check.h"
#include "src/base/vm/checks/race_check.h"
#include "src/base/vm/checks/wrap_check.h"
#include "src/base/vm/checks/written_check.h"
#include "src/base/vm/trace.h"

namespace assay::vm {

class CheckTrace {
 public:
  static constexpr bool enabled = true, stops = true;

  void begin_block(Block& block) {
    each([&](auto& check) { check.begin_block(block); });
  }
  void guarded(Warp& warp, const Op& op, uint32_t active) {
    if (written) written->guarded(warp, op, active);
  }
  void before(Warp& warp, const Op& op, uint32_t mask) {
    each([&](auto& check) { check.before(warp, op, mask); });
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    each([&](auto& check) { check.after(warp, op, mask); });
  }
  void landed(Warp& warp, const Landing& landing) {
    if (races) races->landed(warp, landing);
    if (written) written->landed(warp, landing);
    if (async) async->landed(warp, landing);
  }
  void released(Block& block) {
    if (races) races->released(block);
    if (async) async->released(block);
  }
  void end_block(Block&) {}

  /// Before the blocks of a launch.
  void enter(const LaunchContext& context) {
    each([&](auto& check) { check.enter(context); });
  }

  std::optional<RaceCheck> races;
  std::optional<WrittenCheck> written;
  std::optional<BoundsCheck> bounds;
  std::optional<WrapCheck> wraps;
  std::optional<AsyncCheck> async;

 private:
  template <class Visit>
  void each(Visit visit) {
    if (races) visit(*races);
    if (written) visit(*written);
    if (bounds) visit(*bounds);
    if (wraps) visit(*wraps);
    if (async) visit(*async);
  }
};

}  // namespace assay::vm
