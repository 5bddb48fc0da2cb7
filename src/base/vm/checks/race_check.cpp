#include "src/base/vm/checks/race_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/vm/engine.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/matrix_elements.h"

namespace assay::vm {
namespace {

constexpr CheckLog::Kind race{"races", "race"}, warp_race{"races", "warp-race"};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

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

RaceCheck::Facts RaceCheck::facts_of(const Code& code, const Op& op) {
  Facts facts;
  if (!op.row) return facts;
  const std::string opcode = opcode_text(code, op);
  switch (op.row->effect) {
    case Effect::load:
      facts.act = Act::load;
      break;
    case Effect::store:
      facts.act = Act::store;
      break;
    case Effect::atomic:
      facts.act = Act::atomic;
      break;
    case Effect::load_matrix:
      facts.act = Act::load_matrix;
      break;
    case Effect::store_matrix:
      facts.act = Act::store_matrix;
      break;
    case Effect::matrix:
      if (MatrixForm::of(op.immediate).warpgroup) facts.act = Act::multiply;
      break;
    case Effect::async_copy:
      facts.act = Act::copy;
      break;
    default:
      if (opcode.starts_with("membar") || opcode.starts_with("fence")) facts.act = Act::fence;
      if (opcode.starts_with("mbarrier.") && op.element_bytes) facts.act = Act::atomic;
      // The operand that names the members, by the decoding of each form.
      if (opcode.starts_with("vote.") || opcode.starts_with("match.") || opcode.starts_with("redux."))
        facts.members = op.s[1];
      if (opcode.starts_with("elect.") || opcode.starts_with("bar.warp.")) facts.members = op.s[0];
      if (opcode.starts_with("shfl.sync")) facts.members = op.s[3];
      if (facts.members != no_slot) facts.act = Act::members;
      break;
  }
  facts.releases = opcode.starts_with("mbarrier.") || contains(opcode, ".release") || contains(opcode, ".acq_rel");
  facts.strong = facts.act == Act::atomic || facts.releases || contains(opcode, ".volatile") ||
                 contains(opcode, ".relaxed") || contains(opcode, ".acquire");
  return facts;
}

void RaceCheck::enter(const LaunchContext& context) {
  context_ = &context;
  code_ = context.code;
  facts_.clear();
  shared_granule_ = global_granule_ = 16;
  for (const Op& op : code_->ops) {
    const Facts facts = facts_.emplace_back(facts_of(*code_, op));
    if (facts.act != Act::load && facts.act != Act::store && facts.act != Act::atomic) continue;
    const uint32_t bytes = std::max<uint32_t>(1, op.element_bytes);
    if (op.space != ptx::Space::global) shared_granule_ = std::min(shared_granule_, bytes);
    if (op.space != ptx::Space::shared) global_granule_ = std::min(global_granule_, bytes);
  }
  for (const Op& op : code_->ops)
    if (op.row && op.row->effect == Effect::async_copy) {
      shared_granule_ = std::min<uint32_t>(shared_granule_, op.element_bytes);
      global_granule_ = std::min<uint32_t>(global_granule_, 4);
    }
  launch_start_ = clock_;
  block_of_time_.clear();
  locations_.clear();
  areas_.clear();
  last_area_ = 0;
  for (const Allocation& a : context.memory->allocations()) {
    GlobalArea& area = areas_.emplace_back();
    area.base = a.base, area.bytes = a.bytes;
    area.followed = !unfollowed_.contains(a.name) && a.base != parameter_base;
  }
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
  std::erase_if(locations_, [](const auto& entry) { return entry.first < function_base; });  // shared memory's
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
  if (block == block_->linear) return ordered_in_block(warp_of(before.who), lane_of(before.who), before.time, now);
  if (now.space == ptx::Space::shared) return true;  // every block has its own
  const auto known = known_blocks_.find(block);
  return known != known_blocks_.end() && before.time <= known->second;
}

void RaceCheck::before(Warp& warp, const Op& op, uint32_t mask) {
  if (op.kind == Kind::barrier) arrive(warp, op, mask);
}

void RaceCheck::after(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& facts = facts_[static_cast<size_t>(&op - code_->ops.data())];
  switch (facts.act) {
    case Act::none:
      return;
    case Act::load:
      if (facts.strong) through_location(warp, op, mask);
      return access(warp, op, mask, false, facts.strong);
    case Act::store:
      access(warp, op, without_repeats(warp, op, mask), true, facts.strong);
      if (facts.strong) through_location(warp, op, mask);
      return;
    case Act::atomic:
      access(warp, op, mask, true, true);
      return through_location(warp, op, mask);
    case Act::multiply:
      return multiply(warp, op);
    case Act::load_matrix:
    case Act::store_matrix: {
      const bool writes = facts.act == Act::store_matrix;
      const uint32_t givers = op.slot_count == 4 ? ~0u : (1u << (8 * op.slot_count)) - 1;
      for_lanes(givers, [&](int lane) {
        touch({&warp, &op, lane, writes, false, ptx::Space::shared, warp.address[lane], 16});
      });
      return;
    }
    case Act::copy:
      for_lanes(mask, [&](int lane) {
        touch({&warp, &op, lane, true, false, ptx::Space::shared, warp.address2[lane], op.element_bytes}, false);
        const PendingCopy& copy = warp.pending[warp.pending_count - 1];
        if (copy.copied[lane])
          touch({&warp, &op, lane, false, false, ptx::Space::global, warp.address[lane], copy.copied[lane]});
      });
      return;
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

/// The warp meets, then reads its rows of A and all of B.
void RaceCheck::multiply(Warp& warp, const Op& op) {
  order_members(warp, ~0u);
  each_shared_piece(warp, op, [&](char, uint64_t address) {
    touch({&warp, &op, 0, false, false, ptx::Space::shared, address, 16});
  });
  order_members(warp, ~0u);
}

void RaceCheck::access(Warp& warp, const Op& op, uint32_t mask, bool writes, bool strong) {
  if (warp.space == ptx::Space::local) return;
  const uint32_t bytes = op.element_bytes * std::max<uint32_t>(1, op.vector_length);
  for_lanes(mask,
            [&](int lane) { touch({&warp, &op, lane, writes, strong, warp.space, warp.address[lane], bytes}); });
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
      report(now, {warps_[warp.index].time, packed(static_cast<size_t>(&op - code_->ops.data()), lane, warp.index, false)}, true);
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

/// Whether the write that has just happened left the granule as it was; takes note of its contents. Warps that
/// store the same value to one place need no order (compilers write a value that several warps hold so).
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

RaceCheck::GlobalArea* RaceCheck::area_of(uint64_t address) {
  if (last_area_ < areas_.size() && address - areas_[last_area_].base < areas_[last_area_].bytes)
    return &areas_[last_area_];
  const auto after = std::upper_bound(areas_.begin(), areas_.end(), address,
                                      [](uint64_t x, const GlobalArea& a) { return x < a.base; });
  if (after == areas_.begin()) return nullptr;
  last_area_ = static_cast<size_t>(after - areas_.begin()) - 1;
  return address - areas_[last_area_].base < areas_[last_area_].bytes ? &areas_[last_area_] : nullptr;
}

RaceCheck::Granule* RaceCheck::granules(GlobalArea& area, uint64_t number) {
  const uint64_t page = number / page_granules;
  if (area.last_number != page) {
    auto& made = area.pages[page];
    if (!made) made = std::make_unique<Granule[]>(page_granules);
    area.last_number = page;
    area.last_page = made.get();
  }
  return area.last_page + number % page_granules;
}

void RaceCheck::touch_global(const Touch& now, bool remember) {
  GlobalArea* const area = area_of(now.address);
  if (!area) return;
  if (!area->followed) {
    if (now.writes) {
      const size_t index = static_cast<size_t>(area - areas_.data());
      written_unfollowed_.insert(context_->memory->allocations()[index].name);
    }
    return;
  }
  const uint64_t offset = now.address - area->base;
  const uint32_t time = warps_[now.warp->index].time, me = who(now);
  for (uint64_t g = offset / global_granule_; g <= (offset + now.bytes - 1) / global_granule_; ++g) {
    Granule& granule = *granules(*area, g);
    if (!ordered(granule.writer, now))
      report(now, granule.writer, true);
    else if (is_strong(granule.writer.who) && !ordered(granule.plain_writer, now))
      report(now, granule.plain_writer, true);
    if (!now.writes) {
      const bool mine = granule.first_reader.time > launch_start_ && warp_of(granule.first_reader.who) == now.warp->index &&
                        block_of_time_[granule.first_reader.time - launch_start_ - 1] == block_->linear;
      (granule.first_reader.time <= launch_start_ || mine ? granule.first_reader : granule.last_reader) = {time, me};
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
    return fmt::format("{} by {}", wrote ? "written" : "read", opcode_text(code, op));
  };
  finding->at = log_.place({now.op, block_->linear, now.warp->index * 32 + static_cast<uint32_t>(now.lane)},
                           did(*now.op, now.writes));
  finding->other = log_.place(
      {&other, other_block, warp_of(before.who) * 32 + static_cast<uint32_t>(lane_of(before.who))},
      did(other, before_wrote));
  finding->element = memory_text(*block_, now.space, now.address);
  const bool one_store = same_warp && &other == now.op && now.writes && before_wrote;
  const char* missing = one_store     ? "lanes of one warp store different values"
                        : same_warp   ? "no __syncwarp between these lanes of one warp"
                        : other_block != block_->linear ? "blocks of one launch have no order"
                                      : "no barrier between them";
  finding->message = fmt::format("{}: {} at {} by {}; {} at {} by {}: {}", finding->element,
                                 before_wrote ? "written" : "read", place_text(finding->other->where),
                                 thread_text(*finding->other), now.writes ? "written" : "read",
                                 place_text(finding->at.where), thread_text(finding->at), missing);
}

}  // namespace assay::vm
