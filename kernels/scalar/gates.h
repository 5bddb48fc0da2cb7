// Which gates a case of the scalar family has, as its kernels take them: one log decay per token and head,
// one per head, or none.
#pragma once
#include <string>

#include "kernels/scalar/kernels.h"

namespace assay::scalar {

struct ScalarGates {
  std::string kind;         ///< "none", "head", "fixed", "token-fp32": what the kernel is built with
  PointerArgument pointer;  ///< [token, H] g; [H] fp32 in units of log2
  /// Where gradients go, token by token: dg, or a workspace [token, H] fp32 of what becomes dg_gamma; null:
  /// they are not wanted.
  PointerArgument gradients;
};

/// Of the inputs g, else g_gamma; else the fixed decays of the operator's heads, or none. Adds to the plan
/// what makes them: a constant, or a launch that reads g_gamma.
ScalarGates add_scalar_gates(Program&, const Member&, const ResolvedCase&, const TensorMap& inputs);

/// After the launches that write ScalarGates::gradients: dg_gamma, where the plan has such an output.
void add_head_gate_gradients(Program&, const ResolvedCase&, const ScalarGates&);
/// Relative error of that sum over all tokens.
double head_gate_total(const ResolvedCase&);

/// The module of kernels/simple_gla/<mode>.cu for the case's format and these gates.
Module scalar_module(const std::string& mode, const ResolvedCase&, const ScalarGates&);

}  // namespace assay::scalar
