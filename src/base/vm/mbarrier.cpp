#include "src/base/vm/mbarrier.h"

#include <fmt/format.h>

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
