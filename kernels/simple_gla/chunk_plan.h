// What simple_gla.chunk and simple_gla.fused_chunk share: the same arithmetic, bit for bit.
#pragma once
#include "kernels/kernel.h"

namespace assay::gated {

inline constexpr int64_t scalar_chunk = 64;  ///< tokens per chunk

/// Bytes of a tile of 64 tokens (tile.cuh) and of a 16 x 16 operand (operand.cuh).
int64_t tile_bytes(Dtype, int64_t columns);
int64_t operand_bytes(Dtype);

GatedArithmetic scalar_chunk_arithmetic(const Case&);
/// One line for a kernel's row.
extern const char* const scalar_chunk_arithmetic_text;

}  // namespace assay::gated
