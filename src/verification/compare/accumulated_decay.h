// What errors of log decays add up to. A state is decayed by e to the sum of all log decays since its
// sequence began, so that a relative error of one rounding in each becomes an error of the state that grows
// with the number of tokens.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/result/comparison.h"

namespace assay {

/// Of an output [B,T,..]; sequences as cu_seqlens packs them, else of T tokens. None where there is no token
/// or a value is not finite.
std::optional<AccumulatedDecay> accumulated_decay(const Tensor& got, const ReferenceOutput&,
                                                  const std::vector<int64_t>& cu_seqlens);

}  // namespace assay
