// The functions of the CUDA runtime that a watched program calls first ("CUDA Runtime API"; those that nvcc's
// code calls as in crt/host_runtime.h). Each does what the runtime's own does.
#include <cstddef>
#include <cstdint>

#include "src/preload/fat_binary.h"
#include "src/preload/watched_process.h"

#define ASSAY_CUDA extern "C" __attribute__((visibility("default")))

namespace assay::preload {
namespace {

struct Dim3 {
  uint32_t x, y, z;
};
/// What __cudaRegisterFatBinary is given (fatbinary_section.h).
struct FatBinaryWrapper {
  int32_t magic, version;
  const void* data;
  const void* file;
};

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(next_function(name));
}

void launching() {
  static const auto make_known = next<WatchedProcess::Register>("cudaHostRegister");
  WatchedProcess::get().launching(make_known);
}

}  // namespace
}  // namespace assay::preload

using namespace assay::preload;  // NOLINT(google-build-using-namespace): the C functions stand outside it

ASSAY_CUDA void** __cudaRegisterFatBinary(void* wrapper) {
  static const auto real = next<void** (*)(void*)>("__cudaRegisterFatBinary");
  const auto& given = *static_cast<const FatBinaryWrapper*>(wrapper);
  WatchedProcess& process = WatchedProcess::get();
  if (process.is_left_out(given.data)) return real(wrapper);
  const void* const image = process.watched_image(given.data);
  if (!image) return real(wrapper);
  // The runtime keeps it for as long as the program runs.
  return real(new FatBinaryWrapper{given.magic, given.version, image, given.file});
}

#define ASSAY_LAUNCH(name)                                                                         \
  ASSAY_CUDA int name(const void* kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared,  \
                      void* stream) {                                                              \
    static const auto real = next<int (*)(const void*, Dim3, Dim3, void**, size_t, void*)>(#name); \
    launching();                                                                                   \
    return real(kernel, grid, block, arguments, shared, stream);                                   \
  }
ASSAY_LAUNCH(cudaLaunchKernel)
ASSAY_LAUNCH(cudaLaunchKernel_ptsz)
ASSAY_LAUNCH(__cudaLaunchKernel)
ASSAY_LAUNCH(__cudaLaunchKernel_ptsz)
ASSAY_LAUNCH(cudaLaunchCooperativeKernel)
#define ASSAY_LAUNCH_CONFIG(name)                                                    \
  ASSAY_CUDA int name(const void* config, const void* kernel, void** arguments) {    \
    static const auto real = next<int (*)(const void*, const void*, void**)>(#name); \
    launching();                                                                     \
    return real(config, kernel, arguments);                                          \
  }
ASSAY_LAUNCH_CONFIG(cudaLaunchKernelExC)
ASSAY_LAUNCH_CONFIG(cudaLaunchKernelExC_ptsz)

#define ASSAY_WAIT(name, parameter)                           \
  ASSAY_CUDA int name(parameter x) {                          \
    static const auto real = next<int (*)(parameter)>(#name); \
    const int status = real(x);                               \
    WatchedProcess::get().look();                             \
    return status;                                            \
  }
ASSAY_WAIT(cudaStreamSynchronize, void*)
ASSAY_WAIT(cudaStreamSynchronize_ptsz, void*)
ASSAY_WAIT(cudaEventSynchronize, void*)
ASSAY_CUDA int cudaDeviceSynchronize() {
  static const auto real = next<int (*)()>("cudaDeviceSynchronize");
  const int status = real();
  WatchedProcess::get().look();
  return status;
}
ASSAY_CUDA int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  static const auto real = next<int (*)(void*, const void*, size_t, int)>("cudaMemcpy");
  const int status = real(to, from, bytes, kind);
  WatchedProcess::get().look();
  return status;
}
