// Which bits of a result depend on which bits of a source: the one rule by which recorder, checks and slices
// take values apart.
//
// Packed arithmetic keeps halves apart. What moves bits (logic, shifts, permutations, conversions between
// integers) is tried: a bit of such a result is, as the other sources stand, a bit of this one, its inverse,
// or neither; so bits of the source are inverted, and those of the result that change are the ones they
// reach. Of everything else each bit depends on all of every source.
#pragma once
#include <array>
#include <cstdint>

#include "src/base/vm/code.h"

namespace assay::vm {

struct Warp;

using LaneBits = std::array<uint64_t, 32>;

/// A register's bits by lane.
void read_lanes(const Warp&, Slot, bool wide, LaneBits&);

/// The sources of an op between registers, by lane.
struct SourceBits {
  SourceBits() = default;
  /// As the registers stand before the op runs; a mask is lane 0's.
  SourceBits(const Warp&, const Op&);

  std::array<LaneBits, 4> value{};
  std::array<LaneBits, 4> open{};  ///< bits that may be anything, whatever `value` says
};

/// What the op makes of these values, by lane: a register's bits, or one of a mask.
LaneBits result_of(const Op&, const SourceBits&);
/// By lane the bits of the result that depend on `bits` of source `i`.
LaneBits influence(const Op&, const Signature&, const SourceBits&, int i, const LaneBits& bits);
/// [source][half]: the halves of the result that may depend on it, a bit each, whatever the registers hold;
/// literals are known.
using HalfInfluence = std::array<std::array<uint8_t, 4>, 4>;
HalfInfluence half_influence(const Code&, const Op&);

}  // namespace assay::vm
