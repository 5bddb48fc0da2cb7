#include "src/base/vm/checks/race_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

constexpr CheckLog::Kind race{"races", "race"}, warp_race{"races", "warp-race"};

/// An op is 21 bits, a lane 5, a warp 5, and one says whether the access was atomic or alike.
constexpr uint32_t packed(size_t op, int lane, uint32_t warp, bool strong) {
  return static_cast<uint32_t>(op) << 11 | static_cast<uint32_t>(lane) << 6 | warp << 1 | (strong ? 1u : 0u);
}
int lane_of(uint32_t who) {
  return static_cast<int>(who >> 6 & 31);
}
uint32_t warp_of(uint32_t who) {
  return who >> 1 & 31;
}
bool is_strong(uint32_t who) {
  return who & 1;
}

}  // namespace

RaceCheck::Facts RaceCheck::facts_of(const Op& op, const Signature& signature) {
  using ptx::Operation;
  using ptx::Order;
  Facts facts;
  const Operation operation = signature.form.operation;
  const Order order = signature.form.order;
  const bool mbarrier = signature.meaning->asynchronous.completion == Completion::mbarrier;
  if (signature.meaning->members >= 0) facts.members = op.s[signature.meaning->members];
  const bool fences =
      signature.meaning->asynchronous.step == Step::fence && operation != Operation::wgmma_fence;
  facts.act = !signature.accesses.empty() ? Act::access
              : facts.members != no_slot  ? Act::members
              : fences                    ? Act::fence
                                          : Act::none;
  facts.releases = mbarrier || order == Order::release || order == Order::acq_rel;
  facts.strong =
      mbarrier || signature.flow() == Flow::atomic || (order != Order::none && order != Order::weak);
  return facts;
}

void RaceCheck::enter(const LaunchContext& context) {
  context_ = &context;
  code_ = context.code;
  facts_.clear();
  shared_granule_ = global_granule_ = 16;
  for (const Op& op : code_->ops) {
    const Signature& signature = code_->signature(op);
    facts_.push_back(facts_of(op, signature));
    const bool copies = signature.flow() == Flow::copy_async;
    for (const Access& access : signature.accesses) {
      if (access.reach != Access::Reach::per_lane) continue;
      const uint32_t bytes =
          copies && access.space == ptx::Space::global ? 4 : std::max<uint32_t>(1, op.element_bytes);
      if (access.space != ptx::Space::global) shared_granule_ = std::min(shared_granule_, bytes);
      if (access.space != ptx::Space::shared) global_granule_ = std::min(global_granule_, bytes);
    }
  }
  launch_start_ = clock_;
  block_of_time_.clear();
  locations_.clear();
  last_area_ = 0;
  areas_.emplace();
  for (const Allocation& a : context.memory->allocations())
    areas_->add(a.name, a.base, a.bytes, global_granule_, {},
                {!unfollowed_.contains(a.name) && a.base != parameter_base});
}

void RaceCheck::begin_block(Block& block) {
  block_ = &block;
  const size_t warps = block.warps.size();
  const size_t granules = block.shared.size() / shared_granule_ + 1;
  // Stamps of earlier blocks stay: everyone knows of all times until now.
  const uint32_t before = clock_;
  warps_.resize(warps);
  for (WarpOrder& warp : warps_) {
    warp.known.assign(warps, before);
    warp.lanes.all = before;
    warp.lanes.seen.reset();
    warp.waiting = -1;
    advance(warp);
  }
  shared_writers_.resize(granules);
  shared_plain_writers_.resize(granules);
  shared_readers_.resize(granules * warps);
  shared_contents_ = block.shared;
  for (auto& barrier : barriers_) barrier.clear();
  fenced_ = false;
  known_blocks_.clear();
  std::erase_if(locations_,
                [](const auto& entry) { return entry.first < function_base; });  // shared memory's
}

uint32_t RaceCheck::who(const Touch& t) const {
  return packed(static_cast<size_t>(t.op - code_->ops.data()), t.lane, t.warp->index, t.strong);
}

const Op& RaceCheck::op_of(uint32_t who) const {
  return code_->ops[who >> 11];
}

/// Accesses of one block: by lane inside a warp, else by what barriers told.
bool RaceCheck::ordered_in_block(uint32_t warp, int lane, uint32_t time, const Touch& now) const {
  const WarpOrder& mine = warps_[now.warp->index];
  if (warp != now.warp->index) return time <= mine.known[warp];
  return lane == now.lane || time <= mine.lanes.known(now.lane, lane);
}

bool RaceCheck::ordered(const Stamp& before, const Touch& now) const {
  if (before.time <= launch_start_ || (is_strong(before.who) && now.strong)) return true;
  const uint64_t block = block_of_time_[before.time - launch_start_ - 1];
  if (block == block_->linear)
    return ordered_in_block(warp_of(before.who), lane_of(before.who), before.time, now);
  if (now.space == ptx::Space::shared) return true;  // every block has its own
  const auto known = known_blocks_.find(block);
  return known != known_blocks_.end() && before.time <= known->second;
}

void RaceCheck::before(Warp& warp, const Op& op, uint32_t mask) {
  if (code_->signature(op).control == Control::barrier) arrive(warp, op, mask);
}

void RaceCheck::after(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& facts = facts_[static_cast<size_t>(&op - code_->ops.data())];
  switch (facts.act) {
    case Act::none:
      return;
    case Act::access:
      return access(warp, op, mask, facts);
    case Act::members:
      // Lanes with one mask make one exchange; the masks of others are theirs.
      for (uint32_t rest = mask; rest;) {
        const uint32_t members = warp.word(facts.members)[std::countr_zero(rest)];
        order_members(warp, members);
        rest &= ~(members | 1u << std::countr_zero(rest));
      }
      return;
    case Act::fence:
      fenced_ = true;
      return;
  }
}

/// What is known is taken over before a strong read and handed on after a strong write. For a wgmma the warp
/// meets, then reads its rows of A and all of B. A cp.async is checked here and remembered at its wait.
void RaceCheck::access(Warp& warp, const Op& op, uint32_t mask, const Facts& facts) {
  const Flow flow = code_->signature(op).flow();
  const bool loads = flow == Flow::load, meets = flow == Flow::matrix;
  if (loads && facts.strong) through_location(warp, op, mask);
  if (meets) order_members(warp, ~0u);
  const uint32_t kept = flow == Flow::store ? without_repeats(warp, op, mask) : mask;
  each_access(warp, op, kept, [&](const MemoryAccess& at) {
    if (at.space != ptx::Space::local)
      touch({&warp, &op, at.lane, at.writes, facts.strong, at.space, at.address, at.bytes},
            flow != Flow::copy_async || !at.writes);
  });
  if (meets) order_members(warp, ~0u);
  if (!loads && facts.strong) through_location(warp, op, mask);
}

/// Lanes of one store that share an address: all but the last are left out, and a finding if their values
/// differ (PTX ISA, "st": which of them stays is unspecified).
uint32_t RaceCheck::without_repeats(Warp& warp, const Op& op, uint32_t mask) {
  if (warp.space == ptx::Space::local) return mask;
  bool ascending = true;
  int last = -1;
  for_lanes(mask, [&](int lane) {
    ascending &= last < 0 || warp.address[lane] > warp.address[last];
    last = lane;
  });
  if (ascending) return mask;
  const uint64_t keep = op.element_bytes == 8   ? ~uint64_t{0}
                        : op.element_bytes == 4 ? 0xffffffffu
                                                : (uint64_t{1} << (8 * op.element_bytes)) - 1;
  const auto value = [&](int lane, uint32_t i) {
    return keep & ((op.immediate >> i) & 1 ? warp.wide(op.slots[i])[lane] : warp.word(op.slots[i])[lane]);
  };
  uint32_t kept = mask;
  for_lanes(mask, [&](int lane) {
    for (uint32_t rest = mask & ~((2u << lane) - 1); rest; rest &= rest - 1) {
      const int other = std::countr_zero(rest);
      if (warp.address[other] != warp.address[lane]) continue;
      kept &= ~(1u << lane);
      bool same = true;
      for (uint32_t i = 0; i < op.vector_length; ++i) same &= value(lane, i) == value(other, i);
      if (same) continue;
      Touch now{&warp, &op, other, true, false, warp.space, warp.address[other], op.element_bytes};
      report(now,
             {warps_[warp.index].time,
              packed(static_cast<size_t>(&op - code_->ops.data()), lane, warp.index, false)},
             true);
    }
  });
  return kept;
}

void RaceCheck::landed(Warp& warp, const Landing& landing) {
  for_lanes(landing.mask, [&](int lane) {
    touch({&warp, landing.op, lane, true, false, ptx::Space::shared, landing.shared[lane], landing.bytes});
  });
}

void RaceCheck::touch(const Touch& now, bool remember) {
  warps_[now.warp->index].touched = true;
  if (now.space == ptx::Space::shared)
    touch_shared(now, remember);
  else if (now.space == ptx::Space::global)
    touch_global(now, remember);
}

/// Whether the write that has just happened left the granule as it was; takes note of its contents. Warps
/// that store the same value to one place need no order (compilers write a value that several warps hold so).
bool RaceCheck::repeats_contents(size_t granule) {
  const auto begin = static_cast<ptrdiff_t>(granule * shared_granule_);
  const ptrdiff_t end = std::min(begin + static_cast<ptrdiff_t>(shared_granule_),
                                 static_cast<ptrdiff_t>(shared_contents_.size()));
  const auto now = block_->shared.begin() + begin, kept = shared_contents_.begin() + begin;
  const bool same = std::equal(now, now + (end - begin), kept);
  std::copy_n(now, end - begin, kept);
  return same;
}

void RaceCheck::touch_shared(const Touch& now, bool remember) {
  const size_t warps = warps_.size();
  const size_t first = now.address / shared_granule_, last = (now.address + now.bytes - 1) / shared_granule_;
  const uint32_t time = warps_[now.warp->index].time, me = who(now);
  for (size_t g = first; g <= last; ++g) {
    Stamp &writer = shared_writers_[g], &plain = shared_plain_writers_[g];
    const bool repeats = now.writes && repeats_contents(g);
    if (!repeats && !ordered(writer, now))
      report(now, writer, true);
    else if (!repeats && is_strong(writer.who) && !ordered(plain, now))
      report(now, plain, true);
    Reader* const readers = &shared_readers_[g * warps];
    if (!now.writes) {
      Reader& mine = readers[now.warp->index];
      const bool is_new = mine.time != time;
      mine.lanes = (is_new ? 0 : mine.lanes) | 1u << now.lane;
      mine.time = time;
      if (is_new || !now.strong) mine.op = me;  // a plain read is what an atomic races with
      continue;
    }
    for (uint32_t w = 0; w < warps; ++w) {
      const Reader& reader = readers[w];
      if (reader.time <= launch_start_ || (is_strong(reader.op) && now.strong)) continue;
      const uint32_t others = w == now.warp->index ? reader.lanes & ~(1u << now.lane) : reader.lanes;
      if (!others) continue;
      const int lane = std::countr_zero(others);
      if (block_of_time_[reader.time - launch_start_ - 1] != block_->linear ||
          ordered_in_block(w, lane, reader.time, now))
        continue;
      report(now, {reader.time, packed(reader.op >> 11, lane, w, false)}, false);
    }
    if (!remember) continue;
    writer = {time, me};
    if (!now.strong) plain = writer;
  }
}

void RaceCheck::touch_global(const Touch& now, bool remember) {
  auto* const area = areas_->find(now.address, last_area_);
  if (!area) return;
  if (!area->note.followed) {
    if (now.writes) written_unfollowed_.insert(area->name);
    return;
  }
  const uint64_t offset = now.address - area->base;
  const uint32_t time = warps_[now.warp->index].time, me = who(now);
  for (uint64_t g = offset / global_granule_; g <= (offset + now.bytes - 1) / global_granule_; ++g) {
    const auto [cells, at] = areas_->touch(*area, g * global_granule_);
    Granule& granule = (*cells)[at];
    if (!ordered(granule.writer, now))
      report(now, granule.writer, true);
    else if (is_strong(granule.writer.who) && !ordered(granule.plain_writer, now))
      report(now, granule.plain_writer, true);
    if (!now.writes) {
      const bool mine = granule.first_reader.time > launch_start_ &&
                        warp_of(granule.first_reader.who) == now.warp->index &&
                        block_of_time_[granule.first_reader.time - launch_start_ - 1] == block_->linear;
      (granule.first_reader.time <= launch_start_ || mine ? granule.first_reader : granule.last_reader) = {
          time, me};
      continue;
    }
    if (!ordered(granule.first_reader, now)) report(now, granule.first_reader, false);
    if (!ordered(granule.last_reader, now)) report(now, granule.last_reader, false);
    if (!remember) continue;
    granule.writer = {time, me};
    if (!now.strong) granule.plain_writer = granule.writer;
  }
}

void RaceCheck::report(const Touch& now, const Stamp& before, bool before_wrote) {
  const uint64_t other_block = block_of_time_[before.time - launch_start_ - 1];
  const bool same_warp = other_block == block_->linear && warp_of(before.who) == now.warp->index;
  const Op& other = op_of(before.who);
  CheckFinding* finding = log_.open(same_warp ? warp_race : race, now.op, &other);
  if (!finding) return;
  const Code& code = *code_;
  const auto did = [&](const Op& op, bool wrote) {
    return fmt::format("{} by {}", wrote ? "written" : "read", opcode_of(code, op));
  };
  finding->at = log_.place({now.op, block_->linear, now.warp->index * 32 + static_cast<uint32_t>(now.lane)},
                           did(*now.op, now.writes));
  finding->other =
      log_.place({&other, other_block, warp_of(before.who) * 32 + static_cast<uint32_t>(lane_of(before.who))},
                 did(other, before_wrote));
  finding->element = memory_text(*block_, now.space, now.address);
  const bool one_store = same_warp && &other == now.op && now.writes && before_wrote;
  const char* missing = one_store                       ? "lanes of one warp store different values"
                        : same_warp                     ? "no __syncwarp between these lanes of one warp"
                        : other_block != block_->linear ? "blocks of one launch have no order"
                                                        : "no barrier between them";
  finding->message = fmt::format("{}: {} at {} by {}; {} at {} by {}: {}", finding->element,
                                 before_wrote ? "written" : "read", place_text(finding->other->where),
                                 thread_text(*finding->other), now.writes ? "written" : "read",
                                 place_text(finding->at.where), thread_text(finding->at), missing);
}

}  // namespace assay::vm
