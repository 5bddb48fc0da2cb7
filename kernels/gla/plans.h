// The launches of the gla kernels, one direction each: added to a plan whose outputs and modules are its own.
#pragma once
#include "kernels/device/scan_layout.h"
#include "kernels/kernel.h"
#include "kernels/launch_tables.h"

namespace assay::gla {

/// A kernel of the scans for gradients: where it stands and what its inputs are called.
struct RecurrentBackward {
  std::string name;  ///< "gla.fused_recurrent"
  Module module;
  std::string function;  ///< up to the scan: "gla_fused_recurrent_"
  std::string query, gate;
  std::string bonus;  ///< of exclusive readouts; else empty. Then each chunk's part of its gradient is left
                      ///< in the workspace "bonus_sums" [chunk, H, K] fp32
};
void add_recurrent_backward(Program&, const RecurrentBackward&, const ResolvedCase&, const TensorMap& inputs);
AdjointArithmetic recurrent_adjoint_arithmetic(const ResolvedCase&, bool exclusive);

/// A kernel of chunk_state.cuh and chunk_output.cuh: where it stands and what its inputs are called.
struct ChannelChunk {
  std::string name;    ///< "gla.chunk"
  std::string folder;  ///< of its modules, and the start of its functions' names: "gla"
  std::string query, gate;
  std::string bonus;  ///< of exclusive readouts; else empty
};
KernelLimits channel_limits();
/// Its forward launches.
void add_chunk_forward(Program&, const ChannelChunk&, const ResolvedCase&, const TensorMap& inputs,
                       const gated::Sequences&);
Arithmetic chunk_arithmetic(const ResolvedCase&);

/// Error of a token's own score sum_c q_c u_c k_c beyond what readouts have room for: a chain in fp32.
double bonus_error(const Sizes&);

/// Its launches for gradients. With a bonus each chunk's part of its gradient is left in the workspace
/// "bonus_sums" [chunk, H, K] fp32.
void add_chunk_backward(Program&, const ChannelChunk&, const ResolvedCase&, const TensorMap& inputs,
                        const gated::Sequences&);
AdjointArithmetic chunk_adjoint_arithmetic(const ResolvedCase&);

}  // namespace assay::gla
