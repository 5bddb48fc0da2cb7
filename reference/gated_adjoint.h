// Gradients of the gated family with enclosures.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/gated_form.h"
#include "reference/operator.h"
#include "reference/slice_problem.h"
#include "src/base/numerics/ball.h"

namespace assay {

/// One slice as doubles, rows are tokens; g is empty where there is no gate. q, k, g: tokens x K; v, d_o:
/// tokens x V; S0, dS: K x V; bonus: u, K entries, where the readout is exclusive.
struct SliceInputs {
  int64_t tokens = 0, K = 0, V = 0;
  std::vector<double> q, k, g, v, S0, d_o, dS;
  double scale = 1;
  std::vector<double> bonus = {};
  SliceProblem settings = {};  ///< head and parameters; no tensors
};
/// g: tokens x K, or tokens x 1 where all channels share the gate.
struct SliceGradients {
  std::vector<Ball<double>> q, k, g, v, S0, bonus;
};

/// The literal transcription of the operator's adjoint: level 0 with balls over double-double, then intervals
/// of growing precision; returns false where there is no such level.
struct GatedAdjointRow {
  GatedForm form;
  const std::vector<ParameterSpec>* parameters;
  bool (*literal_slice)(const SliceInputs&, int level, SliceGradients&);
};

/// Rung 0 in plain double. Every gradient is a sum of products of q, k, v, do, S_0, dS_T and weights along
/// paths; a path has at most n = 6 T + K + V + 32 roundings (4 for e^g, product and sum per token, the final
/// sums), so |error| <= gamma_n times the same sums of absolute values, its companion
/// (Gm and Pm). Bounds as in bound_adjoint.h. A slice goes up the ladder where a radius exceeds 2^-10 of the
/// bound, or kAdjointShare of the companion where no error is declared. Where every operation is exact the
/// radius is 0. Memory: about 2 sqrt(T) states per thread.
ReferenceResult gated_adjoint(const Problem&, const GatedAdjointRow&);

/// 2^-10 of one fp32 rounding of the companion: no kernel here computes gradients more precisely.
inline constexpr double kAdjointShare = 0x1p-34;

}  // namespace assay
