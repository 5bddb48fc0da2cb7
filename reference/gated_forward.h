// Forward evaluation of the gated family with enclosures and bounds, by the precision ladder.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/gated_form.h"
#include "reference/operator.h"
#include "reference/slice_problem.h"
#include "src/base/numerics/ball.h"

namespace assay {

/// q, k, g of one slice as doubles, tokens x K; g is empty where there is no gate.
struct KeyInputs {
  int64_t tokens = 0, K = 0;
  std::vector<double> q, k, g;
  double scale = 1;
  std::optional<DoubleDouble> weight = {};  ///< e^g of every token, where the decay is no input
  std::vector<double> bonus = {};           ///< u, K entries, where the readout is exclusive
  bool exclusive = false;
  SliceProblem settings = {};  ///< head and parameters; no tensors
};
/// One value column of it: v has `tokens` entries, S0 K.
struct ColumnInputs {
  std::vector<double> v, S0;
};
struct ColumnOutputs {
  std::vector<Ball<double>> o, S;  ///< tokens; K
};

/// What the evaluator takes from an operator's row: its form, and the literal transcription over intervals,
/// for the last rung. Precision `level` 0, 1, 2, ... doubles with each step; returns false where there is no
/// such level.
struct GatedRow {
  GatedForm form;
  const std::vector<ParameterSpec>* parameters;
  bool (*literal_column)(const KeyInputs&, const ColumnInputs&, int level, ColumnOutputs&);
};

/// Rung 0, plain double: |S^ - S| <= gamma_n Pm because the evaluator is itself a kernel of the model in
/// bound.h (n roundings on a path: 1 for k v, then per token 4 for e^g, 1 product, 1 sum; readout K + 3); no
/// ball per element is needed. Rung 1, the same in double-double. Rung 2: literal_column. A value column goes
/// up a rung where a radius exceeds 2^-10 of the bound; what stays wide after the last is said in
/// ReferenceOutput::undecided. Where every operation is exact (no decay, all values on one grid of at most 53
/// bits) the radius is 0.
ReferenceResult gated_forward(const Problem&, const GatedRow&);

/// Largest radius that a verdict may rest on.
inline constexpr double kEnclosureShare = 0x1p-10;

}  // namespace assay
