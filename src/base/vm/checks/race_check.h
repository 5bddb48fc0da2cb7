// Data races: two threads reach one byte, at least one of them writing, at least one not atomically, and no
// barrier orders them.
//
// Order comes from vector clocks. Every warp has a time that advances where it synchronises; a byte remembers
// the time of its last writer and readers; an earlier access is ordered before a later one if the later
// thread's warp has heard, through barriers, of that time.
//
// - bar.sync and bar.red order all threads that take part, bar.arrive those that arrive before those that
//   wait.
// - Inside a warp, instructions that name their members (bar.warp.sync, shfl.sync, vote.sync, match.sync,
//   redux.sync, elect.sync) order them. Lanes are not taken to run in step: since sm_70 a lane may run ahead
//   of its warp, so that a value passed between lanes through memory without one of these is a `warp-race`,
//   as are different values stored to one address by lanes of one instruction, but for those that differ by
//   how products were fused (split_products.h).
// - Blocks of one launch are not ordered, except through an atomic after a fence (membar, fence, or .release
//   on the atomic): who reads it later has seen what was written before. That order is taken at the level of
//   blocks: fences of any thread of the block count.
// - Atomics, and ld and st that are .volatile, .relaxed, .acquire or .release, do not race with each other;
//   nor does a load from the address of a compare-and-swap, which finds out whether the value still stands.
//   But .volatile keeps no lanes in step: a .volatile load of shared memory and a .volatile store of another
//   lane there are a `warp-race`, unless the load waits for a value (polls.h).
// - A cp.async writes its destination between its issue and its wait: it is checked at both and remembered
//   at the wait. So does a bulk copy of a bulk group, with its source. One that completes at an mbarrier has
//   done what it does when it was issued, for whoever has waited there; what touches its bytes in flight is
//   AsyncCheck's.
// - The product of a warpgroup is one: who has waited for it knows that all four warps have read what it
//   takes.
// - An mbarrier hands on what those who arrived knew to those whose wait has passed.
// - The shared memory of a block is there until its last thread exits: what another block of the cluster does
//   there must be known to a thread of that block when it exits (`ended-block`).
//
// A race of a load of global memory whose value reaches nothing is none (stray_reads.h).
//
// Memory is bounded: 12 bytes per warp and 16 bytes more for each granule of shared memory, and 32 bytes per
// granule of written global memory, a granule being the smallest access of the kernel; of the readers of
// global memory that nothing orders two are remembered. Input tensors are followed only in a run that is told
// that they are written.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/vm/cell_memory.h"
#include "src/base/vm/checks/check.h"
#include "src/base/vm/checks/stray_reads.h"

namespace assay::vm {

/// What an op does to memory and to the order of accesses.
struct RaceFacts {
  enum class Act : uint8_t { none, access, members, fence, bulk, product_wait } act = Act::none;
  bool strong = false;     ///< atomic, volatile, relaxed, acquire or release
  bool confirmed = false;  ///< SwapLoops
  bool releases = false;   ///< .release or .acq_rel
  /// A .volatile access of shared memory; a load that does not wait for the value.
  enum class Volatile : uint8_t { no, load, store } is_volatile = Volatile::no;
  Slot members = no_slot;
};

class RaceCheck : public Check<RaceFacts> {
 public:
  static constexpr unsigned hooks =
      hook::begin_block | hook::before | hook::after | hook::landed | hook::released | hook::end_block;
  explicit RaceCheck(const CheckSetup& setup) : Check(setup), unfollowed_(setup.unfollowed) {}

  void enter(const LaunchContext&);
  void begin_block(Block&);
  void before(Warp&, const Op&, uint32_t mask);  ///< barriers: a warp that waits has no `after`
  void after(Warp&, const Op&, uint32_t mask);
  void landed(Warp&, const Landing&);
  void released(Block&);
  void end_block(Block&);

  /// Buffers that were not followed and were written: the launch must run again with them.
  const std::set<std::string>& written_unfollowed() const { return written_unfollowed_; }
  /// By launch: where global memory was read in a race.
  const std::vector<RacingReads>& racing_reads() const { return racing_reads_; }
  /// Whether all reads that raced were of global memory.
  bool only_global_reads_race() const { return !other_reads_race_; }

 private:
  using Act = RaceFacts::Act;
  using Times = std::array<uint32_t, 32>;  ///< by lane of a warp
  /// An access: time of its warp and who it was (packed); time 0: none.
  struct Stamp {
    uint32_t time = 0, who = 0;
  };
  struct Writers {
    Stamp last, plain;  ///< plain: the last that was no atomic, which later atomics race with
  };
  struct Reader {
    uint32_t time = 0, lanes = 0, who = 0;
  };
  struct Granule {
    Writers writers;
    Stamp first_reader, last_reader;
  };
  struct Follow {
    bool followed = false;
  };
  /// What lanes of a warp know of each other: all accesses up to `all`, or, after partial synchronisation,
  /// seen[i][j]: lane i knows lane j's accesses up to that time.
  struct LaneOrder {
    uint32_t all = 0;
    std::unique_ptr<std::array<Times, 32>> seen;
    uint32_t known(int lane, int other) const {
      return seen ? (*seen)[static_cast<size_t>(lane)][static_cast<size_t>(other)] : all;
    }
    /// What a lane knows of the others, where lanes differ from now on.
    Times& of(int lane);
    /// The same, and its own at `time`.
    Times with(int lane, uint32_t time) {
      Times told = of(lane);
      told[static_cast<size_t>(lane)] = time;
      return told;
    }
    void meet(uint32_t time) { all = time, seen.reset(); }
  };
  struct WarpOrder {
    uint32_t time = 0;
    bool touched = false;         ///< memory since `time` began
    std::vector<uint32_t> known;  ///< by warp of the block
    uint32_t product = 0;         ///< time of its last wgmma
    LaneOrder lanes;
    int32_t waiting = -1;  ///< barrier; cluster_barrier: the cluster's
  };
  static constexpr int32_t cluster_barrier = 1 << 20;
  /// What a location of atomics hands on.
  struct Location {
    uint64_t block = 0;
    std::vector<uint32_t> known;                    ///< inside `block`
    std::unordered_map<uint32_t, Times> lanes;      ///< inside `block`, by warp: LaneOrder's rows
    std::unordered_map<uint64_t, uint32_t> blocks;  ///< block -> time of its last release
  };
  struct Touch {
    Warp* warp;
    const Op* op;
    int lane;
    bool writes, strong;
    ptx::Space space;
    uint64_t address;
    uint32_t bytes;
    bool pending = false;  ///< memory has not changed yet
  };
  /// What a warp has done last in shared memory of another block of its cluster.
  struct RemoteAccess {
    Stamp stamp;
    uint64_t address = 0;
    bool writes = false;
  };
  /// What the issuer of a bulk copy knew, itself included; the copy's writes are of that time.
  struct Issued {
    uint32_t time = 0;
    std::vector<uint32_t> known;
    Times told{};
  };

  static RaceFacts facts_of(const Op&, const Signature&);
  void advance(WarpOrder&);
  Stamp stamp(const Warp&, const Op&, int lane, bool strong) const;
  Stamp stamp(const Touch& t) const { return stamp(*t.warp, *t.op, t.lane, t.strong); }
  /// Of an earlier launch, or none.
  bool is_past(uint32_t time) const { return time <= launch_start_; }
  uint64_t block_at(uint32_t time) const { return block_of_time_[time - launch_start_ - 1]; }
  bool ordered(const Stamp&, const Touch&) const;
  bool passes_in_step(uint32_t before, const Touch&) const;
  /// Both atomic or alike, so that they need no order.
  bool both_strong(uint32_t before, const Touch& now) const {
    return is_strong(before) && now.strong && !passes_in_step(before, now);
  }
  bool ordered_in_block(uint32_t warp, int lane, uint32_t time, const Touch&) const;

  void access(Warp&, const Op&, uint32_t mask, const RaceFacts&);
  uint32_t without_repeats(Warp&, const Op&, uint32_t mask);
  /// Judged and remembered, or one of both.
  enum class Remember : uint8_t { judged, nothing, unjudged };
  void touch(const Touch&, Remember = Remember::judged);
  void issue(Warp&, const Op&);
  void wait_for_products(const Warp&);
  void release_at_barrier(Warp&, const Op&, uint32_t mask);
  bool repeats_contents(size_t granule);
  void touch_shared(const Touch&, Remember);
  void note_remote(const Touch&);
  void touch_global(const Touch&, Remember);
  void judge_writers(const Touch& now, const Writers&);
  void judge_reader(const Touch& now, uint32_t warp, const Reader&);
  void report(const Touch& now, const Stamp& before, bool before_wrote);
  void order_members(Warp&, uint32_t members);
  void meet(Warp&, uint32_t members);  ///< the same in the warp's present time, which goes on
  void arrive(Warp&, const Op&, uint32_t mask);
  void arrive_at_cluster(Warp&, const Op&);
  void exit(const Warp&);
  /// An op, a lane of 5 bits, a warp, and whether the access was atomic or alike.
  uint32_t packed(size_t op, int lane, uint32_t warp, bool strong) const {
    return static_cast<uint32_t>(op) << (6 + warp_bits_) | static_cast<uint32_t>(lane) << (1 + warp_bits_) |
           warp << 1 | (strong ? 1u : 0u);
  }
  size_t op_of(uint32_t who) const { return who >> (6 + warp_bits_); }
  int lane_of(uint32_t who) const { return static_cast<int>(who >> (1 + warp_bits_) & 31); }
  uint32_t warp_of(uint32_t who) const { return who >> 1 & ((1u << warp_bits_) - 1); }
  static bool is_strong(uint32_t who) { return who & 1; }
  Actor actor_of(uint32_t who) const {
    return {&code_->ops[op_of(who)], warp_of(who) * 32 + static_cast<uint32_t>(lane_of(who))};
  }
  void through_location(Warp&, const Op&, uint32_t mask);
  void acquire(WarpOrder&, uint32_t warp, int lane, const Location&);
  void hand_on(Location&, uint32_t warp, const std::vector<uint32_t>& known, const Times& told);
  void release(WarpOrder&, uint32_t warp, int lane, Location&);

  std::set<std::string> unfollowed_, written_unfollowed_;
  std::vector<RacingReads> racing_reads_;
  bool other_reads_race_ = false;
  uint32_t shared_granule_ = 1, global_granule_ = 1;
  uint32_t clock_ = 0, launch_start_ = 0;
  std::vector<uint64_t> block_of_time_;  ///< by time since the launch began
  std::vector<WarpOrder> warps_;
  std::vector<std::array<std::vector<uint32_t>, 16>> barriers_;  ///< known, joined, of those who arrived
  std::vector<uint32_t> arriving_,
      met_;  ///< the same of the cluster's barrier: of its phase, of the last one
  std::vector<std::vector<uint32_t>> ended_;  ///< by block of a cluster: known, joined, of those who exited
  std::vector<RemoteAccess> remote_;          ///< [block][warp]
  std::unordered_map<uint64_t, Issued> issued_;  ///< bulk copies that complete at an mbarrier, by number
  uint32_t warp_bits_ = 5;                       ///< of Stamp::who
  std::vector<Writers> shared_writers_;
  std::vector<Reader> shared_readers_;                            ///< [granule][warp]
  std::vector<std::byte> shared_contents_;                        ///< as the last write left them
  std::optional<GlobalCells<CellArray<Granule>, Follow>> areas_;  ///< of the launch that runs
  size_t last_area_ = 0;
  bool fenced_ = false;  ///< the block has executed a fence
  std::unordered_map<uint64_t, Location> locations_;
  std::unordered_map<uint64_t, uint32_t> known_blocks_;
};

}  // namespace assay::vm
