// Tensors that a file holds in another order than the operator's axes: heads before tokens ([B,H,T,K] for
// [B,T,H,K]), heads merged into the channels ([B,T,H*K]), states transposed ([N,H,V,K] for [N,H,K,V]).
#pragma once
#include <string>
#include <vector>

#include "src/case/case.h"
#include "src/tensor/tensor.h"

namespace assay {

/// Brings the tensors that fit in such an order only into the operator's own, and gives the case that layout.
/// Returns a line for each order that was found, and one where T < H and both orders fit. What fits in no
/// order is left as it is. `heads`: their number where a caller knows it, else 0.
///
/// A layout of the case that names an order ("heads-first", "k=transposed", "dense") is how the file holds
/// it. Throws BadInput where the shapes leave open which order it is: T = H, or different T and H fit.
std::vector<std::string> take_order(Case&, const std::vector<ArgumentSpec>&, TensorMap& raw, int64_t heads,
                                    const std::string& source);

}  // namespace assay
