// Tensors that a file holds in another order than the operator's axes: heads before tokens ([B,H,T,K] for
// [B,T,H,K]), heads merged into the channels ([B,T,H*K]), states transposed ([N,H,V,K] for [N,H,K,V]).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "src/base/tensor/tensor.h"
#include "src/case/case.h"

namespace assay {

/// Brings the tensors that fit in such an order only into the operator's own, and gives the case that layout.
/// Returns a line for each order that was found, and one where T < H and both orders fit. What fits in no
/// order is left as it is. `heads`: their number where a caller knows it, else 0.
///
/// A layout of the case that names an order ("heads-first", "k=transposed", "dense") is how the file holds
/// it. Throws BadInput where the shapes leave open which order it is: T = H, or different T and H fit.
///
/// `outputs`: those that the file may hold beside the inputs. Their order is brought back too, and entries of
/// the layout that name them are taken out of the case. Where T = H, their values can tell: nothing is
/// thrown.
std::vector<std::string> take_order(Case&, const std::vector<ArgumentSpec>& inputs,
                                    const std::vector<ArgumentSpec>& outputs, TensorMap& raw, int64_t heads,
                                    const std::string& source);

/// The layout of an argument whose memory has these two axes exchanged: "heads-first" of T and H,
/// "transposed" of the last two; empty where none has.
std::string_view layout_of_exchange(const std::vector<Axis>&, size_t a, size_t b);

}  // namespace assay
