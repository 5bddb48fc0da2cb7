// What happened before what: barriers, meetings of lanes, and atomics that hand on what was known.
#include <algorithm>
#include <bit>

#include "src/base/vm/checks/race_check.h"

namespace assay::vm {
namespace {

/// The later of each; `into` is as long.
template <class Times>
void join_all(Times& into, const Times& from) {
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void join(std::vector<uint32_t>& into, const std::vector<uint32_t>& from) {
  into.resize(std::max(into.size(), from.size()));
  join_all(into, from);
}

}  // namespace

void RaceCheck::advance(WarpOrder& warp) {
  warp.time = ++clock_;
  warp.touched = false;
  block_of_time_.push_back(block_->linear);
}

RaceCheck::Times& RaceCheck::LaneOrder::of(int lane) {
  if (!seen) {
    seen = std::make_unique<std::array<Times, 32>>();
    for (Times& row : *seen) row.fill(all);
  }
  return (*seen)[static_cast<size_t>(lane)];
}

/// All of the warp's live lanes, or some of them, have met.
void RaceCheck::order_members(Warp& warp, uint32_t members) {
  if (!warps_[warp.index].touched) return;
  meet(warp, members);
  advance(warps_[warp.index]);
}

void RaceCheck::meet(Warp& warp, uint32_t members) {
  WarpOrder& order = warps_[warp.index];
  if ((members & warp.live) == warp.live) {
    order.lanes.meet(order.time);
  } else {
    Times met{};
    each_lane(members, [&](int lane) { join_all(met, order.lanes.of(lane)); });
    each_lane(members, [&](int lane) { met[static_cast<size_t>(lane)] = order.time; });
    each_lane(members, [&](int lane) { order.lanes.of(lane) = met; });
  }
}

/// The warp tells the barrier all that it knows, itself included; what it does next is not part of that.
void RaceCheck::arrive(Warp& warp, const Op& op, uint32_t mask) {
  WarpOrder& order = warps_[warp.index];
  const ptx::Operation operation = signature(op).form.operation;
  if (operation == ptx::Operation::barrier_cluster_arrive ||
      operation == ptx::Operation::barrier_cluster_wait)
    return arrive_at_cluster(warp, op);
  auto& barriers = barriers_[warp.rank];
  const uint32_t number = warp.word(op.s[0])[std::countr_zero(mask)];
  if (number >= barriers.size()) return;
  order.known[warp.index] = order.time;
  join(barriers[number], order.known);
  order.lanes.meet(order.time);
  advance(order);
  if (operation != ptx::Operation::bar_arrive) order.waiting = static_cast<int32_t>(number);
}

/// A relaxed arrival tells what a fence before it has made known.
void RaceCheck::arrive_at_cluster(Warp& warp, const Op& op) {
  WarpOrder& order = warps_[warp.index];
  if (signature(op).form.operation == ptx::Operation::barrier_cluster_wait) {
    if (warp.at_cluster)
      order.waiting = cluster_barrier;
    else
      join(order.known, met_);
    return;
  }
  order.lanes.meet(order.time);
  if (signature(op).form.order != ptx::Order::relaxed || fenced_) {
    order.known[warp.index] = order.time;
    join(arriving_, order.known);
  }
  advance(order);
}

/// What a thread knows when it exits its block has waited for.
void RaceCheck::exit(const Warp& warp) {
  join(ended_[warp.rank], warps_[warp.index].known);
}

void RaceCheck::released(Block& block) {
  const bool met =
      std::none_of(block.warps.begin(), block.warps.end(), [](const Warp& w) { return w.at_cluster; });
  if (met && !arriving_.empty()) met_ = std::exchange(arriving_, {});
  std::vector<std::vector<uint32_t>*> complete;
  for (const Warp& warp : block.warps) {
    WarpOrder& order = warps_[warp.index];
    if (order.waiting < 0 || warp.state == WarpState::waiting) continue;
    if (order.waiting == cluster_barrier) {
      join(order.known, met_);
    } else {
      auto& barrier = barriers_[warp.rank][static_cast<size_t>(order.waiting)];
      join(order.known, barrier);
      complete.push_back(&barrier);
    }
    order.waiting = -1;
  }
  for (std::vector<uint32_t>* barrier : complete) barrier->clear();
}

/// What was known at a location of atomics when it was released last.
void RaceCheck::acquire(WarpOrder& order, uint32_t warp, int lane, const Location& location) {
  if (location.block == block_->linear) {
    join(order.known, location.known);
    if (const auto told = location.lanes.find(warp); told != location.lanes.end())
      join_all(order.lanes.of(lane), told->second);
  }
  for (const auto& [block, time] : location.blocks)
    known_blocks_[block] = std::max(known_blocks_[block], time);
}

void RaceCheck::hand_on(Location& location, uint32_t warp, const std::vector<uint32_t>& known,
                        const Times& told) {
  if (location.block != block_->linear) location.known.clear(), location.lanes.clear();
  location.block = block_->linear;
  join(location.known, known);
  join_all(location.lanes[warp], told);
}

/// The location hands on all that the lane's warp and the block know, themselves included.
void RaceCheck::release(WarpOrder& order, uint32_t warp, int lane, Location& location) {
  order.known[warp] = order.time;
  hand_on(location, warp, order.known, order.lanes.with(lane, order.time));
  location.blocks[block_->linear] = clock_;
  for (const auto& [block, time] : known_blocks_)
    location.blocks[block] = std::max(location.blocks[block], time);
}

/// st.async and red.async: their mbarrier hands on what the thread knew.
void RaceCheck::release_at_barrier(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t barrier[32];
  lane_addresses(warp, op.s[2], op.address2_wide, op.offset2, barrier);
  WarpOrder& order = warps_[warp.index];
  each_lane(mask, [&](int lane) {
    release(order, warp.index, lane, locations_[shared_place(warp, barrier[lane], 8, true)]);
  });
  advance(order);
}

/// An atomic, or a load or store of that kind, hands on what was known there and, after a fence, what the
/// block has done.
void RaceCheck::through_location(Warp& warp, const Op& op, uint32_t mask) {
  const Flow flow = signature(op).flow();
  const Asynchronous& work = signature(op).meaning->asynchronous;
  const bool barrier = work.completion == Completion::mbarrier && flow == Flow::none,
             waits = barrier && work.step == Step::wait;
  // Of those that wait at an mbarrier the ones whose wait has passed; who arrives there hears nothing.
  if (waits) mask &= warp.mask(op.d);
  const bool reads = flow != Flow::store && (!barrier || waits), writes = flow != Flow::load && !waits;
  const bool releases = writes && (fenced_ || facts(op).releases);
  if (warp.space == ptx::Space::local || (!releases && locations_.empty())) return;
  WarpOrder& order = warps_[warp.index];
  each_lane(mask, [&](int lane) {
    // Shared addresses are small, global ones start high: they do not meet.
    const auto known = locations_.find(warp.address[lane]);
    if (reads && known != locations_.end()) acquire(order, warp.index, lane, known->second);
    if (releases) release(order, warp.index, lane, locations_[warp.address[lane]]);
  });
  if (releases) advance(order);
}

}  // namespace assay::vm
