// The mbarrier object (PTX ISA 9.7.13.15): a barrier in shared memory that counts arrivals and bytes. It is
// opaque to programs; here bits 0-19 are the arrivals that a phase expects, 20-39 those pending, 40-60 the
// bytes pending, 63 the phase.
#pragma once
#include <cstdint>
#include <string>

#include "src/base/ptx/program.h"

namespace assay::vm {

struct Warp;
struct Op;
class Decoder;

struct Mbarrier {
  static constexpr uint64_t none = ~uint64_t{0};  ///< as shared memory starts, and what inval leaves
  static constexpr uint32_t most_arrivals = (1u << 20) - 1;
  static constexpr int32_t most_bytes = (1 << 20) - 1;  ///< pending, either sign

  uint32_t expected = 0, pending = 0;
  int32_t bytes = 0;
  bool phase = false;

  static Mbarrier of(uint64_t word) {
    return {static_cast<uint32_t>(word & 0xfffff), static_cast<uint32_t>(word >> 20 & 0xfffff),
            static_cast<int32_t>(static_cast<int64_t>(word << 3) >> 43), (word >> 63) != 0};
  }
  uint64_t word() const {
    return uint64_t{expected} | uint64_t{pending} << 20 |
           (static_cast<uint64_t>(static_cast<uint32_t>(bytes)) & 0x1fffff) << 40 | uint64_t{phase} << 63;
  }
  /// A phase ends when all have arrived and all bytes have come.
  void complete() {
    if (pending != 0 || bytes != 0) return;
    phase = !phase;
    pending = expected;
  }
  /// More bytes, or fewer, are pending. False: more than an mbarrier counts.
  bool add_bytes(int64_t more) {
    const int64_t sum = bytes + more;
    bytes = static_cast<int32_t>(sum);
    return sum <= most_bytes && sum >= -most_bytes;
  }
};

/// complete_tx of `bytes` at the mbarrier at `place` of Block::shared, for an instruction of this warp's
/// lane. False: trapped.
bool complete_bytes(Warp&, const Op&, int lane, uint64_t place, uint32_t bytes);
/// The bytes of st.async and red.async complete at an mbarrier, at s[2] + offset2, as they are stored, which
/// is one of the times that hardware may choose. False: trapped.
bool complete_stored(Warp&, const Op&, uint32_t mask);
/// Operand 2 of such an instruction.
void decode_stored_barrier(Decoder&, const ptx::Instruction&, Op&);
/// A wait for the phase after `phase` of the mbarrier at `place`: whether it is over. What is on its way to
/// the mbarrier lands if that may end the phase. Not over: the warp's turn ends soon; a trap where nothing
/// has changed for very long.
enum class Waited : uint8_t { over, pending, trapped };
Waited wait_for_phase(Warp&, const Op&, int lane, uint64_t place, bool phase);

}  // namespace assay::vm
