// A small kernel for tests: hgrn.fused_recurrent, forward, and one cheap case of it.
#pragma once
#include <string>

#include "src/base/numerics/format.h"
#include "src/campaign/mutate/clean_case.h"

namespace assay {

inline const Kernel& subject() {
  return find_kernel("hgrn.fused_recurrent");
}

/// The same of one pair of formats: a third of its cases.
inline const Kernel& narrow_subject() {
  static const Kernel narrow = [] {
    Kernel kernel = subject();
    kernel.limits.dtypes = {Dtype::bf16}, kernel.limits.gate_dtypes = {Dtype::fp32};
    return kernel;
  }();
  return narrow;
}

inline MutationCase small_case(const std::string& values = "normal") {
  Case c;
  c.kernel = subject().name;
  c.T = 9, c.K = 1, c.V = 40, c.dtype = Dtype::bf16, c.gate_dtype = Dtype::fp32;
  c.values = values;
  if (values == "exact") c.decay = "none";
  c.initial_state = true;
  return {c, 0};
}

inline vm::MachineOptions one_thread() {
  vm::MachineOptions options;
  options.threads = 1;
  return options;
}

}  // namespace assay
