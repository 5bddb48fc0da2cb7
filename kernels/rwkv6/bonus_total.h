// What the plans of rwkv6's gradients share: du from each chunk's part of it (bonus_total.cuh).
#pragma once
#include "kernels/kernel.h"

namespace assay::rwkv6 {

/// Adds the launch that sums the workspace "bonus_sums" [chunks, H, K] into du; `module` holds
/// rwkv6_bonus_total.
void add_bonus_total(Program&, const std::string& module, const ResolvedCase&, int64_t chunks);

/// `arithmetic`, whose `total` ends with the chunk, with the sum over the case's chunks.
AdjointArithmetic with_bonus_total(AdjointArithmetic arithmetic, const ResolvedCase&, int64_t chunk_tokens);

}  // namespace assay::rwkv6
