// How far the declared roundings of a delta rule in chunks carry: sequences in which they alone may lose the
// state.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reference/operator.h"

namespace assay {

/// One sequence of a value head outside the safe range: an arithmetic within the declared one leaves the
/// state (or dL/dS, `adjoint`) of one of its value channels off by as much as that state ever was before.
/// Shown on the inputs themselves: each update is rounded by no more than is declared of it, always away from
/// the exact state, and all else is exact. Nothing that is proved of the declared arithmetic can then be
/// narrower than the values themselves. That no such arithmetic was found does not say that there is none.
struct LostState {
  bool adjoint = false;
  int64_t sequence = 0, head = 0;
  int64_t token = 0;   ///< by whose update it is lost; counted over all batches
  int64_t tokens = 0;  ///< how many it takes: from the sequence's first one, of dL/dS from its last one
  std::string first;   ///< "k[b=0,t=0,h=0,k=0]": that one's key
};

/// None for operators and kernels that round no update. `cu_seqlens`: empty where each batch is a sequence.
std::vector<LostState> lost_states(const Operator&, const Arithmetic&, const std::vector<int64_t>& cu_seqlens,
                                   const TensorMap& inputs);
std::vector<LostState> lost_adjoints(const Operator&, const Arithmetic&,
                                     const std::vector<int64_t>& cu_seqlens, const TensorMap& inputs,
                                     double scale);
/// One line, which ends with where the safe range ends.
std::string describe(const LostState&);

}  // namespace assay
