// What the fuzz tests fuzz: the gla recurrence in fp32 on the host behind a Backend, with faults that can be
// switched on.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"

namespace assay::test {

/// An operator with gla's arguments and no mathematics, for tests that only draw.
Operator gla_arguments();

/// Runs the plans of subject_kernel(). Thread safe.
class SubjectBackend : public Backend {
 public:
  /// `fault`: "" or one of the names in subject.cpp.
  explicit SubjectBackend(std::string fault = "") : fault_(std::move(fault)) {}
  std::string name() const override { return "host"; }
  Outcome run(const Program&, const TensorMap& inputs) override;
  int64_t runs() const { return runs_; }

 private:
  std::string fault_;
  std::atomic<int64_t> runs_ = 0;
};

/// "gla.subject": every dtype, K and V up to 256, resumable anywhere.
Kernel subject_kernel();

}  // namespace assay::test
