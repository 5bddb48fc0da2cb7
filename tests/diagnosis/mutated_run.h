// A kernel that computes a mutated meaning without error: the prediction of a meaning, rounded to the
// outputs' formats.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "src/case/case.h"
#include "src/verification/diagnosis/meaning.h"

namespace assay::test {

/// A case of a kernel with its reference, under the kernel's own declared arithmetic.
class MutatedRun {
 public:
  explicit MutatedRun(const Case& c)
      : case_(c), kernel_(find_kernel(c.kernel)), op_(find_operator(kernel_.operator_name)) {
    inputs_ = draw_inputs(c, op_);
    problem_.sizes = sizes_of(c), problem_.cu_seqlens = c.cu_seqlens, problem_.scale = scale_of(c, op_);
    problem_.inputs = &inputs_, problem_.parameters = c.parameters;
    if (runs_forward(c))
      problem_.arithmetic = kernel_.arithmetic(resolve(c, op_)), reference_ = op_.evaluate(problem_);
    if (runs_backward(c)) {
      problem_.adjoint = kernel_.adjoint_arithmetic(resolve(c, op_));
      for (ReferenceOutput& o : op_.evaluate_adjoint(problem_).outputs)
        reference_.outputs.push_back(std::move(o));
    }
    store({});
  }

  /// Outputs as predicted; what is not predicted is right.
  void store(const Prediction& prediction) {
    outputs_.clear(), judged_.clear();
    for (const ReferenceOutput& o : reference_.outputs) {
      Tensor t(o.name, dtype_of_output(o.name), o.axes);
      const auto found = prediction.find(o.name);
      for (int64_t i = 0; i < t.size(); ++i) {
        const auto at = static_cast<size_t>(i);
        const bool predicted = found != prediction.end() && !std::isnan(found->second.mid[at]);
        t.set(i, predicted ? found->second.mid[at] : o.mid[at]);
      }
      judged_.push_back(compare_output(t, o));
      outputs_[o.name] = std::move(t);
    }
  }

  /// With both directions that the case runs open to evaluation.
  FailingRun run() const {
    FailingRun r;
    r.op = &op_, r.problem = problem_, r.outputs = &outputs_, r.reference = &reference_, r.judged = &judged_;
    r.forward = runs_forward(case_), r.backward = runs_backward(case_);
    return r;
  }
  bool wrong() const { return !run().wrong().empty(); }
  const Operator& op() const { return op_; }
  const TensorMap& inputs() const { return inputs_; }
  const ReferenceResult& reference() const { return reference_; }

 private:
  Dtype dtype_of_output(const std::string& name) const {
    for (const ArgumentSpec& spec : outputs_of(case_, op_))
      if (spec.name == name) return dtype_of(case_, spec);
    return Dtype::fp32;
  }

  Case case_;
  const Kernel& kernel_;
  const Operator& op_;
  TensorMap inputs_, outputs_;
  Problem problem_;
  ReferenceResult reference_;
  std::vector<OutputComparison> judged_;
};

}  // namespace assay::test
