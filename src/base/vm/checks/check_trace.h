// The checking machine's trace: passes every hook to the checks that run.
#pragma once
#include <optional>

#include "src/base/vm/checks/checks.def"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/checks/split_products.h"
#include "src/base/vm/trace.h"

namespace assay::vm {

#define CHECK(type, member, name, summary) static_assert(IsTrace<type>);
#include "src/base/vm/checks/checks.def"

class CheckTrace : public PlainTrace {
 public:
#define CHECK(type, member, name, summary) | type::hooks
  static constexpr unsigned hooks = 0
#include "src/base/vm/checks/checks.def"
      ;
  static constexpr bool stops = true;
  static constexpr double nanoseconds = 300;

  CheckTrace(const Checks& checks, const CheckSetup& setup) {
#define CHECK(type, member, name, summary) \
  if (checks.member) member.emplace(setup);
#include "src/base/vm/checks/checks.def"
  }

  void begin_block(Block& block) {
    each([&](auto& check) { check.begin_block(block); });
  }
  void guarded(Warp& warp, const Op& op, uint32_t active) {
    each([&](auto& check) { check.guarded(warp, op, active); });
  }
  void before(Warp& warp, const Op& op, uint32_t mask) {
    each([&](auto& check) { check.before(warp, op, mask); });
    if (split) split->before(warp, op, mask);
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    if (split) split->after(warp, op, mask);
    each([&](auto& check) { check.after(warp, op, mask); });
  }
  void landed(Warp& warp, const Landing& landing) {
    each([&](auto& check) { check.landed(warp, landing); });
  }
  void released(Block& block) {
    each([&](auto& check) { check.released(block); });
  }
  void end_block(Block& block) {
    each([&](auto& check) { check.end_block(block); });
  }

  /// Nothing more can change what the run is for.
  bool finished() const {
    return stray && stray->matter();
  }
  /// Before the blocks of a launch.
  void enter(const LaunchContext& context) {
    each([&](auto& check) { check.enter(context); });
  }

#define CHECK(type, member, name, summary) std::optional<type> member;
#include "src/base/vm/checks/checks.def"
  std::optional<StrayReads> stray;     ///< in a run of its own
  std::optional<SplitProducts> split;  ///< in a run beside the one that counts

 private:
  template <class Visit>
  void each(Visit visit) {
#define CHECK(type, member, name, summary) \
  if (member) visit(*member);
#include "src/base/vm/checks/checks.def"
    if (stray) visit(*stray);
  }
};

}  // namespace assay::vm
