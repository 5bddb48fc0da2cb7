// What the plans of recurrent.cuh's kernels share: one launch, and fp32 arithmetic.
#pragma once
#include <string>

#include "kernels/kernel.h"

namespace assay::gated {

/// One recurrent kernel: where it stands and what stands for its gates.
struct RecurrentKernel {
  std::string name;  ///< "gla.fused_recurrent"
  Module module;
  std::string function;  ///< up to its number of key channels: "gla_fused_recurrent_"
  std::string query = "q";
  PointerArgument gates;
  std::string bonus;  ///< of exclusive readouts; else empty
};

/// Adds its module and launch: q, k, v, gates, (bonus,) initial_state, o, final_state, sequences, scale,
/// heads, K, V.
void add_recurrent(Program&, const RecurrentKernel&, const ResolvedCase&, const TensorMap& inputs);

/// The arithmetic of recurrent.cuh. One step in fp32, everything rounded to nearest.
Arithmetic recurrent_arithmetic(const ResolvedCase&);

}  // namespace assay::gated
