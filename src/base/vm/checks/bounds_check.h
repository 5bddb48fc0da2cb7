// Addresses of shared and local variables stay inside them. The machine traps where an access leaves a
// block's shared memory or a thread's local memory; this check follows an address from the variable it was
// made from, through sums, moves, selections, conversions and shuffles, and finds an access that reaches the
// variable beside it.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "src/base/vm/checks/check_log.h"
#include "src/base/vm/transfer.h"

namespace assay::vm {

class BoundsCheck : public PlainTrace {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::before | hook::after;
  explicit BoundsCheck(CheckLog& log) : log_(log) {}

  void enter(const LaunchContext&);
  void begin_block(Block&);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);

 private:
  /// 0: of no variable; else 1 + index into areas_.
  using Origin = uint16_t;
  struct Facts {
    enum class Act : uint8_t { none, clear, sum, select, shuffle, access } act = Act::none;
    std::vector<Slot> sources;  ///< of sums
    Origin symbol = 0;          ///< variable that the instruction names; of cp.async as its destination
  };
  struct WarpState {
    std::vector<uint32_t> known;  ///< lanes, by slot / 64
    std::vector<Origin> origin;   ///< by slot / 4 + lane
  };

  Facts facts_of(const Op&) const;
  Origin origin_of(const Op&, const ptx::Operand&) const;
  uint32_t& known(const Warp& warp, Slot slot) { return warps_[warp.index].known[slot / 64]; }
  Origin& origin(const Warp& warp, Slot slot, int lane) {
    return warps_[warp.index].origin[slot / 4 + static_cast<size_t>(lane)];
  }
  void put(Warp&, Slot, uint32_t mask, uint32_t found, const std::array<Origin, 32>&);
  void judge(Warp&, const Op&, const MemoryAccess&, Slot base);

  CheckLog& log_;
  const Code* code_ = nullptr;
  Block* block_ = nullptr;
  struct Area {
    const NamedArea* area;
    ptx::Space space;
  };
  std::vector<Area> areas_;
  std::vector<Facts> facts_;
  std::vector<WarpState> warps_;
};

}  // namespace assay::vm
