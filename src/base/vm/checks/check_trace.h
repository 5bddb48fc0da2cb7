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

static_assert(IsTrace<RaceCheck> && IsTrace<WrittenCheck> && IsTrace<BoundsCheck> && IsTrace<WrapCheck> &&
              IsTrace<AsyncCheck>);

class CheckTrace : public PlainTrace {
 public:
  static constexpr unsigned hooks =
      RaceCheck::hooks | WrittenCheck::hooks | BoundsCheck::hooks | WrapCheck::hooks | AsyncCheck::hooks;
  static constexpr bool stops = true;

  void begin_block(Block& block) {
    each([&](auto& check) { check.begin_block(block); });
  }
  void guarded(Warp& warp, const Op& op, uint32_t active) {
    each([&](auto& check) { check.guarded(warp, op, active); });
  }
  void before(Warp& warp, const Op& op, uint32_t mask) {
    each([&](auto& check) { check.before(warp, op, mask); });
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    each([&](auto& check) { check.after(warp, op, mask); });
  }
  void landed(Warp& warp, const Landing& landing) {
    each([&](auto& check) { check.landed(warp, landing); });
  }
  void released(Block& block) {
    each([&](auto& check) { check.released(block); });
  }

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
