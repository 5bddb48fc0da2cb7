// The state of a running block: its warps, shared memory, barriers and outstanding asynchronous copies.
#pragma once
#include <array>
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
#include "src/base/vm/code.h"
#include "src/base/vm/memory.h"
#include "src/base/vm/tensor_core.h"
#include "src/base/vm/warpgroup.h"

namespace assay::vm {

/// What all blocks of a launch share.
struct LaunchContext {
  const Code* code = nullptr;
  const Memory* memory = nullptr;
  const Launch* launch = nullptr;
  int32_t launch_index = 0;  ///< into Program::launches
  const TensorCoreModel* tensor_core = nullptr;
  uint32_t architecture = 90;
  uint64_t instruction_budget = 0;  ///< warp instructions per warp
  uint8_t poison = 0xff;            ///< Program::poison
  uint64_t order = 0;               ///< MachineOptions::order
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
  uint32_t shared[32];
  uint32_t copied[32];
  uint64_t global[32];
  alignas(16) std::byte data[32 * 16];
};

enum class WarpState : uint8_t { running, waiting, done };

struct Block;

struct Warp {
  std::byte* file = nullptr;  ///< register cells by Slot
  Block* block = nullptr;
  uint32_t index = 0;  ///< in the block
  uint32_t live = 0;   ///< lanes that have not exited
  WarpState state = WarpState::running;
  Split current;
  std::vector<Split> stack;        ///< below `current`
  uint64_t executed = 0;           ///< warp instructions
  uint32_t carry = 0;              ///< condition code register, by lane
  const Op* barrier_op = nullptr;  ///< where it waits
  uint32_t barrier_mask = 0;

  ptx::Space space = ptx::Space::none;  ///< of `address`: global, shared or local, after translation
  uint64_t address[32];                 ///< of the last memory instruction, active lanes only
  uint64_t address2[32];                ///< cp.async: shared destination
  uint32_t lane_source[32];             ///< of the last shfl

  AsyncQueue<AsyncCopy> copies;
  AsyncQueue<AsyncProduct> products;
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

struct Block {
  const LaunchContext* context = nullptr;
  std::array<uint32_t, 3> index{};
  uint64_t linear = 0;
  uint32_t threads = 0;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::vector<std::byte> shared;
  std::array<Barrier, 16> barriers;
  std::optional<Trap> trap;
  std::vector<int32_t> hints;  ///< allocation last met, by op
};

/// Index in a grid or block of so many in each direction.
inline std::array<uint32_t, 3> unfold(uint64_t linear, const std::array<uint32_t, 3>& extent) {
  return {static_cast<uint32_t>(linear % extent[0]), static_cast<uint32_t>(linear / extent[0] % extent[1]),
          static_cast<uint32_t>(linear / extent[0] / extent[1])};
}
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
/// Warp::address, generic addresses translated. False: trapped (out of bounds or misaligned).
bool translate(Warp&, const Op&, uint32_t mask, uint32_t bytes, std::byte** host);
/// The same for the addresses that stand in Warp::address already.
bool translate_at(Warp&, const Op&, uint32_t mask, uint32_t bytes, ptx::Space space, std::byte** host);
/// One lane of global memory that reads `bytes` and must be aligned to `alignment`.
bool translate_part(Warp&, const Op&, int lane, uint32_t bytes, uint32_t alignment, std::byte** host);

}  // namespace assay::vm
