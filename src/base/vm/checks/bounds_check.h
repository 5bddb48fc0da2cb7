// Addresses of shared and local variables stay inside them. The machine traps where an access leaves a
// block's shared memory or a thread's local memory; this check follows an address from the variable it was
// made from, through sums, moves, selections, conversions and shuffles, and finds an access that reaches the
// variable beside it.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/vm/checks/check.h"

namespace assay::vm {

/// What an op does to the variables that addresses were made from.
struct BoundsFacts {
  enum class Act : uint8_t { none, clear, sum, carry, access } act = Act::none;
  std::vector<Slot> sources;  ///< of sums
  uint16_t symbol = 0;        ///< variable that the instruction names; of cp.async as its destination
};

class BoundsCheck : public Check<BoundsFacts> {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::before | hook::after;
  explicit BoundsCheck(const CheckSetup& setup) : Check(setup) {}

  void enter(const LaunchContext&);
  void begin_block(Block&);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);

 private:
  /// 0: of no variable; else 1 + index into areas_.
  using Origin = uint16_t;
  using Act = BoundsFacts::Act;

  BoundsFacts facts_of(const Op&, const Signature&) const;
  Origin origin_of(const Op&, const ptx::Operand&) const;
  void judge(const Warp&, const Op&, const MemoryAccess&, const NamedArea&);

  struct Area {
    const NamedArea* area;
    ptx::Space space;
  };
  std::vector<Area> areas_;
  RegisterMarks<Origin> origins_;
};

}  // namespace assay::vm
