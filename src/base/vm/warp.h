// The state of a running block: its warps, shared memory, barriers and outstanding asynchronous copies.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/program/outcome.h"
#include "src/base/program/program.h"
#include "src/base/ptx/program.h"
#include "src/base/vm/async_queue.h"
#include "src/base/vm/bulk_copy.h"
#include "src/base/vm/code.h"
#include "src/base/vm/device_calls.h"
#include "src/base/vm/memory.h"
#include "src/base/vm/tensor_core.h"
#include "src/base/vm/warpgroup.h"

namespace assay::vm {

class CompiledCode;

/// What all blocks of a launch share.
struct LaunchContext {
  const Code* code = nullptr;
  const Memory* memory = nullptr;
  const Launch* launch = nullptr;
  std::array<uint32_t, 3> cluster{1, 1, 1};  ///< blocks that run together
  bool explicit_cluster = false;
  bool together = false;         ///< the cluster is the whole grid, of blocks that know of no cluster
  uint64_t grid_workspace = 0;   ///< of a cooperative launch: what grid.sync() counts in
  DeviceCalls* calls = nullptr;  ///< of the run
  int32_t launch_index = 0;      ///< into Program::launches
  const TensorCoreModel* tensor_core = nullptr;
  uint32_t architecture = 90;
  uint64_t instruction_budget = 0;               ///< warp instructions per warp
  uint64_t most_lane_instructions = UINT64_MAX;  ///< of a worker, which ends its block early beyond them
  uint8_t poison = 0xff;                         ///< Program::poison
  bool poisons_all = true;                       ///< registers; else Code::unsure, where no trace looks
  uint64_t order = 0;                            ///< MachineOptions::order
  const CompiledCode* compiled = nullptr;        ///< of `code`; null: the interpreter runs it
  const std::atomic<int>* abandoned = nullptr;   ///< abandon_flag of the thread that runs the program
  bool is_abandoned() const { return abandoned && abandoned->load(std::memory_order_relaxed) != 0; }
};

/// Lanes that follow one path; the stack of them makes divergence. A split that reaches `reconverge` is done.
struct Split {
  int32_t pc = 0;
  uint32_t mask = 0;
  int32_t reconverge = -1;
};

/// One cp.async of a warp: captured at issue, written at the wait that covers it.
struct AsyncCopy {
  uint32_t bytes = 0;
  uint64_t shared[32];
  uint32_t copied[32];
  uint64_t global[32];
  alignas(16) std::byte data[32 * 16];
};

enum class WarpState : uint8_t { running, waiting, done };

struct Block;

struct Warp {
  std::byte* file = nullptr;  ///< register cells by Slot
  Block* block = nullptr;
  uint32_t index = 0;   ///< in Block::warps
  uint32_t rank = 0;    ///< of its block in the cluster
  uint32_t number = 0;  ///< in its block
  uint32_t live = 0;    ///< lanes that have not exited
  WarpState state = WarpState::running;
  Split current;
  std::vector<Split> stack;        ///< below `current`
  uint64_t executed = 0;           ///< warp instructions
  uint32_t carry = 0;              ///< condition code register, by lane
  const Op* barrier_op = nullptr;  ///< where it waits
  uint32_t barrier_mask = 0;
  bool at_cluster = false;      ///< has arrived at the cluster's barrier, which is not complete
  bool awaits_cluster = false;  ///< has arrived there and not waited yet
  bool yields = false;          ///< waits in a loop: its turn ends at the next branch
  bool stalls = false;  ///< the instruction could not be executed: it is executed again at the next turn
  uint32_t of_one_space = 0;  ///< lanes of the access that was not made, since others reach another space
  uint64_t idle_polls = 0;    ///< waits for an mbarrier that failed while Block::changes stood still
  uint64_t polled_at = 0;     ///< what Block::changes was then

  ptx::Space space = ptx::Space::none;  ///< of `address`: global, shared or local, after translation
  uint64_t address[32];                 ///< of the last memory instruction, active lanes only
  Places places = Places::apart;        ///< of them, in the host's memory
  uint64_t address2[32];                ///< cp.async: shared destination
  uint32_t lane_source[32];             ///< of the last shfl

  AsyncQueue<AsyncCopy> copies;
  AsyncQueue<AsyncProduct> products;
  AsyncQueue<BulkCopy> bulk;     ///< of bulk groups
  bool products_fenced = false;  ///< a wgmma.fence has been executed
  std::vector<std::byte> local;  ///< [lane][Code::local_bytes]

  const uint32_t* word(Slot s) const { return reinterpret_cast<const uint32_t*>(file + s); }
  uint32_t* word(Slot s) { return reinterpret_cast<uint32_t*>(file + s); }
  const uint64_t* wide(Slot s) const { return reinterpret_cast<const uint64_t*>(file + s); }
  uint64_t* wide(Slot s) { return reinterpret_cast<uint64_t*>(file + s); }
  uint32_t mask(Slot s) const { return *word(s); }
  uint32_t& mask(Slot s) { return *word(s); }
};

struct Barrier {
  uint32_t arrived_threads = 0, expected_threads = 0;  ///< expected 0: all warps of the block that still run
  uint32_t arrived_warps = 0;
  std::vector<uint32_t> waiting;       ///< warps
  uint32_t votes_true = 0, votes = 0;  ///< bar.red
};

/// A block, or the blocks of a cluster, which run together: the warps of one behind those of the other, their
/// shared memories side by side. Addresses of shared memory that have been translated count through all.
struct Block {
  const LaunchContext* context = nullptr;
  std::array<uint32_t, 3> index{};  ///< of the first
  uint64_t linear = 0;              ///< of the first
  uint32_t members = 1;             ///< blocks
  uint32_t threads = 0;             ///< of each
  /// Of each; in a cluster a multiple of four, so that warpgroups begin at such: the last of a block may be
  /// without threads.
  uint32_t warp_stride = 0;
  uint32_t shared_bytes = 0, shared_stride = 0;  ///< of each
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::vector<std::byte> shared;
  std::vector<std::array<Barrier, 16>> barriers;  ///< by member
  uint64_t changes = 0;                           ///< of mbarriers
  std::vector<BulkCopy> loads;                    ///< bulk copies in flight that complete at an mbarrier
  Landed landed;                                  ///< since the engine told the trace last
  uint64_t issued = 0;                            ///< bulk copies
  uint64_t first_new = 0;                         ///< the first that the last instruction issued
  std::optional<Trap> trap;
  std::vector<int32_t> hints;  ///< allocation last met, by op
};

/// Index in a grid or block of so many in each direction.
inline std::array<uint32_t, 3> unfold(uint64_t linear, const std::array<uint32_t, 3>& extent) {
  return {static_cast<uint32_t>(linear % extent[0]), static_cast<uint32_t>(linear / extent[0] % extent[1]),
          static_cast<uint32_t>(linear / extent[0] / extent[1])};
}
inline uint32_t count_of(const std::array<uint32_t, 3>& extent) {
  return extent[0] * extent[1] * extent[2];
}
/// Block::warp_stride.
inline uint32_t warps_of(const Launch& launch, const std::array<uint32_t, 3>& cluster) {
  const uint32_t warps = (count_of(launch.block) + 31) / 32;
  return count_of(cluster) > 1 ? (warps + 3) / 4 * 4 : warps;
}
/// A thread of a launch.
struct ThreadPlace {
  std::array<uint32_t, 3> block{}, thread{};
};
/// `thread`: 32 Warp::index + lane of the Block whose first is block `first` of the grid.
ThreadPlace place_of_thread(const Launch&, const std::array<uint32_t, 3>& cluster, uint64_t first,
                            uint64_t thread);
ThreadPlace place_of(const Warp&, int lane);
/// The number in the grid of the warp's block.
uint64_t linear_of_block(const Warp&);
/// Of block `rank` of the cluster that begins at block `first`.
std::array<uint32_t, 3> member_index(const Launch&, const std::array<uint32_t, 3>& cluster, uint64_t first,
                                     uint32_t rank);

/// Shared addresses of a program name a block of the cluster in the bits from here on: rank + 1, 0 the own
/// one. (Hardware puts the rank itself there, into the own block's addresses too.)
inline constexpr uint32_t shared_rank_bit = 24;
inline constexpr uint64_t no_shared = ~uint64_t{0};
/// Where such an address lies in Block::shared; no_shared where `bytes` there are not all a block's, or,
/// where it may not be another's, not the own block's.
uint64_t shared_place(const Warp&, uint64_t address, uint64_t bytes, bool in_cluster);

/// "ptx line, source line" of an op, for traps and ranges.
SourceLocation where(const Code&, const Op&);
/// Records a trap of `lane`; returns false so that a warp function can return it.
bool raise(Warp&, const Op&, int lane, TrapKind kind, std::string message);
/// "lanes 0-3, 7".
std::string lanes_text(uint32_t mask);
/// Where those of `expected` are that do not run with `mask`: "lanes 4-7 elsewhere, lane 31 exited".
std::string absent_text(const Warp&, uint32_t mask, uint32_t expected);
/// base + offset of every lane.
void lane_addresses(const Warp&, Slot base, bool wide, int64_t offset, uint64_t* address);
/// Host pointers for `bytes` (a power of two) at the address of each lane in `mask`; fills Warp::space and
/// Warp::address, generic addresses translated. False: trapped (out of bounds or misaligned), or the lanes of
/// an access of its own for each lane reach several spaces (Warp::of_one_space, to be called with first).
bool translate(Warp&, const Op&, uint32_t mask, uint32_t bytes, std::byte** host);
/// The same for the addresses that stand in Warp::address already.
bool translate_at(Warp&, const Op&, uint32_t mask, uint32_t bytes, ptx::Space space, std::byte** host);
/// The trap of one lane's access outside memory, or not aligned.
bool bad_access(Warp&, const Op&, int lane, uint64_t address, uint32_t bytes, ptx::Space, bool misaligned);
/// One lane of global memory that reads `bytes` and must be aligned to `alignment`.
bool translate_part(Warp&, const Op&, int lane, uint32_t bytes, uint32_t alignment, std::byte** host);

}  // namespace assay::vm
