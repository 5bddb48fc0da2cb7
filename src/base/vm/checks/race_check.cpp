#include "src/base/vm/checks/race_check.h"

#include <algorithm>
#include <bit>

#include "src/base/vm/polls.h"
#include "src/base/vm/swap_loops.h"

namespace assay::vm {
namespace {

#define RACE "{element}: {other_did} at {other} by {other_thread}; {did} at {at} by {thread}: {missing}"
constexpr uint64_t highest_shared = uint64_t{1}
                                    << 23;  // beyond every address of shared memory, clusters' too
constexpr CheckSentence race{CheckKind::race, RACE}, warp_race{CheckKind::warp_race, RACE};
#undef RACE
constexpr CheckSentence ended_block{
    CheckKind::ended_block,
    "{element}: {access} at {at} by {thread}, and the block whose memory it is may have ended: none of its "
    "threads waits for this before it exits (cluster.sync())"};

}  // namespace

RaceFacts RaceCheck::facts_of(const Op& op, const Signature& signature) {
  using ptx::Operation;
  using ptx::Order;
  RaceFacts facts;
  const Operation operation = signature.form.operation;
  const Order order = signature.form.order;
  const Flow flow = signature.flow();
  const auto [completion, step, proxy] = signature.meaning->asynchronous;
  const bool mbarrier = completion == Completion::mbarrier,
             sets_up = operation == Operation::mbarrier_init || operation == Operation::mbarrier_inval;
  if (signature.meaning->members >= 0) facts.members = op.s[signature.meaning->members];
  facts.act = flow == Flow::copy_bulk                                       ? Act::bulk
              : completion == Completion::wgmma_group && step == Step::wait ? Act::product_wait
              : !signature.accesses.empty()                                 ? Act::access
              : facts.members != no_slot                                    ? Act::members
              : step == Step::fence && operation != Operation::wgmma_fence  ? Act::fence
                                                                            : Act::none;
  facts.releases = mbarrier || order == Order::release || order == Order::acq_rel;
  facts.strong = (mbarrier && !sets_up && flow == Flow::none) || flow == Flow::atomic ||
                 (order != Order::none && order != Order::weak);
  if (order == Order::volatile_ && flow == Flow::load) facts.is_volatile = RaceFacts::Volatile::load;
  if (order == Order::volatile_ && flow == Flow::store) facts.is_volatile = RaceFacts::Volatile::store;
  return facts;
}

void RaceCheck::enter(const LaunchContext& context) {
  begin_code(context, facts_of);
  const SwapLoops loops = swap_loops_of(*code_);
  const std::vector<bool> polls = polls_of(*code_);
  for (size_t i = 0; i < facts_.size(); ++i) {
    facts_[i].confirmed = loops.confirmed[i];
    if (polls[i]) facts_[i].is_volatile = RaceFacts::Volatile::no;
  }
  shared_granule_ = global_granule_ = 16;
  for (const Op& op : code_->ops) {
    const bool copies = signature(op).flow() == Flow::copy_async;
    for (const Access& access : signature(op).accesses) {
      if (access.reach != Access::Reach::per_lane) continue;
      const uint32_t bytes =
          copies && access.space == ptx::Space::global ? 4 : std::max<uint32_t>(1, op.element_bytes);
      if (access.space != ptx::Space::global) shared_granule_ = std::min(shared_granule_, bytes);
      if (access.space != ptx::Space::shared) global_granule_ = std::min(global_granule_, bytes);
    }
  }
  warp_bits_ = static_cast<uint32_t>(std::max<int>(
      5, std::bit_width(warps_of(*context.launch, context.cluster) * count_of(context.cluster) - 1)));
  launch_start_ = clock_;
  block_of_time_.clear();
  locations_.clear();
  racing_reads_.emplace_back();
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
    warp.lanes.meet(before);
    warp.waiting = -1;
    advance(warp);
  }
  shared_writers_.resize(granules);
  shared_readers_.resize(granules * warps);
  shared_contents_ = block.shared;
  barriers_.assign(block.members, {});
  arriving_.clear();
  met_.clear();
  fenced_ = false;
  known_blocks_.clear();
  issued_.clear();
  const bool in_cluster = block.members > 1 && !block.context->together;
  ended_.assign(in_cluster ? block.members : 0, {});
  remote_.assign(in_cluster ? block.members * warps : 0, {});
  std::erase_if(locations_, [](const auto& entry) { return entry.first < highest_shared; });
}

RaceCheck::Stamp RaceCheck::stamp(const Warp& warp, const Op& op, int lane, bool strong) const {
  return {warps_[warp.index].time, packed(code_->index(op), lane, warp.index, strong)};
}

/// Accesses of one block: by lane inside a warp, else by what barriers told.
bool RaceCheck::ordered_in_block(uint32_t warp, int lane, uint32_t time, const Touch& now) const {
  const WarpOrder& mine = warps_[now.warp->index];
  if (warp != now.warp->index) return time <= mine.known[warp];
  return lane == now.lane || time <= mine.lanes.known(now.lane, lane);
}

bool RaceCheck::ordered(const Stamp& before, const Touch& now) const {
  if (is_past(before.time) || both_strong(before.who, now)) return true;
  const uint64_t block = block_at(before.time);
  if (block == block_->linear)
    return ordered_in_block(warp_of(before.who), lane_of(before.who), before.time, now);
  if (now.space == ptx::Space::shared) return true;  // every block has its own
  const auto known = known_blocks_.find(block);
  return known != known_blocks_.end() && before.time <= known->second;
}

/// A volatile store and a volatile load by lanes of one warp: one hands the other a value as if lanes ran in
/// step.
bool RaceCheck::passes_in_step(uint32_t before, const Touch& now) const {
  using Volatile = RaceFacts::Volatile;
  const Volatile first = facts_[op_of(before)].is_volatile, second = facts(*now.op).is_volatile;
  return first != second && first != Volatile::no && second != Volatile::no &&
         now.space == ptx::Space::shared && warp_of(before) == now.warp->index;
}

void RaceCheck::before(Warp& warp, const Op& op, uint32_t mask) {
  if (signature(op).control == Control::barrier) arrive(warp, op, mask);
  if (signature(op).control == Control::exit && !ended_.empty()) exit(warp);
}

void RaceCheck::end_block(Block& block) {
  if (block.trap) return;
  for (size_t rank = 0; rank < ended_.size(); ++rank)
    for (size_t warp = 0; warp < warps_.size(); ++warp) {
      const RemoteAccess& last = remote_[rank * warps_.size() + warp];
      if (last.stamp.time == 0 || (warp < ended_[rank].size() && last.stamp.time <= ended_[rank][warp]))
        continue;
      const Actor who = actor_of(last.stamp.who);
      if (!log_.opens(ended_block, who.op)) continue;
      log_.tell(place(who, last.writes ? "written" : "read"), {},
                memory_text(block, ptx::Space::shared, last.address));
    }
}

void RaceCheck::after(Warp& warp, const Op& op, uint32_t mask) {
  const RaceFacts& f = facts(op);
  if (f.act == Act::access) access(warp, op, mask, f);
  if (f.act == Act::bulk) issue(warp, op);
  if (f.act == Act::product_wait) wait_for_products(warp);
  if (f.act == Act::fence) fenced_ = true;
  if (f.act != Act::members) return;
  // Lanes with one mask make one exchange; the masks of others are theirs, at the same time.
  WarpOrder& order = warps_[warp.index];
  if (!order.touched) return;
  for (uint32_t rest = mask; rest;) {
    const uint32_t members = warp.word(f.members)[std::countr_zero(rest)];
    meet(warp, members);
    rest &= ~(members | 1u << std::countr_zero(rest));
  }
  advance(order);
}

/// What is known is taken over before a strong read and handed on after a strong write. For a wgmma the warp
/// meets, then reads its rows of A and all of B. A cp.async is checked here and remembered at its wait.
void RaceCheck::access(Warp& warp, const Op& op, uint32_t mask, const RaceFacts& f) {
  const Flow flow = signature(op).flow();
  const bool loads = flow == Flow::load, meets = flow == Flow::matrix;
  if (loads && f.strong) through_location(warp, op, mask);
  if (meets) order_members(warp, ~0u);
  const uint32_t kept = flow == Flow::store ? without_repeats(warp, op, mask) : mask;
  each_access(warp, op, kept, [&](const MemoryAccess& at) {
    if (at.space == ptx::Space::local) return;
    const Touch now{&warp, &op, at.lane, at.writes, f.strong || f.confirmed, at.space, at.address, at.bytes};
    touch(now, flow != Flow::copy_async || !at.writes ? Remember::judged : Remember::nothing);
    if (!ended_.empty()) note_remote(now);
  });
  if (meets) warps_[warp.index].product = warps_[warp.index].time, order_members(warp, ~0u);
  if (!loads && f.strong) through_location(warp, op, mask);
  if ((flow == Flow::store || flow == Flow::atomic) &&
      signature(op).meaning->asynchronous.completion == Completion::mbarrier)
    release_at_barrier(warp, op, mask);
}

/// Lanes of one store that share an address: all but the last are left out, and a finding if their values
/// differ (PTX ISA, "st": which of them stays is unspecified).
uint32_t RaceCheck::without_repeats(Warp& warp, const Op& op, uint32_t mask) {
  if (warp.space == ptx::Space::local) return mask;
  bool ascending = true;
  int last = -1;
  each_lane(mask, [&](int lane) {
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
  each_lane(mask, [&](int lane) {
    for (uint32_t rest = mask & ~((2u << lane) - 1); rest; rest &= rest - 1) {
      const int other = std::countr_zero(rest);
      if (warp.address[other] != warp.address[lane]) continue;
      kept &= ~(1u << lane);
      bool same = true;
      for (uint32_t i = 0; i < op.vector_length; ++i) same &= value(lane, i) == value(other, i);
      if (same) continue;
      report({&warp, &op, other, true, false, warp.space, warp.address[other], op.element_bytes},
             stamp(warp, op, lane, false), true);
    }
  });
  return kept;
}

void RaceCheck::landed(Warp& warp, const Landing& landing) {
  const auto known = landing.number ? issued_.find(landing.number) : issued_.end();
  const bool at_barrier = known != issued_.end();
  // Of its own time; the warp's is put back.
  const uint32_t now = warps_[warp.index].time;
  if (at_barrier) warps_[warp.index].time = known->second.time;
  each_lane(landing.mask, [&](int piece) {
    const int lane = landing.issuer(piece);
    if (landing.number && !at_barrier && landing.copied[piece])
      touch({&warp, landing.op, lane, false, false, landing.from_space, landing.from[piece],
             landing.copied[piece]});
    touch(
        {&warp, landing.op, lane, true, landing.combines, landing.to_space, landing.to[piece], landing.bytes},
        !at_barrier ? Remember::judged : Remember::unjudged);
  });
  warps_[warp.index].time = now;
  if (!at_barrier || !landing.is_last) return;
  hand_on(locations_[landing.barrier], warp.index, known->second.known, known->second.told);
  issued_.erase(known);
}

void RaceCheck::wait_for_products(const Warp& warp) {
  WarpOrder& order = warps_[warp.index];
  const size_t first = warp.index / 4 * 4;
  for (size_t other = first; other < first + 4 && other < warps_.size(); ++other)
    if (other != warp.index) order.known[other] = std::max(order.known[other], warps_[other].product);
}

/// What a bulk copy will read and write, against what its issuer knows.
void RaceCheck::issue(Warp& warp, const Op& op) {
  WarpOrder& order = warps_[warp.index];
  bool any = false;
  each_issued(warp, [&](const BulkCopy& copy) {
    const bool at_barrier = copy.barrier != no_shared, combines = copy.combine != ptx::Combine::none;
    for (const BulkPiece& piece : copy.pieces) {
      if (piece.what == BulkPiece::What::copy)
        touch({&warp, &op, copy.lane, false, false, copy.from_space, piece.from, piece.bytes},
              at_barrier ? Remember::judged : Remember::nothing);
      touch({&warp, &op, copy.lane, true, combines, copy.to_space, piece.to, piece.bytes, true},
            Remember::nothing);
    }
    any = true;
    if (!at_barrier) return;
    Issued& issued = issued_[copy.number];
    issued = {order.time, order.known, order.lanes.with(copy.lane, order.time)};
    issued.known[warp.index] = order.time;
  });
  if (any) advance(order);
}

void RaceCheck::touch(const Touch& now, Remember remember) {
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

void RaceCheck::judge_writers(const Touch& now, const Writers& writers) {
  if (!ordered(writers.last, now))
    report(now, writers.last, true);
  else if (is_strong(writers.last.who) && !ordered(writers.plain, now))
    report(now, writers.plain, true);
}

/// A write, against what a warp of the block has read last.
void RaceCheck::judge_reader(const Touch& now, uint32_t warp, const Reader& reader) {
  if (is_past(reader.time) || both_strong(reader.who, now)) return;
  const uint32_t others = warp == now.warp->index ? reader.lanes & ~(1u << now.lane) : reader.lanes;
  if (!others) return;
  const int lane = std::countr_zero(others);
  if (block_at(reader.time) == block_->linear && !ordered_in_block(warp, lane, reader.time, now))
    report(now, {reader.time, packed(op_of(reader.who), lane, warp, false)}, false);
}

void RaceCheck::touch_shared(const Touch& now, Remember remember) {
  const auto warps = static_cast<uint32_t>(warps_.size());
  const Stamp me = stamp(now);
  for (size_t g = now.address / shared_granule_; g * shared_granule_ < now.address + now.bytes; ++g) {
    Writers& writers = shared_writers_[g];
    const bool judged = remember != Remember::unjudged;
    if (!now.writes || now.pending || !repeats_contents(g))
      if (judged) judge_writers(now, writers);
    Reader* const readers = &shared_readers_[g * warps];
    if (!now.writes) {
      if (remember == Remember::nothing) continue;
      Reader& mine = readers[now.warp->index];
      const bool is_new = mine.time != me.time;
      mine.lanes = (is_new ? 0 : mine.lanes) | 1u << now.lane;
      mine.time = me.time;
      // A plain read is what an atomic races with, one of those that pass values in step what a store does.
      const bool tells_more = is_strong(mine.who) && facts(*now.op).is_volatile != RaceFacts::Volatile::no;
      if (is_new || !now.strong || tells_more) mine.who = me.who;
      continue;
    }
    for (uint32_t w = 0; w < warps && judged; ++w) judge_reader(now, w, readers[w]);
    if (remember != Remember::nothing) writers = {me, now.strong ? writers.plain : me};
  }
}

void RaceCheck::note_remote(const Touch& now) {
  if (now.space != ptx::Space::shared) return;
  const uint64_t rank = now.address / block_->shared_stride;
  if (rank != now.warp->rank)
    remote_[rank * warps_.size() + now.warp->index] = {stamp(now), now.address, now.writes};
}

void RaceCheck::touch_global(const Touch& now, Remember remember) {
  auto* const area = areas_->find(now.address, last_area_);
  if (!area) return;
  if (!area->note.followed) {
    if (now.writes) written_unfollowed_.insert(area->name);
    return;
  }
  const uint64_t offset = now.address - area->base;
  const Stamp me = stamp(now);
  for (uint64_t g = offset / global_granule_; g * global_granule_ < offset + now.bytes; ++g) {
    const auto [cells, at] = areas_->touch(*area, g * global_granule_);
    Granule& granule = (*cells)[at];
    if (remember != Remember::unjudged) judge_writers(now, granule.writers);
    if (!now.writes) {
      if (remember == Remember::nothing) continue;
      const Stamp& first = granule.first_reader;
      // Whatever comes after this read without an order to the first has none to this one either.
      const bool follows =
          is_past(first.time) ||
          (warp_of(first.who) == now.warp->index && block_at(first.time) == block_->linear) ||
          ordered(first, now);
      (follows ? granule.first_reader : granule.last_reader) = me;
      continue;
    }
    if (remember == Remember::unjudged) continue;
    if (!ordered(granule.first_reader, now)) report(now, granule.first_reader, false);
    if (!ordered(granule.last_reader, now)) report(now, granule.last_reader, false);
    if (remember != Remember::nothing) granule.writers = {me, now.strong ? granule.writers.plain : me};
  }
}

void RaceCheck::report(const Touch& now, const Stamp& before, bool before_wrote) {
  const uint64_t other_block = block_at(before.time);
  const bool same_block = other_block == block_->linear,
             same_warp = same_block && warp_of(before.who) == now.warp->index;
  const Actor who = actor(*now.warp, *now.op, now.lane), other = actor_of(before.who);
  const bool reads = !now.writes || !before_wrote, reads_global = reads && now.space == ptx::Space::global;
  if (reads_global)
    racing_reads_.back().add(
        now.address, now.bytes,
        now.writes ? std::pair(block_->linear, who.thread) : std::pair(other_block, other.thread));
  other_reads_race_ |= reads && !reads_global;
  if (!log_.opens(same_warp ? warp_race : race, who.op, other.op)) return;
  const std::string did = now.writes ? "written" : "read", other_did = before_wrote ? "written" : "read";
  const bool in_step = same_warp && is_strong(before.who) && now.strong,
             one_store = same_warp && other.op == who.op && now.writes && before_wrote;
  const char* missing = one_store ? "lanes of one warp store different values"
                        : in_step
                            ? "no __syncwarp between these lanes of one warp, and volatile keeps none in step"
                        : same_warp   ? "no __syncwarp between these lanes of one warp"
                        : !same_block ? "blocks of one launch have no order"
                                      : "no barrier (__syncthreads) between them";
  CheckFinding& made = log_.tell(place_by(who, did), place_by(other, other_did, other_block),
                                 memory_text(*block_, now.space, now.address), fmt::arg("did", did),
                                 fmt::arg("other_did", other_did), fmt::arg("missing", missing));
  made.reads_global = reads_global;
}

}  // namespace assay::vm
