// The launches of the gla kernels, one direction each: added to a plan whose outputs and modules are its own.
#pragma once
#include "kernels/gated/launch_tables.h"
#include "kernels/kernel.h"

namespace assay::gla {

/// Tokens between the states that gla.fused_recurrent's gradients keep; counted from each sequence's start.
inline constexpr int64_t recurrent_chunk = 64;

/// gla.fused_recurrent's gradients.
void add_fused_recurrent_backward(Plan&, const Case&, const Operator&, const TensorMap& inputs);
GatedAdjointArithmetic fused_recurrent_adjoint_arithmetic(const Case&);

/// gla.chunk's gradients.
void add_chunk_backward(Plan&, const Case&, const Operator&, const TensorMap& inputs,
                        const gated::Sequences&);
GatedAdjointArithmetic chunk_adjoint_arithmetic(const Case&);

}  // namespace assay::gla
