// Which gates a case of the scalar family has, as its kernels take them: one log decay per token and head,
// one per head, or none.
#pragma once
#include <optional>
#include <string>

#include "kernels/kernel.h"

namespace assay::gated {

struct ScalarGates {
  std::string kind;  ///< "none", "head", "token-fp32": what the kernel is built with
  PointerArgument pointer;
  std::optional<Tensor> constant;  ///< the tensor behind `pointer` where no input is: [H] fp32, units of log2
};

/// simple_gla: g, else g_gamma, else none. linear_attn: none. retention, lightning_attn: their heads' decays.
ScalarGates scalar_gates(const Case&, const Operator&, const TensorMap& inputs);

/// The embedded module of kernels/simple_gla/<mode>.cu for the case's format and these gates.
Module scalar_module(const std::string& mode, const Case&, const ScalarGates&);

/// What every kernel of the family accepts.
KernelLimits scalar_limits();

}  // namespace assay::gated
