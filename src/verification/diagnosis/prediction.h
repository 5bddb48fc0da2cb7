// What a kernel would give if it computed something else: the outputs of an operator under a mutated meaning,
// with the bounds of the kernel's own arithmetic.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/verification/diagnosis/failing_run.h"

namespace assay {

/// Elements in the order of the output's tensor; NaN where nothing is predicted: everywhere of an output that
/// the meaning leaves open, while one that is missing is said to be right. `bound`: radius included; of an
/// output on real numbers (FailingRun::on_reals) the radius alone.
struct PredictedOutput {
  std::vector<double> mid, bound;
};
using Prediction = std::map<std::string, PredictedOutput>;

/// The run's reference itself.
Prediction reference_prediction(const FailingRun&);
/// The operator evaluated on other inputs, after `change` to the problem. None where the problem has no
/// answer.
std::optional<Prediction> evaluate_with(const FailingRun&, const TensorMap& inputs,
                                        const std::function<void(Problem&)>& change = {});
std::optional<Prediction> evaluate_with(const FailingRun&, const std::string& input, Tensor,
                                        const std::function<void(Problem&)>& change = {});
/// a x + b y, bounds added; outputs of both.
Prediction combine(double a, const Prediction& x, double b, const Prediction& y);
std::optional<Prediction> sum_of(const std::optional<Prediction>&, const std::optional<Prediction>&);

/// Where the run's gates were made explicit: adds dg_gamma of a head, the sum of dg [B,T,H] over its tokens.
void sum_gate_gradient(const FailingRun&, Prediction&);

/// In fp64, element by element: `value(old, flat)`.
Tensor mapped(const Tensor&, const std::function<double(double, int64_t)>& value);
/// In fp64: the element at index i of `axis` is that of index `from(i)`; 0 where that is outside.
Tensor moved(const Tensor&, int axis, const std::function<int64_t(int64_t)>& from);

}  // namespace assay
