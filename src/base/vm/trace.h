// Hooks into the engine. The engine is a template over a trace (IsTrace): it calls the hooks that the trace
// says it has, and a trace without any compiles to nothing.
//
// A recording machine derives its class from PlainTrace, writes the hooks it wants, names them in `hooks`,
// and runs Engine<ItsTrace> (engine.h) over the blocks of a launch, as run_traced (traced_launch.h) does. A
// hook that is named and not there, there and not named, or misspelt, does not compile.
//
// What a hook may read:
//
// Code::signature(op) says what the instruction reads, writes and reaches, and how values pass through it
// (signature.h). Op::function and Op::instruction lead to the PTX operands, their names and the source line.
//
// Registers: warp.word(slot)[lane], warp.wide(slot)[lane], warp.mask(slot). In `before`, sources hold the
// values that the instruction will read; in `after`, destinations hold the results. A destination may be one
// of the sources, so keep in `before` what `after` needs.
//
// Slots are byte offsets into the register file, below Code::file_bytes: state beside registers is indexed by
// them (cell_memory.h). Immediates and special registers are slots like any other and are never written.
//
// Memory: in `after`, warp.address[lane] is the address of the lane's first byte, translated (of ldmatrix and
// stmatrix that of row `lane`), in warp.space: global (constants and parameters included), shared or local.
// For cp.async it is the source, and warp.address2 the shared destination. After shfl, warp.lane_source[lane]
// is the lane that was read. transfer.h turns these into the bytes that were reached and those that moved.
#pragma once
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "src/base/ptx/type.h"

namespace assay::vm {

struct Warp;
struct Block;
struct Op;

/// Data of an asynchronous copy arriving: of a cp.async at the wait that covers it, a piece for each lane; of
/// a bulk copy (bulk_copy.h) up to 32 pieces that one thread asked for.
struct Landing {
  const Op* op;            ///< the copy
  uint32_t mask;           ///< pieces that land now
  const uint64_t* to;      ///< [piece] address; of shared memory the offset in Block::shared
  const uint64_t* from;    ///< [piece]
  const uint32_t* copied;  ///< [piece] bytes taken from the source; the rest of `bytes` comes from nowhere
  uint32_t bytes;
  ptx::Space to_space, from_space;
  int lane = -1;                         ///< who asked for them; -1: each lane for its own
  bool combines = false;                 ///< with what is there already
  uint64_t number = 0;                   ///< BulkCopy::number; 0: a cp.async
  uint64_t barrier = ~uint64_t{0};       ///< place of its mbarrier in Block::shared; none: of a bulk group
  bool is_first = true, is_last = true;  ///< of the bulk copy's pieces are among these
  int issuer(int piece) const { return lane < 0 ? piece : lane; }
};

/// What a trace wants to see.
namespace hook {
inline constexpr unsigned begin_block = 1, guarded = 2, before = 4, after = 8, landed = 16, released = 32,
                          end_block = 64;
}

/// What entering a launch takes beside its instructions, in nanoseconds.
inline constexpr double kOfLaunch = 20'000;

struct PlainTrace {
  static constexpr unsigned hooks = 0;
  static constexpr bool stops = false;       ///< a trap that `before` raises ends the warp
  static constexpr double nanoseconds = 25;  ///< about what a warp's instruction takes (counted_work.h)
  void begin_block(Block&) {}
  /// The guard of every guarded instruction, those that no lane executes included.
  void guarded(Warp&, const Op&, uint32_t /*active*/) {}
  void before(Warp&, const Op&, uint32_t /*mask*/) {}
  void after(Warp&, const Op&, uint32_t /*mask*/) {}
  void landed(Warp&, const Landing&) {}
  void released(Block&) {}  ///< what could pass its barrier has
  void end_block(Block&) {}
};

/// The hooks that a trace has of its own.
template <class T>
consteval unsigned own_hooks() {
  const auto own = [](auto mine, auto plain) { return !std::is_same_v<decltype(mine), decltype(plain)>; };
  return (own(&T::begin_block, &PlainTrace::begin_block) ? hook::begin_block : 0) |
         (own(&T::guarded, &PlainTrace::guarded) ? hook::guarded : 0) |
         (own(&T::before, &PlainTrace::before) ? hook::before : 0) |
         (own(&T::after, &PlainTrace::after) ? hook::after : 0) |
         (own(&T::landed, &PlainTrace::landed) ? hook::landed : 0) |
         (own(&T::released, &PlainTrace::released) ? hook::released : 0) |
         (own(&T::end_block, &PlainTrace::end_block) ? hook::end_block : 0);
}

template <class T>
concept IsTrace = std::derived_from<T, PlainTrace> && own_hooks<T>()
== T::hooks;

}  // namespace assay::vm
