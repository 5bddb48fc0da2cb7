// A kernel planned for one problem, and its launches on the caller's context and memory: what the C API is
// made of.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "include/assay_kernels.h"
#include "kernels/kernel.h"
#include "src/base/backend/driver.h"

namespace assay {

class PlannedKernel {
 public:
  /// Throws BadInput for an unknown kernel and for a problem that it or its operator does not take.
  PlannedKernel(const char* name, const assay_problem&);
  ~PlannedKernel();
  PlannedKernel(const PlannedKernel&) = delete;
  PlannedKernel& operator=(const PlannedKernel&) = delete;

  const std::vector<assay_tensor>& tensors() const { return tensors_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Throws BadInput where a pointer is missing or not aligned, or where the driver refuses.
  void run(void* const* tensors, void* workspace, void* stream);

 private:
  /// One launch, with the function found and every argument in place but the addresses of the call.
  struct Ready {
    const Launch* launch = nullptr;
    CUfunction function = nullptr;
  };
  void list(const Tensor& shape, bool is_output, const std::optional<TensorLayout>&);
  void load();

  Program plan_;
  std::deque<std::string> names_;  ///< of tensors_; never moved
  std::vector<assay_tensor> tensors_;
  std::vector<uint64_t> alignments_;  ///< of their pointers, bytes
  std::map<std::string, int64_t> workspace_offsets_;
  int64_t workspace_bytes_ = 0;
  std::unique_ptr<Driver> driver_;  ///< opened by the first run
  std::map<std::string, CUdeviceptr> constants_;
  std::vector<Ready> launches_;
};

}  // namespace assay
