// What happened before what: barriers, meetings of lanes, and atomics that hand on what was known.
#include <algorithm>
#include <bit>

#include "src/base/vm/checks/race_check.h"
#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

void join(std::vector<uint32_t>& into, const std::vector<uint32_t>& from) {
  into.resize(std::max(into.size(), from.size()));
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void join(std::array<uint32_t, 32>& into, const std::array<uint32_t, 32>& from) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

void RaceCheck::advance(WarpOrder& warp) {
  warp.time = ++clock_;
  warp.touched = false;
  block_of_time_.push_back(block_->linear);
}

/// What a lane knows of the others, where lanes differ from now on.
std::array<uint32_t, 32>& RaceCheck::lanes_seen(LaneOrder& order, int lane) {
  if (!order.seen) {
    order.seen = std::make_unique<std::array<std::array<uint32_t, 32>, 32>>();
    for (auto& row : *order.seen) row.fill(order.all);
  }
  return (*order.seen)[static_cast<size_t>(lane)];
}

/// All of the warp's live lanes, or some of them, have met.
void RaceCheck::order_members(Warp& warp, uint32_t members) {
  WarpOrder& order = warps_[warp.index];
  if (!order.touched) return;
  if ((members & warp.live) == warp.live) {
    order.lanes.all = order.time;
    order.lanes.seen.reset();
  } else {
    std::array<uint32_t, 32> met{};
    for_lanes(members, [&](int lane) { join(met, lanes_seen(order.lanes, lane)); });
    for_lanes(members, [&](int lane) { met[static_cast<size_t>(lane)] = order.time; });
    for_lanes(members, [&](int lane) { lanes_seen(order.lanes, lane) = met; });
  }
  advance(order);
}

/// The warp tells the barrier all that it knows, itself included; what it does next is not part of that.
void RaceCheck::arrive(Warp& warp, const Op& op, uint32_t mask) {
  WarpOrder& order = warps_[warp.index];
  const uint32_t number = warp.word(op.s[0])[std::countr_zero(mask)];
  if (number >= barriers_.size()) return;
  order.known[warp.index] = order.time;
  join(barriers_[number], order.known);
  order.lanes.all = order.time;
  order.lanes.seen.reset();
  advance(order);
  if (code_->signature(op).form.operation != ptx::Operation::bar_arrive)
    order.waiting = static_cast<int32_t>(number);
}

void RaceCheck::released(Block& block) {
  uint32_t complete = 0;
  for (const Warp& warp : block.warps) {
    WarpOrder& order = warps_[warp.index];
    if (order.waiting < 0 || warp.state == WarpState::waiting) continue;
    join(order.known, barriers_[static_cast<size_t>(order.waiting)]);
    complete |= 1u << order.waiting;
    order.waiting = -1;
  }
  for_lanes(complete, [&](int number) { barriers_[static_cast<size_t>(number)].clear(); });
}

/// An atomic, or a load or store of that kind, hands on what was known there and, after a fence, what the
/// block has done.
void RaceCheck::through_location(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& facts = facts_[static_cast<size_t>(&op - code_->ops.data())];
  const Flow flow = code_->signature(op).flow();
  const bool reads = flow != Flow::store, writes = flow != Flow::load;
  const bool releases = writes && (fenced_ || facts.releases);
  if (warp.space == ptx::Space::local || (!releases && locations_.empty())) return;
  WarpOrder& order = warps_[warp.index];
  for_lanes(mask, [&](int lane) {
    // Shared addresses are small, global ones start high: they do not meet.
    const uint64_t address = warp.address[lane];
    const auto known = locations_.find(address);
    if (reads && known != locations_.end()) {
      if (known->second.block == block_->linear) {
        join(order.known, known->second.known);
        if (const auto told = known->second.lanes.find(warp.index); told != known->second.lanes.end())
          join(lanes_seen(order.lanes, lane), told->second);
      }
      for (const auto& [block, time] : known->second.blocks) {
        uint32_t& mine = known_blocks_[block];
        mine = std::max(mine, time);
      }
    }
    if (!releases) return;
    Location& location = locations_[address];
    if (location.block != block_->linear) location.known.clear(), location.lanes.clear();
    location.block = block_->linear;
    order.known[warp.index] = order.time;
    join(location.known, order.known);
    std::array<uint32_t, 32> told = lanes_seen(order.lanes, lane);
    told[static_cast<size_t>(lane)] = order.time;
    join(location.lanes[warp.index], told);
    location.blocks[block_->linear] = clock_;
    for (const auto& [block, time] : known_blocks_)
      location.blocks[block] = std::max(location.blocks[block], time);
  });
  if (releases) advance(order);
}

}  // namespace assay::vm
