// The functions of the CUDA driver that a watched program calls first ("CUDA Driver API"), also where it asks
// the driver for their addresses.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "src/preload/watched_process.h"

#define ASSAY_CUDA extern "C" __attribute__((visibility("default")))

namespace assay::preload {
namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(next_function(name));
}

/// Loads an image with the watch in it, or as it is where the driver refuses that. `values` are of as many
/// options: a load that fails leaves in some of them what it has to say, as the bytes of a log.
template <class Load>
int load(const void* image, void* values, unsigned options, const Load& real) {
  WatchedProcess& process = WatchedProcess::get();
  const void* const made = process.watched_image(image);
  if (!made) return real(image);
  auto** const begin = static_cast<void**>(values);
  const std::vector<void*> before(begin, begin ? begin + options : begin);
  const int status = real(made);
  if (status == 0) return 0;
  if (begin) std::copy(before.begin(), before.end(), begin);
  const int as_it_is = real(image);
  if (as_it_is == 0) process.refused(made, status);
  return as_it_is;
}

void launching() {
  static const auto make_known = next<WatchedProcess::Register>("cuMemHostRegister_v2");
  WatchedProcess::get().launching(make_known);
}

}  // namespace
}  // namespace assay::preload

using namespace assay::preload;  // NOLINT(google-build-using-namespace): the C functions stand outside it

ASSAY_CUDA int cuModuleLoadData(void* module, const void* image) {
  static const auto real = next<int (*)(void*, const void*)>("cuModuleLoadData");
  return load(image, nullptr, 0, [&](const void* given) { return real(module, given); });
}
ASSAY_CUDA int cuModuleLoadDataEx(void* module, const void* image, unsigned count, void* options,
                                  void* values) {
  static const auto real = next<int (*)(void*, const void*, unsigned, void*, void*)>("cuModuleLoadDataEx");
  return load(image, values, count,
              [&](const void* given) { return real(module, given, count, options, values); });
}
ASSAY_CUDA int cuModuleLoadFatBinary(void* module, const void* image) {
  static const auto real = next<int (*)(void*, const void*)>("cuModuleLoadFatBinary");
  return load(image, nullptr, 0, [&](const void* given) { return real(module, given); });
}
ASSAY_CUDA int cuLibraryLoadData(void* library, const void* image, void* options, void* values,
                                 unsigned count, void* library_options, void* library_values,
                                 unsigned library_count) {
  static const auto real =
      next<int (*)(void*, const void*, void*, void*, unsigned, void*, void*, unsigned)>("cuLibraryLoadData");
  return load(image, values, count, [&](const void* given) {
    return real(library, given, options, values, count, library_options, library_values, library_count);
  });
}
ASSAY_CUDA int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, void* stream, void** arguments, void** extra) {
  static const auto real = next<int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, void*, void**, void**)>("cuLaunchKernel");
  launching();
  return real(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);
}
ASSAY_CUDA int cuLaunchKernelEx(const void* config, void* function, void** arguments, void** extra) {
  static const auto real = next<int (*)(const void*, void*, void**, void**)>("cuLaunchKernelEx");
  launching();
  return real(config, function, arguments, extra);
}
ASSAY_CUDA int cuCtxSynchronize() {
  static const auto real = next<int (*)()>("cuCtxSynchronize");
  const int status = real();
  WatchedProcess::get().look();
  return status;
}
ASSAY_CUDA int cuStreamSynchronize(void* stream) {
  static const auto real = next<int (*)(void*)>("cuStreamSynchronize");
  const int status = real(stream);
  WatchedProcess::get().look();
  return status;
}
ASSAY_CUDA int cuEventSynchronize(void* event) {
  static const auto real = next<int (*)(void*)>("cuEventSynchronize");
  const int status = real(event);
  WatchedProcess::get().look();
  return status;
}

namespace assay::preload {
namespace {

void* own_function(const char* name) {
  struct Function {
    const char* name;
    void* function;
  };
  static const Function kFunctions[] = {
      {"cuModuleLoadData", reinterpret_cast<void*>(&cuModuleLoadData)},
      {"cuModuleLoadDataEx", reinterpret_cast<void*>(&cuModuleLoadDataEx)},
      {"cuModuleLoadFatBinary", reinterpret_cast<void*>(&cuModuleLoadFatBinary)},
      {"cuLibraryLoadData", reinterpret_cast<void*>(&cuLibraryLoadData)},
      {"cuLaunchKernel", reinterpret_cast<void*>(&cuLaunchKernel)},
      {"cuLaunchKernelEx", reinterpret_cast<void*>(&cuLaunchKernelEx)},
      {"cuCtxSynchronize", reinterpret_cast<void*>(&cuCtxSynchronize)},
      {"cuStreamSynchronize", reinterpret_cast<void*>(&cuStreamSynchronize)},
      {"cuEventSynchronize", reinterpret_cast<void*>(&cuEventSynchronize)},
  };
  for (const Function& f : kFunctions)
    if (std::strcmp(f.name, name) == 0) return f.function;
  return nullptr;
}

}  // namespace
}  // namespace assay::preload

ASSAY_CUDA int cuGetProcAddress_v2(const char* name, void** to, int version, uint64_t flags, void* found) {
  static const auto real = next<int (*)(const char*, void**, int, uint64_t, void*)>("cuGetProcAddress_v2");
  const int status = real(name, to, version, flags, found);
  constexpr uint64_t kPerThread =
      2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM: functions of other names
  if (void* const own = own_function(name); status == 0 && own && *to && !(flags & kPerThread)) *to = own;
  return status;
}
