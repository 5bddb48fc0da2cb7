// The C functions of include/assay_kernels.h: exceptions end here.
#include "include/assay_kernels.h"

#include <exception>
#include <string>

#include "src/capi/planned_kernel.h"

namespace {

thread_local std::string last_error;

template <typename Call>
int guarded(const Call& call) {
  try {
    call();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
    return 1;
  }
}

}  // namespace

struct assay_kernel : assay::PlannedKernel {
  using PlannedKernel::PlannedKernel;
};

extern "C" {

const char* assay_kernel_name(int index) {
  const auto& all = assay::kernels();
  return index >= 0 && index < static_cast<int>(all.size()) ? all[static_cast<size_t>(index)].name.c_str()
                                                            : nullptr;
}

int assay_kernel_create(const char* name, const assay_problem* problem, assay_kernel** kernel) {
  return guarded([&] { *kernel = new assay_kernel(name, *problem); });
}

void assay_kernel_destroy(assay_kernel* kernel) {
  delete kernel;
}

const assay_tensor* assay_kernel_tensors(const assay_kernel* kernel, int* count) {
  *count = static_cast<int>(kernel->tensors().size());
  return kernel->tensors().data();
}

int64_t assay_kernel_workspace(const assay_kernel* kernel) {
  return kernel->workspace_bytes();
}

int assay_kernel_run(assay_kernel* kernel, void* const* tensors, void* workspace, void* stream) {
  return guarded([&] { kernel->run(tensors, workspace, stream); });
}

const char* assay_error(void) {
  return last_error.c_str();
}

}  // extern "C"
