// Hooks into the engine. The engine is a template over a Trace; PlainTrace compiles to nothing.
//
// A recording machine writes its own class with the members of PlainTrace, `enabled = true`, and runs the
// same engine:
//
//   template <class Trace> std::optional<Trap> run_block(const LaunchContext&, Worker&, const BlockIndex&,
//   Trace&);   (engine.h)
//
// What a hook may read:
//  * Op::row says what the instruction is: effect, result and source types; Op::function / Op::instruction
//  lead to the
//    PTX operands, names and source line.
//  * Registers: warp.word(slot)[lane], warp.wide(slot)[lane], warp.mask(slot). In `before`, sources hold the
//  values the
//    instruction will read; in `after`, destinations hold the results (a destination may be one of the
//    sources, so keep in `before` what `after` needs).
//  * Slots are byte offsets into the register file, below code.file_bytes: shadow state per register lane can
//  live in an
//    array indexed by slot / 4 + lane for words, slot / 4 + 2 * lane for wide cells. Immediates and special
//    registers are slots like any other and are never written.
//  * Destinations: op.d (and op.d2), or op.slots of a vector load / mov {..}; sources: op.s[0..source_count),
//  op.slots.
//      ld, atom:   slots[0..vector_length) destinations, s[0] address base, atom: s[1], s[2] operands
//      st, red:    slots[0..vector_length) sources, s[0] address base
//      mov {..}:   pack: d from slots[..]; unpack: slots[..] from s[0]; row->decode chose, op.immediate = 1
//      for unpack mma:        slots = D (4), A, B, C (4); op.immediate = k, op.type = operand format
//      ldmatrix:   slots = destinations; warp.address[lane] = address of row `lane`; op.immediate bit 0 =
//      .trans shfl:       d, s[0] value; warp.lane_source[lane] = lane read (after)
//  * Memory: after ld, st, atom, red, ldmatrix, cp.async, warp.address[lane] is the address of lane's first
//  byte in the
//    op's space, already translated: warp.space is global (constants and parameters included), shared or
//    local. cp.async: warp.address = source (global), warp.address2 = destination (shared).
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
