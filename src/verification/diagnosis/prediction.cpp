#include "src/verification/diagnosis/prediction.h"

#include <cmath>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// Gradients of explicit gates are summed to one that the run has.
bool is_on_reals(const FailingRun& run, const std::string& output) {
  return run.is_on_reals(run.sums_gate_gradient && output == "dg" ? "dg_gamma" : output);
}

void take(const FailingRun& run, const ReferenceResult& result, Prediction& prediction) {
  for (const ReferenceOutput& o : result.outputs) {
    PredictedOutput& p = prediction[o.name];
    p.mid = o.mid, p.bound = o.rad;
    if (is_on_reals(run, o.name)) continue;
    for (size_t i = 0; i < p.bound.size(); ++i) p.bound[i] += o.bound[i];
  }
}

}  // namespace

void sum_gate_gradient(const FailingRun& run, Prediction& p) {
  const auto dg = p.find("dg");
  if (!run.sums_gate_gradient || dg == p.end()) return;
  const auto H = static_cast<size_t>(run.problem.sizes.H);
  PredictedOutput sum{std::vector<double>(H), std::vector<double>(H)};
  for (size_t i = 0; i < dg->second.mid.size(); ++i)
    sum.mid[i % H] += dg->second.mid[i], sum.bound[i % H] += dg->second.bound[i];
  p["dg_gamma"] = std::move(sum);
}

Prediction reference_prediction(const FailingRun& run) {
  Prediction p;
  take(run, *run.reference, p);
  return p;
}

std::optional<Prediction> evaluate_with(const FailingRun& run, const TensorMap& inputs,
                                        const std::function<void(Problem&)>& change) {
  Problem problem = run.problem;
  problem.inputs = &inputs;
  if (change) change(problem);
  Prediction prediction;
  try {
    if (run.forward) take(run, run.op->evaluate(problem), prediction);
    if (run.backward) take(run, run.op->evaluate_adjoint(problem), prediction);
  } catch (const BadInput&) {
    return std::nullopt;  // this meaning has no answer for these sizes
  }
  sum_gate_gradient(run, prediction);
  return prediction;
}

std::optional<Prediction> evaluate_with(const FailingRun& run, const std::string& input, Tensor tensor,
                                        const std::function<void(Problem&)>& change) {
  TensorMap inputs = run.inputs();
  inputs[input] = std::move(tensor);
  return evaluate_with(run, inputs, change);
}

Prediction combine(double a, const Prediction& x, double b, const Prediction& y) {
  Prediction sum;
  for (const auto& [name, p] : x) {
    const auto other = y.find(name);
    if (other == y.end() || other->second.mid.size() != p.mid.size()) continue;
    PredictedOutput& s = sum[name];
    s = p;
    for (size_t i = 0; i < s.mid.size(); ++i) {
      s.mid[i] = a * p.mid[i] + b * other->second.mid[i];
      s.bound[i] = std::fabs(a) * p.bound[i] + std::fabs(b) * other->second.bound[i];
    }
  }
  return sum;
}

std::optional<Prediction> sum_of(const std::optional<Prediction>& x, const std::optional<Prediction>& y) {
  if (!x || !y) return std::nullopt;
  return combine(1, *x, 1, *y);
}

Tensor mapped(const Tensor& t, const std::function<double(double, int64_t)>& value) {
  Tensor out(t.name, Dtype::fp64, t.axes);
  const auto to = out.as<double>();
  for (int64_t i = 0; i < t.size(); ++i) to[static_cast<size_t>(i)] = value(t.value(i), i);
  return out;
}

Tensor moved(const Tensor& t, int axis, const std::function<int64_t(int64_t)>& from) {
  const int64_t stride = t.strides()[static_cast<size_t>(axis)];
  const int64_t size = t.axes[static_cast<size_t>(axis)].size;
  return mapped(t, [&](double, int64_t flat) {
    const int64_t i = flat / stride % size, j = from(i);
    return j < 0 || j >= size ? 0.0 : t.value(flat + (j - i) * stride);
  });
}

}  // namespace assay
