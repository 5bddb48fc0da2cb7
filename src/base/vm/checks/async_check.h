// Misuse of what runs beside the threads: cp.async, bulk copies and wgmma.
//
// - Shared memory that a cp.async fills is not touched before the wait that covers the copy
//   (`async-copy-race`).
// - Registers of a wgmma.mma_async are not touched while it is in flight: its results by no instruction but
//   the next mma_async that adds to them, its A by none that writes (PTX ISA, wgmma.wait_group); and what is
//   written to its registers is ordered before it by wgmma.fence. Copies from register to register are left
//   out of the latter: compilers place them behind the fence, and the assembler orders them.
// - Shared memory that it reads is not overwritten while it is in flight, and was not written by st, stmatrix
//   or atomics without a fence.proxy.async since, by the writing warp or, after a barrier, by any warp (PTX
//   ISA, "Async proxy"). Data of cp.async is exempt: compiled kernels use no fence
//   for it. That is read off such kernels, not measured.
// The last three are `wgmma-race`.
// - Shared memory that a bulk copy fills is not touched before a wait for it has passed, and what one
//   reads is not overwritten before the wait for its group (`bulk-copy-race`). What it reads was not written
//   by threads without a fence.proxy.async since, by the writer, by the issuer, or after a barrier by anyone
//   (`proxy-fence`).
// - A thread does not pass a wait for one phase of an mbarrier again once the next phase has arrivals or
//   bytes: its parity has not changed with the phases (`mbarrier-phase`).
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "src/base/vm/checks/check.h"
#include "src/base/vm/mbarrier.h"

namespace assay::vm {

/// What an op has to do with asynchronous work, and its registers.
struct AsyncFacts {
  enum class Act : uint8_t {
    none,
    access,
    copy,
    multiply,
    wgmma_fence,
    proxy_fence,
    bulk,
    barrier_wait
  } act = Act::none;
  bool moves = false;
  bool of_barrier = false;  ///< an mbarrier instruction
  std::vector<Slot> reads, writes;
};

class AsyncCheck : public Check<AsyncFacts> {
 public:
  static constexpr unsigned hooks =
      hook::begin_block | hook::before | hook::after | hook::landed | hook::released | hook::end_block;
  explicit AsyncCheck(const CheckSetup& setup) : Check(setup) {}

  void enter(const LaunchContext& context) {
    begin_code(context, facts_of);
    copies_ = multiplies_ = copies_bulk_ = false;
    of_wgmma_.assign(code_->file_bytes / 64 + 4, 0);
    for (const Op& op : code_->ops) {
      copies_bulk_ |= facts(op).act == Act::bulk;
      copies_ |= facts(op).act == Act::copy || copies_bulk_;
      if (facts(op).act != Act::multiply) continue;
      multiplies_ = true;
      for (int i = 0; i < fragment_slots(op); ++i) of_wgmma_[op.slots[i] / 64] = 1;
    }
  }

  void begin_block(Block& block) {
    block_ = &block;
    if (copies_) copying_.assign(block.shared.size() / 4 + 1, {});
    if (!multiplies_ && !copies_bulk_) return;
    bulk_.assign(copies_bulk_ ? block.shared.size() / 16 + 1 : 0, {});
    phases_.clear();
    passed_.clear();
    stored_.assign(block.shared.size() / 4 + 4, {});
    products_.assign((block.warps.size() + 3) / 4, {});
    time_ = epoch_ = fence_epoch_ = 0;
    warps_.assign(block.warps.size(), {.written = std::vector<const Op*>(of_wgmma_.size())});
  }

  void before(Warp& warp, const Op& op, uint32_t) {
    if (!multiplies_) return;
    const AsyncFacts& f = facts(op);
    if (!warp.products.in_flight().empty()) check_registers(warp, op, f);
    if (f.act == Act::multiply) check_fence(warp, op);
  }

  void after(Warp& warp, const Op& op, uint32_t mask) {
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
        if (!multiplies_ && !copies_bulk_) return;
        warps_[warp.index].proxy_fence = ++time_;
        fence_epoch_ = epoch_;
        return;
      case Act::bulk:
        return issue(warp, op);
      case Act::barrier_wait:
        return copies_bulk_ ? pass(warp, op, mask) : void();
      case Act::access:
      case Act::copy:
        break;
    }
    if (copies_bulk_ && f.of_barrier && warp.space == ptx::Space::shared)
      each_lane(mask, [&](int lane) { phases_ended(warp.address[lane]); });
    each_access(warp, op, mask, [&](const MemoryAccess& access) {
      if (access.space != ptx::Space::shared) return;
      const Actor who = actor(warp, op, access.lane);
      touch(who, access);
      if (f.act == Act::copy) std::ranges::fill(cells_of<4>(copying_, access.address, access.bytes), who);
    });
  }

  void landed(Warp& warp, const Landing& landing) {
    const bool bulk = landing.number != 0;
    each_lane(landing.mask, [&](int piece) {
      if (landing.to_space == ptx::Space::shared) {
        std::ranges::fill(cells_of<4>(copying_, landing.to[piece], landing.bytes), Actor{});
        if (multiplies_ || copies_bulk_)
          std::ranges::fill(cells_of<4>(stored_, landing.to[piece], landing.bytes), Stored{});
      }
      if (!bulk || landing.from_space != ptx::Space::shared || landing.copied[piece] == 0) return;
      for (Reader& reader : cells_of<16>(bulk_, landing.from[piece], landing.copied[piece]))
        if (reader.number == landing.number) reader = {};
    });
    if (!bulk || !landing.is_last || landing.barrier == no_shared) return;
    phases_ended(landing.barrier);
    const int lane = std::countr_zero(landing.mask);
    phases_[landing.barrier].brought = {landing.op, thread_of(warp, landing.issuer(lane))};
  }

  /// Bytes that no phase of an mbarrier has counted when its block ends.
  void end_block(Block& block) {
    if (block.trap || !copies_bulk_) return;  // what phases_ holds then is of a launch before
    for (const auto& [at, phases] : phases_) {
      const uint64_t word = word_at(at);
      if (word == Mbarrier::none || !phases.brought.op || is_overwritten(at)) continue;
      const int32_t bytes = Mbarrier::of(word).bytes;
      if (bytes >= 0 || !log_.opens(bytes_uncounted, phases.brought.op)) continue;
      log_.tell(place(phases.brought, "brought"), {}, memory_text(block, ptx::Space::shared, at),
                fmt::arg("bytes", -bytes));
    }
  }

  void released(Block&) {
    ++epoch_;
    ++time_;
  }

 private:
#define IN_FLIGHT(did, work, does, missing) \
  "{element}: " did " at {at} by {thread} while the " work " that " does " it is in flight: no " missing
  static constexpr CheckSentence copy_race{
      CheckKind::async_copy_race,
      IN_FLIGHT("{did}", "cp.async at {other} by {other_thread}", "fills", "cp.async.wait_group covers it")},
      bulk_race{CheckKind::bulk_copy_race, IN_FLIGHT("{did}", "bulk copy at {other} by {other_thread}",
                                                     "fills", "wait for it has passed")},
      bulk_overwritten{CheckKind::bulk_copy_race,
                       IN_FLIGHT("written", "bulk copy at {other} by {other_thread}", "reads",
                                 "cp.async.bulk.wait_group covers it")},
      wgmma_overwritten{CheckKind::wgmma_race,
                        IN_FLIGHT("written", "wgmma.mma_async at {other} by {other_thread}", "reads",
                                  "wgmma.wait_group covers it")},
      wgmma_registers{CheckKind::wgmma_race, IN_FLIGHT("{access}", "wgmma.mma_async at {other}", "{does}",
                                                       "wgmma.wait_group between them")};
#undef IN_FLIGHT
  static constexpr CheckSentence wgmma_unfenced{
      CheckKind::wgmma_race,
      "{element}: written at {other}, then used by the wgmma.mma_async "
      "at {at} by {thread}: no wgmma.fence between them"};
#define UNFENCED(read)                                     \
  "{element}: written at {other} by {other_thread}, " read \
  " at {at} by {thread}: no "                              \
  "fence.proxy.async between them"
  static constexpr CheckSentence wgmma_proxy{CheckKind::wgmma_race,
                                             UNFENCED("{access} by the wgmma.mma_async")},
      bulk_proxy{CheckKind::proxy_fence, UNFENCED("read by the bulk copy")};
#undef UNFENCED
  static constexpr CheckSentence phase_again{
      CheckKind::mbarrier_phase,
      "{element}: {thread} passes at {at} a wait for a phase that it has "
      "passed at {other}, while the next phase "
      "is under way: its parity has not changed"};

  static constexpr CheckSentence bytes_uncounted{CheckKind::mbarrier_phase,
                                                 "{element}: when its block ends, {bytes} bytes have come "
                                                 "that no expect_tx counted, by the bulk copy at "
                                                 "{at} of {thread}: a wait may have passed before them"};

  static bool has(const std::vector<Slot>& slots, Slot slot) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  }

  using Act = AsyncFacts::Act;
  /// 4 bytes of shared memory: the thread's store that their contents came of, none where a cp.async brought
  /// them.
  struct Stored {
    Actor by;
    uint32_t time = 0, epoch = 0;
  };
  /// The last that read 16 bytes of shared memory: a wgmma, by its number in the warp's queue, or a bulk copy
  /// in flight.
  struct Reader {
    Actor by;
    uint64_t number = 0;
  };
  /// Phases of an mbarrier, as far as they have been seen to end.
  struct Phases {
    bool now = false;
    uint64_t ended = 0;
    Actor brought;  ///< the bulk copy whose bytes came last
  };
  struct WarpState {
    std::vector<const Op*> written;  ///< by slot / 64: by which op since the last wgmma.fence
    std::vector<Slot> since_fence;
    uint32_t proxy_fence = 0;  ///< time
  };

  static AsyncFacts facts_of(const Op&, const Signature& signature) {
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

  /// Those of D and A: of metadata the PTX ISA asks for no fence and no wait.
  static int fragment_slots(const Op& wgmma) {
    return wgmma.slot_count - MatrixForm::of(wgmma.immediate).sparse;
  }

  void note_written(WarpState& warp, const Op& op, const AsyncFacts& f) {
    for (const Slot slot : f.writes) {
      if (!of_wgmma_[slot / 64]) continue;
      if (!warp.written[slot / 64]) warp.since_fence.push_back(slot);
      warp.written[slot / 64] = &op;
    }
  }

  /// Registers of instructions in flight.
  void check_registers(const Warp& warp, const Op& op, const AsyncFacts& f) {
    for (const auto& issued : warp.products.in_flight()) {
      const Op& flying = *issued.op;
      const MatrixForm& flown = signature(flying).matrix;
      for (int i = 0; i < fragment_slots(flying); ++i) {
        const Slot slot = flying.slots[i];
        const bool result = i < flown.sum_registers(), writes = has(f.writes, slot),
                   reads = has(f.reads, slot);
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
  void check_fence(const Warp& warp, const Op& op) {
    for (int i = 0; i < fragment_slots(op); ++i) {
      const Op* const writer = warps_[warp.index].written[op.slots[i] / 64];
      if (!writer) continue;
      if (log_.opens(wgmma_unfenced, &op, writer))
        log_.tell(place(warp, op, 0, "read"), place(warp, *writer, 0, "written"),
                  register_name(op, op.slots[i]));
      return;
    }
  }

  /// One lane's access to shared memory.
  void touch(const Actor& who, const MemoryAccess& access) {
    const bool copy = facts(*who.op).act == Act::copy;
    if (!copy) check_copies(who, access);
    if (!access.writes || !(multiplies_ || copies_bulk_)) return;
    check_all_readers(who, access);
    if (!copy)
      std::ranges::fill(cells_of<4>(stored_, access.address, access.bytes), Stored{who, ++time_, epoch_});
  }

  /// Against the copies in flight that fill what is touched.
  void check_copies(const Actor& who, const MemoryAccess& access) {
    if (!copies_) return;
    const auto words = cells_of<4>(copying_, access.address, access.bytes);
    const auto copy = std::ranges::find_if(words, [](const Actor& copy) { return copy.op != nullptr; });
    if (copy == words.end()) return;
    const bool bulk = facts(*copy->op).act == Act::bulk;
    if (!log_.opens(bulk ? bulk_race : copy_race, who.op, copy->op)) return;
    const std::string did = access.reads ? "read" : "written";
    log_.tell(place_by(who, did), place(*copy, bulk ? "copied by a bulk copy" : "copied by cp.async"),
              memory_text(*block_, ptx::Space::shared, 4 * static_cast<uint64_t>(&*copy - copying_.data())),
              fmt::arg("did", did));
  }

  /// What is written against the wgmma and bulk copies in flight that read there.
  void check_all_readers(const Actor& who, const MemoryAccess& access) {
    if (copies_bulk_) check_readers(who, access, bulk_);
    for (std::vector<Reader>& of_group : products_)
      if (!of_group.empty()) check_readers(who, access, of_group);
  }
  void check_readers(const Actor& who, const MemoryAccess& access, std::vector<Reader>& readers) {
    const bool bulk = &readers == &bulk_;
    const auto pieces = cells_of<16>(readers, access.address, access.bytes);
    const auto reader = std::ranges::find_if(
        pieces, [&](const Reader& r) { return r.by.op && (bulk || flies(r.by.thread / 128, r.number)); });
    if (reader != pieces.end() &&
        log_.opens(bulk ? bulk_overwritten : wgmma_overwritten, who.op, reader->by.op))
      log_.tell(place_by(who, "written"), place(reader->by, bulk ? "read by a bulk copy" : "read by wgmma"),
                memory_text(*block_, ptx::Space::shared, access.address));
  }

  /// What one warp of a warpgroup has waited for is complete for all four (completed_by_all).
  bool flies(size_t group, uint64_t number) const {
    return std::all_of(block_->warps.begin() + static_cast<std::ptrdiff_t>(4 * group),
                       block_->warps.begin() + static_cast<std::ptrdiff_t>(4 * group + 4),
                       [&](const Warp& warp) { return warp.products.flies(number); });
  }

  /// What the async proxy reads against stores that no fence.proxy.async has followed: of the writer's warp,
  /// of any warp before a barrier, or, at time `fenced`, of another that is enough.
  void check_proxy(const Actor& who, const MemoryAccess& access, const CheckSentence& sentence,
                   uint32_t fenced, const char* read) {
    const auto words = cells_of<4>(stored_, access.address, access.bytes);
    const auto stored = std::ranges::find_if(words, [&](const Stored& s) {
      return s.by.op && std::max(fenced, warps_[s.by.thread / 32].proxy_fence) <= s.time &&
             fence_epoch_ <= s.epoch;
    });
    if (stored == words.end() || !log_.opens(sentence, who.op, stored->by.op)) return;
    const uint64_t at = 4 * static_cast<uint64_t>(&*stored - stored_.data());
    log_.tell(place(who, read), place_by(stored->by, "written"),
              memory_text(*block_, ptx::Space::shared, at));
  }

  void multiply(Warp& warp, const Op& op) {
    const Actor who = actor(warp, op);
    std::vector<Reader>& readers = products_[warp.index / 4];
    if (readers.empty()) readers.resize(block_->shared.size() / 16 + 1);
    each_access(warp, op, ~0u, [&](const MemoryAccess& access) {
      check_copies(who, access);
      check_proxy(who, access, wgmma_proxy, 0, access.operand == 'A' ? "read as A" : "read as B");
      readers[access.address / 16] = {who, warp.products.issued() - 1};
    });
  }

  /// A fence of the issuer, behind whatever told it of the store, is enough.
  void issue(Warp& warp, const Op& op) {
    each_issued(warp, [&](const BulkCopy& copy) {
      const Actor who = actor(warp, op, copy.lane);
      const bool fills = copy.to_space == ptx::Space::shared;
      for (const BulkPiece& piece : copy.pieces) {
        if (copy.from_space == ptx::Space::shared && piece.what == BulkPiece::What::copy) {
          const MemoryAccess read{copy.lane, ptx::Space::shared, piece.from, piece.bytes, true, false};
          check_copies(who, read);
          check_proxy(who, read, bulk_proxy, warps_[warp.index].proxy_fence, "read by a bulk copy");
          std::ranges::fill(cells_of<16>(bulk_, piece.from, piece.bytes), Reader{who, copy.number});
        }
        if (!fills) continue;
        const MemoryAccess write{copy.lane, ptx::Space::shared, piece.to, piece.bytes, false, true};
        check_copies(who, write);
        check_all_readers(who, write);
      }
      for (const BulkPiece& piece : copy.pieces)  // which may share a word
        if (fills) std::ranges::fill(cells_of<4>(copying_, piece.to, piece.bytes), who);
    });
  }

  /// The mbarrier's memory has another use now.
  bool is_overwritten(uint64_t place) const {
    const Op* const stored = stored_[place / 4].by.op;
    return stored && is_one_of(signature(*stored).flow(), Flow::store, Flow::store_matrix, Flow::atomic);
  }

  uint64_t word_at(uint64_t place) const {
    uint64_t word;
    std::memcpy(&word, block_->shared.data() + place, sizeof word);
    return word;
  }

  /// How many phases of the mbarrier have been seen to end.
  uint64_t phases_ended(uint64_t place) {
    const uint64_t word = word_at(place);
    Phases& phases = phases_[place];
    if (word == Mbarrier::none) return phases.ended;
    const bool now = Mbarrier::of(word).phase;
    phases.ended += now != phases.now;
    phases.now = now;
    return phases.ended;
  }

  void pass(Warp& warp, const Op& op, uint32_t mask) {
    if (warp.space != ptx::Space::shared) return;
    each_lane(mask & warp.mask(op.d), [&](int lane) {
      const uint64_t at = warp.address[lane], ended = phases_ended(at);
      const Mbarrier b = Mbarrier::of(word_at(at));
      Pass& last = passed_[uint64_t{thread_of(warp, lane)} << 32 | at];
      const bool under_way = b.pending != b.expected || b.bytes != 0;
      if (last.op && last.ended == ended && under_way && log_.opens(phase_again, &op, last.op))
        log_.tell(place(warp, op, lane, "passed by " + opcode_of(*code_, op)),
                  place(warp, *last.op, lane, "passed before"), memory_text(*block_, ptx::Space::shared, at));
      last = {&op, ended};
    });
  }

  std::string register_name(const Op& op, Slot slot) const {
    // An op's registers stand in its instruction in the order of its slots.
    const ptx::Operand& fragment = instruction_of(*code_, op)->operands[0];
    for (uint16_t i = 0; i < op.slot_count && i < fragment.elements.size(); ++i)
      if (op.slots[i] == slot && fragment.elements[i].reg >= 0)
        return function_of(*code_, op)->registers[static_cast<size_t>(fragment.elements[i].reg)].name;
    return "a register of A";
  }

  bool copies_ = false, multiplies_ = false, copies_bulk_ = false;  ///< what the code has
  std::vector<char> of_wgmma_;                   ///< by slot / 64: a register of some wgmma
  std::vector<Actor> copying_;                   ///< by 4 bytes of shared memory: what fills them
  std::vector<Stored> stored_;                   ///< by 4 bytes
  std::vector<Reader> bulk_;                     ///< by 16 bytes
  std::vector<std::vector<Reader>> products_;    ///< by warpgroup; once it multiplies, by 16 bytes
  std::unordered_map<uint64_t, Phases> phases_;  ///< by place of the mbarrier
  /// A thread's last pass of a wait for an mbarrier: phases ended by then.
  struct Pass {
    const Op* op = nullptr;
    uint64_t ended = 0;
  };
  std::unordered_map<uint64_t, Pass> passed_;  ///< by thread and place
  std::vector<WarpState> warps_;
  uint32_t time_ = 0, epoch_ = 0, fence_epoch_ = 0;
};

}  // namespace assay::vm
