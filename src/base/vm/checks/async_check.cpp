#include "src/base/vm/checks/async_check.h"

#include <algorithm>
#include <cstring>

#include "src/base/vm/mbarrier.h"

namespace assay::vm {
namespace {

constexpr CheckSentence copy_race{CheckKind::async_copy_race,
                                  "{element}: {did} at {at} by {thread} while the cp.async at {other} "
                                  "by {other_thread} that fills it is in "
                                  "flight: no cp.async.wait_group covers it"};

// Four ways into one kind.
constexpr CheckSentence wgmma_registers{CheckKind::wgmma_race,
                                        "{element}: {access} at {at} by {thread} while the "
                                        "wgmma.mma_async at {other} that {does} it is in flight: "
                                        "no wgmma.wait_group between them"};
constexpr CheckSentence wgmma_unfenced{CheckKind::wgmma_race,
                                       "{element}: written at {other}, then used by the wgmma.mma_async "
                                       "at {at} by {thread}: no wgmma.fence between "
                                       "them"};
constexpr CheckSentence wgmma_overwritten{CheckKind::wgmma_race,
                                          "{element}: written at {at} by {thread} while the "
                                          "wgmma.mma_async at {other} by {other_thread} that reads it "
                                          "is in flight: no wgmma.wait_group covers it"};
constexpr CheckSentence wgmma_proxy{CheckKind::wgmma_race,
                                    "{element}: written at {other} by {other_thread}, {access} by the "
                                    "wgmma.mma_async at {at} by {thread}: no "
                                    "fence.proxy.async between them"};

constexpr CheckSentence bulk_race{CheckKind::bulk_copy_race,
                                  "{element}: {did} at {at} by {thread} while the bulk copy at {other} by "
                                  "{other_thread} that fills it is in flight: no wait for it has passed"};
constexpr CheckSentence bulk_overwritten{CheckKind::bulk_copy_race,
                                         "{element}: written at {at} by {thread} while the bulk copy at "
                                         "{other} by {other_thread} that reads it is in flight: no "
                                         "cp.async.bulk.wait_group covers it"};
constexpr CheckSentence bulk_proxy{
    CheckKind::proxy_fence,
    "{element}: written at {other} by {other_thread}, read by the bulk copy at "
    "{at} by {thread}: no fence.proxy.async between them"};
constexpr CheckSentence phase_again{
    CheckKind::mbarrier_phase,
    "{element}: {thread} passes at {at} a wait for a phase that it has passed "
    "at {other}, while the next phase is under way: its parity has not "
    "changed"};

bool has(const std::vector<Slot>& slots, Slot slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

}  // namespace

AsyncFacts AsyncCheck::facts_of(const Op&, const Signature& signature) {
  AsyncFacts f;
  const auto [completion, step, proxy] = signature.meaning->asynchronous;
  for (const Use& to : signature.writes) f.writes.push_back(to.slot);
  // The sums of a wgmma that it adds to are ordered.
  for (const Use& from : signature.reads)
    if (from.purpose != Purpose::guard &&
        !(completion == Completion::wgmma_group && has(f.writes, from.slot)))
      f.reads.push_back(from.slot);
  f.moves =
      signature.flow() == Flow::copy || signature.flow() == Flow::pack || signature.flow() == Flow::unpack;
  if (reaches_memory(signature)) f.act = Act::access;
  if (completion == Completion::copy_group && step == Step::issue) f.act = Act::copy;
  if (completion == Completion::wgmma_group && step == Step::issue) f.act = Act::multiply;
  if (completion == Completion::wgmma_group && step == Step::fence) f.act = Act::wgmma_fence;
  f.of_barrier = completion == Completion::mbarrier && signature.flow() == Flow::none;
  if (f.of_barrier && step == Step::wait) f.act = Act::barrier_wait;
  if (signature.flow() == Flow::copy_bulk) f.act = Act::bulk;
  if (completion == Completion::none && step == Step::fence && proxy == Proxy::async)
    f.act = Act::proxy_fence;
  return f;
}

void AsyncCheck::enter(const LaunchContext& context) {
  begin_code(context, facts_of);
  copies_ = multiplies_ = bulk_ = false;
  of_wgmma_.assign(code_->file_bytes / 64 + 4, 0);
  for (const Op& op : code_->ops) {
    bulk_ |= facts(op).act == Act::bulk;
    copies_ |= facts(op).act == Act::copy || bulk_;
    if (facts(op).act != Act::multiply) continue;
    multiplies_ = true;
    for (int i = 0; i < op.slot_count; ++i) of_wgmma_[op.slots[i] / 64] = 1;
  }
}

void AsyncCheck::begin_block(Block& block) {
  block_ = &block;
  if (copies_) copying_.assign(block.shared.size() / 4 + 1, {});
  if (!multiplies_ && !bulk_) return;
  bulk_readers_.assign(bulk_ ? block.shared.size() / 16 + 1 : 0, {});
  phases_.clear();
  passed_.clear();
  stored_.assign(block.shared.size() / 4 + 4, {});
  pieces_.assign(block.shared.size() / 16 + 1, {});
  time_ = epoch_ = fence_epoch_ = 0;
  warps_.assign(block.warps.size(), {.written = std::vector<const Op*>(of_wgmma_.size())});
}

std::string AsyncCheck::register_name(const Op& op, Slot slot) const {
  // An op's registers stand in its instruction in the order of its slots.
  const ptx::Operand& fragment = instruction_of(*code_, op)->operands[0];
  for (uint16_t i = 0; i < op.slot_count && i < fragment.elements.size(); ++i)
    if (op.slots[i] == slot && fragment.elements[i].reg >= 0)
      return function_of(*code_, op)->registers[static_cast<size_t>(fragment.elements[i].reg)].name;
  return "a register of A";
}

void AsyncCheck::before(Warp& warp, const Op& op, uint32_t) {
  if (!multiplies_) return;
  const AsyncFacts& f = facts(op);
  if (!warp.products.in_flight().empty()) check_registers(warp, op, f);
  if (f.act == Act::multiply) check_fence(warp, op);
}

/// Registers of instructions in flight.
void AsyncCheck::check_registers(const Warp& warp, const Op& op, const AsyncFacts& f) {
  for (const auto& issued : warp.products.in_flight()) {
    const Op& flying = *issued.op;
    const MatrixForm& flown = signature(flying).matrix;
    for (int i = 0; i < flying.slot_count; ++i) {
      const Slot slot = flying.slots[i];
      const bool result = i < flown.sum_registers(), writes = has(f.writes, slot), reads = has(f.reads, slot);
      if (result ? !(reads || writes) : !writes) continue;
      // Sums of one shape that follow each other are ordered.
      if (result && f.act == Act::multiply && writes && !reads && flown.tiles == signature(op).matrix.tiles)
        continue;
      if (log_.opens(wgmma_registers, &op, &flying))
        log_.tell(place(warp, op, 0, writes ? "written" : "read"), place(warp, flying, 0, "issued"),
                  register_name(flying, slot), fmt::arg("does", result ? "makes" : "reads"));
      return;
    }
  }
}

/// What was written to the registers of a wgmma since the last wgmma.fence.
void AsyncCheck::check_fence(const Warp& warp, const Op& op) {
  for (int i = 0; i < op.slot_count; ++i) {
    const Op* const writer = warps_[warp.index].written[op.slots[i] / 64];
    if (!writer) continue;
    if (log_.opens(wgmma_unfenced, &op, writer))
      log_.tell(place(warp, op, 0, "read"), place(warp, *writer, 0, "written"),
                register_name(op, op.slots[i]));
    return;
  }
}

void AsyncCheck::note_written(WarpState& warp, const Op& op, const AsyncFacts& f) {
  for (const Slot slot : f.writes) {
    if (!of_wgmma_[slot / 64]) continue;
    if (!warp.written[slot / 64]) warp.since_fence.push_back(slot);
    warp.written[slot / 64] = &op;
  }
}

void AsyncCheck::after(Warp& warp, const Op& op, uint32_t mask) {
  if (!copies_ && !multiplies_) return;
  const AsyncFacts& f = facts(op);
  if (multiplies_ && f.act != Act::multiply && !f.moves) note_written(warps_[warp.index], op, f);
  switch (f.act) {
    case Act::none:
      return;
    case Act::multiply:
      return multiply(warp, op);
    case Act::wgmma_fence: {
      WarpState& state = warps_[warp.index];
      for (const Slot slot : state.since_fence) state.written[slot / 64] = nullptr;
      return state.since_fence.clear();
    }
    case Act::proxy_fence:
      if (!multiplies_ && !bulk_) return;
      warps_[warp.index].proxy_fence = ++time_;
      fence_epoch_ = epoch_;
      return;
    case Act::bulk:
      return issue(warp, op);
    case Act::barrier_wait:
      return bulk_ ? pass(warp, op, mask) : void();
    case Act::access:
    case Act::copy:
      break;
  }
  if (bulk_ && f.of_barrier && warp.space == ptx::Space::shared)
    each_lane(mask, [&](int lane) { phases_ended(warp.address[lane]); });
  each_access(warp, op, mask, [&](const MemoryAccess& access) {
    if (access.space != ptx::Space::shared) return;
    touch(warp, op, access);
    for (uint32_t byte = 0; f.act == Act::copy && byte < access.bytes; byte += 4)
      copying_[(access.address + byte) / 4] = {&op, thread_of(warp, access.lane)};
  });
}

void AsyncCheck::check_copies(const Warp& warp, const Op& op, const MemoryAccess& access) {
  if (!copies_) return;
  for (uint64_t at = access.address & ~uint64_t{3}; at < access.address + access.bytes; at += 4) {
    const Copying& copy = copying_[at / 4];
    if (!copy.op) continue;
    const std::string did = access.reads ? "read" : "written";
    if (facts(*copy.op).act == Act::bulk) {
      if (log_.opens(bulk_race, &op, copy.op))
        log_.tell(place(warp, op, access.lane, did + " by " + opcode_of(*code_, op)),
                  log_.place(*copy.op, block_->linear, copy.thread, "copied by a bulk copy"),
                  memory_text(*block_, ptx::Space::shared, at), fmt::arg("did", did));
      return;
    }
    if (log_.opens(copy_race, &op, copy.op))
      log_.tell(place(warp, op, access.lane, did + " by " + opcode_of(*code_, op)),
                log_.place(*copy.op, block_->linear, copy.thread, "copied by cp.async"),
                memory_text(*block_, ptx::Space::shared, at), fmt::arg("did", did));
    return;
  }
}

/// One lane's access to shared memory.
void AsyncCheck::touch(Warp& warp, const Op& op, const MemoryAccess& access) {
  const auto& [lane, space, address, bytes, reads, writes, operand] = access;
  const bool copy = facts(op).act == Act::copy;
  if (!copy) check_copies(warp, op, access);
  if (!writes || !(multiplies_ || bulk_)) return;
  const uint64_t end = address + bytes;
  if (bulk_) check_bulk_readers(warp, op, lane, address, bytes);
  for (uint64_t p = address / 16; 16 * p < end; ++p) {
    const Piece& piece = pieces_[p];
    if (!piece.reader || !block_->warps[piece.warp].products.flies(piece.issue)) continue;
    if (log_.opens(wgmma_overwritten, &op, piece.reader))
      log_.tell(place(warp, op, lane, "written by " + opcode_of(*code_, op)),
                place(block_->warps[piece.warp], *piece.reader, 0, "read by wgmma"),
                memory_text(*block_, space, address));
  }
  if (copy) return;
  ++time_;
  for (uint64_t at = address / 4; 4 * at < end; ++at)
    stored_[at] = {&op, thread_of(warp, lane), time_, epoch_};
}

void AsyncCheck::multiply(Warp& warp, const Op& op) {
  const uint64_t issue = warp.products.issued() - 1;
  each_access(warp, op, ~0u, [&](const MemoryAccess& access) {
    const uint64_t address = access.address;
    check_copies(warp, op, access);
    const auto unfenced = [&](const Stored& stored) {
      return stored.writer && warps_[stored.thread / 32].proxy_fence <= stored.time &&
             fence_epoch_ <= stored.epoch;
    };
    const auto words = stored_.begin() + static_cast<ptrdiff_t>(address / 4);
    const auto stored = std::find_if(words, words + 4, unfenced);
    if (stored != words + 4 && log_.opens(wgmma_proxy, &op, stored->writer))
      log_.tell(place(warp, op, 0, fmt::format("read as {}", access.operand)),
                log_.place(*stored->writer, block_->linear, stored->thread,
                           "written by " + opcode_of(*code_, *stored->writer)),
                memory_text(*block_, ptx::Space::shared, address));
    pieces_[address / 16] = {&op, issue, warp.index};
  });
}

/// A fence of the issuer, behind whatever told it of the store, is enough.
bool AsyncCheck::is_unfenced(const Stored& stored, const Warp& reader) const {
  return stored.writer && warps_[stored.thread / 32].proxy_fence <= stored.time &&
         warps_[reader.index].proxy_fence <= stored.time && fence_epoch_ <= stored.epoch;
}

void AsyncCheck::check_bulk_readers(const Warp& warp, const Op& op, int lane, uint64_t address,
                                    uint64_t bytes) {
  for (uint64_t p = address / 16; 16 * p < address + bytes; ++p) {
    const BulkReader& reader = bulk_readers_[p];
    if (!reader.op) continue;
    if (log_.opens(bulk_overwritten, &op, reader.op))
      log_.tell(place(warp, op, lane, "written by " + opcode_of(*code_, op)),
                log_.place(*reader.op, block_->linear, reader.thread, "read by a bulk copy"),
                memory_text(*block_, ptx::Space::shared, address));
    return;
  }
}

void AsyncCheck::issue_read(const Warp& warp, const Op& op, const BulkCopy& copy, const BulkPiece& piece) {
  check_copies(warp, op, {copy.lane, ptx::Space::shared, piece.from, piece.bytes, true, false});
  for (uint64_t at = piece.from / 4; 4 * at < piece.from + piece.bytes; ++at) {
    const Stored& stored = stored_[at];
    if (!is_unfenced(stored, warp)) continue;
    if (log_.opens(bulk_proxy, &op, stored.writer))
      log_.tell(place(warp, op, copy.lane, "read by a bulk copy"),
                log_.place(*stored.writer, block_->linear, stored.thread,
                           "written by " + opcode_of(*code_, *stored.writer)),
                memory_text(*block_, ptx::Space::shared, 4 * at));
    break;
  }
  for (uint64_t p = piece.from / 16; 16 * p < piece.from + piece.bytes; ++p)
    bulk_readers_[p] = {&op, thread_of(warp, copy.lane), copy.number};
}

void AsyncCheck::issue_write(const Warp& warp, const Op& op, const BulkCopy& copy, const BulkPiece& piece) {
  check_copies(warp, op, {copy.lane, ptx::Space::shared, piece.to, piece.bytes, false, true});
  check_bulk_readers(warp, op, copy.lane, piece.to, piece.bytes);
}

void AsyncCheck::issue(Warp& warp, const Op& op) {
  each_issued(warp, [&](const BulkCopy& copy) {
    for (const BulkPiece& piece : copy.pieces) {
      if (copy.from_space == ptx::Space::shared && piece.what == BulkPiece::What::copy)
        issue_read(warp, op, copy, piece);
      if (copy.to_space == ptx::Space::shared) issue_write(warp, op, copy, piece);
    }
    // Pieces of one copy may share a word.
    for (const BulkPiece& piece : copy.pieces)
      for (uint64_t at = piece.to / 4; copy.to_space == ptx::Space::shared && 4 * at < piece.to + piece.bytes;
           ++at)
        copying_[at] = {&op, thread_of(warp, copy.lane)};
  });
}

/// How many phases of the mbarrier have been seen to end.
uint64_t AsyncCheck::phases_ended(uint64_t place) {
  uint64_t word;
  std::memcpy(&word, block_->shared.data() + place, sizeof word);
  Phases& phases = phases_[place];
  if (word == Mbarrier::none) return phases.ended;
  const bool now = Mbarrier::of(word).phase;
  phases.ended += now != phases.now;
  phases.now = now;
  return phases.ended;
}

void AsyncCheck::pass(Warp& warp, const Op& op, uint32_t mask) {
  if (warp.space != ptx::Space::shared) return;
  each_lane(mask & warp.mask(op.d), [&](int lane) {
    const uint64_t at = warp.address[lane], ended = phases_ended(at);
    uint64_t word;
    std::memcpy(&word, block_->shared.data() + at, sizeof word);
    const Mbarrier b = Mbarrier::of(word);
    Pass& last = passed_[uint64_t{thread_of(warp, lane)} << 32 | at];
    const bool under_way = b.pending != b.expected || b.bytes != 0;
    if (last.op && last.ended == ended && under_way && log_.opens(phase_again, &op, last.op))
      log_.tell(place(warp, op, lane, "passed by " + opcode_of(*code_, op)),
                place(warp, *last.op, lane, "passed before"), memory_text(*block_, ptx::Space::shared, at));
    last = {&op, ended};
  });
}

void AsyncCheck::landed(Warp&, const Landing& landing) {
  const bool bulk = landing.number != 0;
  each_lane(landing.mask, [&](int piece) {
    if (landing.to_space == ptx::Space::shared)
      for (uint32_t byte = 0; byte < landing.bytes; byte += 4) {
        const uint64_t at = (landing.to[piece] + byte) / 4;
        copying_[at] = {};
        if (multiplies_ || bulk_) stored_[at] = {};
      }
    if (!bulk || landing.from_space != ptx::Space::shared || landing.copied[piece] == 0) return;
    const uint64_t from = landing.from[piece];
    for (uint64_t p = from / 16; 16 * p < from + landing.copied[piece]; ++p)
      if (bulk_readers_[p].number == landing.number) bulk_readers_[p] = {};
  });
  if (bulk && landing.is_last && landing.barrier != no_shared) phases_ended(landing.barrier);
}

void AsyncCheck::released(Block&) {
  ++epoch_;
  ++time_;
}

}  // namespace assay::vm
