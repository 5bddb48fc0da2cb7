// What errors of log decays add up to. A state is decayed by e to the sum of all log decays since its
// sequence began, so that a relative error of one rounding in each becomes an error of the state that grows
// with the number of tokens.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/operator.h"
#include "src/base/tensor/tensor.h"

namespace assay {

/// Where the errors of a tensor of log decays, summed from the start of a sequence, are largest.
struct AccumulatedDecay {
  std::string element;  ///< the last one summed: "w[b=0,t=4095,h=0,k=3]"
  int64_t steps = 0;    ///< tokens summed
  double decay = 0;     ///< the exact log decays' sum, in nats
  double error = 0;  ///< sum of kernel - exact, in nats: a state decayed by it is off by the factor e^error
  double bound = 0;  ///< sum of the elements' bounds, in nats
};

/// Of an output [B,T,..]; sequences as cu_seqlens packs them, else of T tokens. None where there is no token
/// or a value is not finite.
std::optional<AccumulatedDecay> accumulated_decay(const Tensor& got, const ReferenceOutput&,
                                                  const std::vector<int64_t>& cu_seqlens);

}  // namespace assay
