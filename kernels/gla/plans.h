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

/// A kernel of chunk_state.cuh and chunk_output.cuh: where it stands and what its inputs are called.
struct ChannelChunk {
  std::string name;    ///< "gla.chunk"
  std::string folder;  ///< of its module, and the start of its functions' names: "gla"
  std::string query, gate;
  std::string bonus;  ///< of exclusive readouts; else empty
};
KernelLimits channel_limits();
/// Its forward launches.
void add_chunk_forward(Plan&, const ChannelChunk&, const Case&, const Operator&, const TensorMap& inputs,
                       const gated::Sequences&);
GatedArithmetic chunk_arithmetic(const Case&);

/// gla.chunk's gradients.
void add_chunk_backward(Plan&, const Case&, const Operator&, const TensorMap& inputs,
                        const gated::Sequences&);
GatedAdjointArithmetic chunk_adjoint_arithmetic(const Case&);

}  // namespace assay::gla
