#include "src/base/vm/warpgroup.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/vm/matrix_form.h"
#include "src/base/vm/rows/matrix_operands.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

/// One value in all lanes; the lane that differs from the first, or -1.
template <class T>
int differing_lane(const T* lanes) {
  for (int lane = 1; lane < 32; ++lane)
    if (lanes[lane] != lanes[0]) return lane;
  return -1;
}

bool uniform(Warp& warp, const Op& op, Slot slot, const char* what) {
  const int lane = differing_lane(warp.wide(slot));
  return lane < 0 || raise(warp, op, lane, TrapKind::warpgroup,
                           fmt::format("the descriptor of {} is {:#x} here and {:#x} in thread 0 of the warp",
                                       what, warp.wide(slot)[lane], warp.wide(slot)[0]));
}

/// The warp's next call is the one that the warps before it made at this place.
bool join(Warp& warp, const Op& op, const Warpgroup::Call& call) {
  Warpgroup& group = warp.block->warpgroups[warp.index / 4];
  const uint64_t place = group.executed[warp.index % 4]++;
  if (place == group.dropped + group.calls.size()) {
    group.calls.push_back(call);
  } else {
    const Warpgroup::Call& first = group.calls[static_cast<size_t>(place - group.dropped)];
    if (first.op != call.op)
      return raise(warp, op, 0, TrapKind::warpgroup,
                   fmt::format("the other warps of the warpgroup execute the wgmma of PTX line {} here",
                               where(*warp.block->context->code, *first.op).ptx_line));
    if (first.a != call.a || first.b != call.b || first.scale != call.scale)
      return raise(warp, op, 0, TrapKind::warpgroup,
                   fmt::format("the warps of the warpgroup pass different {}: {:#x} and {:#x}",
                               first.a != call.a   ? "descriptors of A"
                               : first.b != call.b ? "descriptors of B"
                                                   : "scale-d",
                               first.a != call.a   ? first.a
                               : first.b != call.b ? first.b
                                                   : first.scale,
                               first.a != call.a   ? call.a
                               : first.b != call.b ? call.b
                                                   : call.scale));
  }
  const uint64_t slowest = *std::min_element(group.executed, group.executed + 4);
  if (slowest > group.dropped) {
    group.calls.erase(group.calls.begin(),
                      group.calls.begin() + static_cast<std::ptrdiff_t>(slowest - group.dropped));
    group.dropped = slowest;
  }
  return true;
}

}  // namespace

bool issue(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  const MatrixForm form = MatrixForm::of(op.immediate);
  if ((warp.number / 4 + 1) * 128 > warp.block->threads)
    return raise(warp, op, 0, TrapKind::warpgroup,
                 fmt::format("a warpgroup is 128 threads from a multiple of 128; the block has {}",
                             warp.block->threads));
  if (!warp.products_fenced)
    return raise(warp, op, 0, TrapKind::wgmma_race,
                 "no wgmma.fence precedes it: earlier writes of its registers are not ordered before it");
  if (form.a_in_shared && !uniform(warp, op, op.s[0], "A")) return false;
  if (!uniform(warp, op, op.s[1], "B")) return false;
  const uint32_t scale = op.third_negated ? ~warp.mask(op.s[2]) : warp.mask(op.s[2]);
  if (scale != 0 && scale != ~0u)
    return raise(warp, op, std::countr_zero(scale & 1 ? ~scale : scale), TrapKind::warpgroup,
                 "scale-d differs between the threads of the warp");
  if (!join(warp, op, {&op, form.a_in_shared ? warp.wide(op.s[0])[0] : 0, warp.wide(op.s[1])[0], scale & 1}))
    return false;
  warp.products.issue(op, ~0u);
  return true;
}

bool completed_by_all(const Warp& warp) {
  const Block& block = *warp.block;
  const size_t first = warp.index / 4 * 4;
  const Warpgroup& group = block.warpgroups[warp.index / 4];
  const uint64_t complete = group.executed[warp.index % 4] - warp.products.in_flight().size();
  for (size_t i = 0; i < 4 && first + i < block.warps.size(); ++i)
    if (group.executed[i] < complete && block.warps[first + i].state != WarpState::done) return false;
  return true;
}

bool warpgroups_agree(Block& block) {
  for (size_t g = 0; g < block.warpgroups.size(); ++g) {
    const Warpgroup& group = block.warpgroups[g];
    const uint64_t most = *std::max_element(group.executed, group.executed + 4);
    for (size_t w = 0; w < 4; ++w)
      if (group.executed[w] != most)
        return raise(block.warps[4 * g + w],
                     *group.calls[static_cast<size_t>(group.executed[w] - group.dropped)].op, 0,
                     TrapKind::warpgroup,
                     "this warp ended without executing the wgmma that its warpgroup executes");
  }
  return true;
}

}  // namespace assay::vm
