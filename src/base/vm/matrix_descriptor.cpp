#include "src/base/vm/matrix_descriptor.h"

namespace assay::vm {

MatrixDescriptor decode_descriptor(uint64_t bits) {
  static constexpr uint32_t swizzles[] = {16, 128, 64, 32};
  const auto field = [bits](int at) { return static_cast<uint32_t>(bits >> at & 0x3fff) << 4; };
  return {field(0), field(16), field(32), static_cast<uint32_t>(bits >> 49 & 7), swizzles[bits >> 62]};
}

// The canonical layouts, in bytes. K-major: ((8,m),(T,2k)):((line,stride),(1,16 or leading)); MN-major:
// ((T,pieces,m),(8,k)):((1,16,leading),(line,stride)), unswizzled
// ((T,1,m),(8,k)):((1,T,stride),(16,leading)).
uint32_t piece_address(const MatrixDescriptor& d, bool mn_major, uint32_t line, uint32_t piece) {
  const uint32_t in_atom = line % 8 * d.swizzle, atom = line / 8;
  if (d.swizzle == 16)
    return d.start + in_atom +
           (mn_major ? atom * d.leading + piece * d.stride : atom * d.stride + piece * d.leading);
  const uint32_t per_line = d.swizzle / 16;
  const uint32_t along = mn_major ? piece % per_line * 16 + piece / per_line * d.leading : piece * 16;
  const uint32_t address = d.start + in_atom + atom * d.stride + along;
  // Swizzle<B,4,3>: the 128-byte line, counted from the start of the pattern, is added to the 16-byte piece
  // without carry.
  return address ^ ((((address >> 7) - d.base_offset) & (per_line - 1)) << 4);
}

}  // namespace assay::vm
