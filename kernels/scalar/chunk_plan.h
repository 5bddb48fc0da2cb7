// What the chunked plans share: the same arithmetic, and for gradients the same launches.
#pragma once
#include "kernels/scalar/scalar_plan.h"

namespace assay::scalar {

inline constexpr int64_t scalar_chunk = 64;  ///< tokens per chunk

/// Bytes of a tile of 64 tokens (tile.cuh) and of a 16 x 16 operand (operand.cuh).
int64_t tile_bytes(Dtype, int64_t columns);
int64_t operand_bytes(Dtype);
/// Dynamic shared memory of the state scan (state_scan.cuh) and its value channels per block.
int64_t scan_shared_bytes(Dtype);
inline constexpr int64_t scan_columns = 32;
/// Its blocks.
int64_t scan_blocks(const Sizes&);

Arithmetic scalar_chunk_arithmetic(const Case&);
/// One line for a kernel's row.
extern const char* const scalar_chunk_arithmetic_text;

/// The gradients in chunks.
void add_chunk_gradients(ScalarPlan&);
AdjointArithmetic scalar_chunk_adjoint_arithmetic(const Case&);

}  // namespace assay::scalar
