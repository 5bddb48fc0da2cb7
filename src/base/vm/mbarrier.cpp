#include "src/base/vm/mbarrier.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "src/base/vm/bulk_copy.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

/// Failed waits of a warp, one after the other, while no mbarrier of its cluster changed.
constexpr uint64_t hopeless = uint64_t{1} << 20;

Mbarrier read(const Block& block, uint64_t place) {
  uint64_t word;
  std::memcpy(&word, block.shared.data() + place, sizeof word);
  return Mbarrier::of(word);
}

}  // namespace

bool complete_bytes(Warp& warp, const Op& op, int lane, uint64_t place, uint32_t bytes) {
  Block& block = *warp.block;
  uint64_t word;
  std::memcpy(&word, block.shared.data() + place, sizeof word);
  if (word == Mbarrier::none)
    return raise(warp, op, lane, TrapKind::barrier,
                 "bytes complete at an mbarrier that is not initialised there");
  Mbarrier b = Mbarrier::of(word);
  if (!b.add_bytes(-int64_t{bytes}))
    return raise(warp, op, lane, TrapKind::barrier,
                 "more bytes complete in a phase of an mbarrier than it can count");
  b.complete();
  word = b.word();
  std::memcpy(block.shared.data() + place, &word, sizeof word);
  ++block.changes;
  return true;
}

bool complete_stored(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t barrier[32];
  lane_addresses(warp, op.s[2], op.address2_wide, op.offset2, barrier);
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t place = shared_place(warp, barrier[lane], 8, true);
    if (place == no_shared || barrier[lane] % 8 != 0)
      return bad_access(warp, op, lane, barrier[lane], 8, ptx::Space::shared, place != no_shared);
    if (!complete_bytes(warp, op, lane, place, uint32_t{op.element_bytes} * op.vector_length)) return false;
  }
  return true;
}

Waited wait_for_phase(Warp& warp, const Op& op, int lane, uint64_t place, bool phase) {
  Block& block = *warp.block;
  Mbarrier b = read(block, place);
  if (b.phase == phase) {
    if (!land_at(block, place)) return Waited::trapped;
    b = read(block, place);
  }
  if (b.phase != phase) {
    warp.idle_polls = 0;
    return Waited::over;
  }
  warp.yields = true;
  if (warp.polled_at != block.changes) warp.polled_at = block.changes, warp.idle_polls = 0;
  if (++warp.idle_polls < hopeless) return Waited::pending;
  raise(warp, op, lane, TrapKind::hang,
        fmt::format(
            "waits for the end of a phase of parity {} of an mbarrier where {} of {} arrivals and {} bytes "
            "are pending, and nothing changes any more",
            phase ? 1 : 0, b.pending, b.expected, b.bytes));
  return Waited::trapped;
}

}  // namespace assay::vm
