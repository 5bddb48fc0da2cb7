// Matrices in shared memory as wgmma reads them (PTX ISA 9.7.15.5.1.2: shared memory matrix layout).
#pragma once
#include <cstdint>

namespace assay::vm {

struct MatrixDescriptor {
  uint32_t start, leading, stride;  ///< bytes
  uint32_t base_offset;  ///< 128-byte lines from a multiple of 1024 to the start of the swizzle pattern
  uint32_t swizzle;      ///< bytes of a swizzled line: 128, 64 or 32; 16: not swizzled
};
MatrixDescriptor decode_descriptor(uint64_t);

/// Where in shared memory 16 bytes of the matrix lie. K-major: `line` is the row of A (column of B), `piece`
/// counts 16 bytes along k. MN-major (16-bit elements): `line` is k, `piece` counts eight rows (columns).
uint32_t piece_address(const MatrixDescriptor&, bool mn_major, uint32_t line, uint32_t piece);

}  // namespace assay::vm
