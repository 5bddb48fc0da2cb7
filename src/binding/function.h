// A function of the caller's as a kernel under test: it has no program, and is called where a backend would
// run one.
#pragma once
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "include/assay_engine.h"
#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/binding/launch_record.h"

/// One run that is asked of a function, and what it has given so far.
struct assay_run {
  const assay::Program* program = nullptr;
  assay::Outcome outcome;
  std::string said;                                  ///< JSON
  std::string fault;                                 ///< of what it gave; else empty
  assay::binding::LaunchRecord* launches = nullptr;  ///< where its launches are wanted
};

namespace assay::binding {

/// An output's elements. Throws BadInput where the run asks for no such one, or its shape or format is
/// another.
void give_output(assay_run&, const assay_array&);
/// One of the inputs and outputs by name, wherever it lies, for the record of launches.
void name_memory(assay_run&, const assay_array&);

/// Of {"name", "operator", "arithmetic", "directions", "dtypes", "gate_dtypes", "max_K", "max_V", "max_M",
/// "gate_min", "takes", "needs", "sizes", "lacks", "cases_per_shape"}; python/assay/fuzzing.py says what
/// they mean. Throws BadInput.
Kernel function_kernel(const nlohmann::json&);

/// Its programs are those of function_kernel: outputs, and as constants what is no tensor.
class FunctionBackend : public Backend {
 public:
  FunctionBackend(const assay_function& function, std::string name)
      : function_(function), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  /// Throws Refused where the function does not take the case, BadInput where it fails altogether.
  Outcome run(const Program&, const TensorMap& inputs) override;
  std::optional<LaunchedRun> launched(const Program&, const TensorMap& inputs) override;
  /// What the function says to {"what": "probe"}: it is run, and nothing judged.
  nlohmann::json probe(const Program&, const TensorMap& inputs);

 private:
  nlohmann::json call(const char* what, const Program&, const TensorMap& inputs, assay_run&);

  const assay_function& function_;
  const std::string name_;
  std::mutex one_at_a_time_;
};

}  // namespace assay::binding
