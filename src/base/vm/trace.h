// Hooks into the engine. The engine is a template over a Trace; PlainTrace compiles to nothing.
//
// A recording machine writes its own class with the members of PlainTrace, `enabled = true`, and runs
// Engine<ItsTrace> (engine.h) over the blocks of PreparedProgram's launches, as run (machine.cpp) does with
// PlainTrace.
//
// What a hook may read:
//
// Op::row says what the instruction is: effect, result and source types. Op::function and Op::instruction
// lead to the PTX operands, their names and the source line.
//
// Registers: warp.word(slot)[lane], warp.wide(slot)[lane], warp.mask(slot). In `before`, sources hold the
// values that the instruction will read; in `after`, destinations hold the results. A destination may be one
// of the sources, so keep in `before` what `after` needs.
//
// Slots are byte offsets into the register file, below Code::file_bytes: shadow state can live in an array
// indexed by slot / 4 + lane for words, slot / 4 + 2 * lane for wide cells. Immediates and special registers
// are slots like any other and are never written.
//
// Destinations are op.d and op.d2, sources op.s[0 .. source_count). Forms with vectors keep them in op.slots:
//
// - ld: slots[0 .. vector_length) destinations, s[0] address base. atom: d; s[1], s[2] operands.
//
// - st: slots[0 .. vector_length) sources, s[0] address base. red: as atom without d.
//
// - mov {..}: packing has d and slots[..] as sources; unpacking (op.immediate = 1) has s[0] and slots[..] as
// results.
//
// - mma: slots hold D (4), A, B, C (4); op.immediate = k, op.type = operand format.
//
// - ldmatrix: slots are destinations; warp.address[lane] is the address of row `lane`; op.immediate = 1 for
// .trans.
//
// - shfl: d, s[0] the value; in `after`, warp.lane_source[lane] is the lane that was read.
//
// A trace may have more members: guarded(warp, op, mask) sees the guard of every guarded instruction, those
// that no lane executes included; released(block) follows the release of barriers; with a member `stops` a
// trap that `before` raises ends the warp.
//
// Memory: after ld, st, atom, red, ldmatrix and cp.async, warp.address[lane] is the address of the lane's
// first byte, translated: warp.space is global (constants and parameters included), shared or local. For
// cp.async it is the source, and warp.address2 the shared destination.
#pragma once
#include <array>
#include <cstdint>

namespace assay::vm {

struct Warp;
struct Block;
struct Op;

/// cp.async data arriving in shared memory: at the wait that covers it.
struct Landing {
  const Op* op;            ///< the cp.async
  uint32_t mask;           ///< lanes whose data lands now
  const uint32_t* shared;  ///< [lane] destination offset
  const uint64_t* global;  ///< [lane] source address
  const uint32_t* copied;  ///< [lane] bytes taken from the source; the rest of `bytes` is zero
  uint32_t bytes;
};

struct PlainTrace {
  static constexpr bool enabled = false;
  void begin_block(Block&) {}
  void before(Warp&, const Op&, uint32_t /*mask*/) {}
  void after(Warp&, const Op&, uint32_t /*mask*/) {}
  void landed(Warp&, const Landing&) {}
  /// A call copies arguments and results between parameter variables in local memory, per active lane.
  void copied_local(Warp&, uint32_t /*mask*/, uint32_t /*from*/, uint32_t /*to*/, uint32_t /*bytes*/) {}
  void end_block(Block&) {}
};

}  // namespace assay::vm
