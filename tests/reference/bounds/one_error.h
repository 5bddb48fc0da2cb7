// What one declared error alone makes of a bound, for tests of the models: everything else is exact.
#pragma once
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>

#include "reference/operator.h"

namespace assay {

/// A problem written out by hand. `inputs` must stay where it is.
struct HandProblem {
  TensorMap inputs;
  Problem problem;

  HandProblem(const HandProblem&) = delete;
  explicit HandProblem(const Sizes& sizes) {
    problem.sizes = sizes;
    problem.inputs = &inputs;
  }
  void set(const Operator& op, std::string_view name, std::initializer_list<double> values) {
    std::vector<ArgumentSpec> all = op.inputs;
    for (const ArgumentSpec& cotangent : op.cotangents()) all.push_back(cotangent);
    for (const ArgumentSpec& spec : all) {
      if (spec.name != name) continue;
      std::vector<Axis> axes;
      for (std::string_view axis : spec.axes) axes.push_back({std::string(axis), problem.sizes.of(axis)});
      Tensor tensor(std::string(name), Dtype::fp32, axes);
      int64_t i = 0;
      for (double x : values) tensor.set(i++, x);
      inputs[tensor.name] = tensor;
    }
  }
};

inline const ReferenceOutput& output_of(const ReferenceResult& result, std::string_view name) {
  for (const ReferenceOutput& output : result.outputs)
    if (output.name == name) return output;
  throw std::invalid_argument("no output " + std::string(name));
}

/// Equal but for the roundings of the model itself and its underflow.
inline bool near(double got, double expected) {
  return std::fabs(got - expected) <= 1e-6 * std::fabs(expected) + 1e-200;
}

}  // namespace assay
