// How far the declared roundings of a delta rule in chunks carry: sequences in which they alone may lose the
// state.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "reference/arithmetic.h"
#include "reference/domain.h"

namespace assay {

/// Is a sequence outside the safe range: does an arithmetic within the declared one leave the state of one of
/// its value channels off by as much as that state was at any token of a chunk's length before? Shown on
/// these very inputs: each update is rounded by no more than is declared of it, always away from the exact
/// state, and all else is exact. Nothing that is proved of the declared arithmetic can then be narrower than
/// the values themselves. The first such sequence, with the tokens after which that is so; none for operators
/// and kernels that round no update. `cu_seqlens`: empty where each batch is a sequence.
std::optional<DomainFault> loses_state(const Operator&, const Arithmetic&,
                                       const std::vector<int64_t>& cu_seqlens, const TensorMap& inputs);
/// The same of dL/dS, from the last token on.
std::optional<DomainFault> loses_adjoint(const Operator&, const Arithmetic&,
                                         const std::vector<int64_t>& cu_seqlens, const TensorMap& inputs,
                                         double scale);

}  // namespace assay
