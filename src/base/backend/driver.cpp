#include "src/base/backend/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// The library that the environment names; null: it names none.
const char* chosen_library() {
  const char* const chosen = std::getenv("ASSAY_CUDA_DRIVER");
  return chosen && *chosen ? chosen : nullptr;
}

void* open_library() {
  const char* const chosen = chosen_library();
  const char* const path = chosen ? chosen : "libcuda.so.1";
  // Never closed: the driver keeps threads of its own.
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw BadInput(fmt::format("the NVIDIA driver's {} cannot be opened", path));
  return library;
}

/// Of what stands in front of the driver in this process (`assay watch`), else the driver's own.
void* function_of(void* library, const char* symbol) {
  void* const in_front = chosen_library() ? nullptr : dlsym(RTLD_DEFAULT, symbol);
  return in_front ? in_front : dlsym(library, symbol);
}

}  // namespace

Driver Driver::open() {
  void* library = open_library();
  Driver driver;
#define ASSAY_DRIVER_LOAD(name, symbol, parameters)                                    \
  driver.name = reinterpret_cast<decltype(driver.name)>(function_of(library, symbol)); \
  if (!driver.name)                                                                    \
    throw BadInput("the NVIDIA driver has no " symbol "; a driver for CUDA 11 or newer is needed");
  ASSAY_DRIVER_FUNCTIONS(ASSAY_DRIVER_LOAD)
#undef ASSAY_DRIVER_LOAD
  driver.cuTensorMapEncodeTiled =
      reinterpret_cast<decltype(driver.cuTensorMapEncodeTiled)>(dlsym(library, "cuTensorMapEncodeTiled"));
  driver.cuTensorMapEncodeIm2col =
      reinterpret_cast<decltype(driver.cuTensorMapEncodeIm2col)>(dlsym(library, "cuTensorMapEncodeIm2col"));
  driver.cuLaunchKernelEx =
      reinterpret_cast<decltype(driver.cuLaunchKernelEx)>(function_of(library, "cuLaunchKernelEx"));
  const CUresult initialised = driver.cuInit(0);
  int devices = 0;
  if (initialised == CUDA_ERROR_NO_DEVICE ||
      (initialised == CUDA_SUCCESS && driver.cuDeviceGetCount(&devices) == CUDA_SUCCESS && devices == 0))
    throw BadInput("the NVIDIA driver lists none (CUDA_VISIBLE_DEVICES hides those it does not name)");
  driver.check(initialised, "the NVIDIA driver does not start");
  driver.check(driver.cuDeviceGet(&driver.device, 0), "cuDeviceGet");
  driver.check(driver.cuDriverGetVersion(&driver.version), "cuDriverGetVersion");
  return driver;
}

std::string Driver::device_name() const {
  char name[256] = "";
  check(cuDeviceGetName(name, sizeof name, device), "the GPU's name");
  return name;
}

std::string Driver::arch() const {
  int major = 0, minor = 0;
  check(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
        "the GPU's architecture");
  check(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
        "the GPU's architecture");
  return fmt::format("sm_{}{}", major, minor);
}

size_t Driver::memory_bytes() const {
  size_t bytes = 0;
  check(cuDeviceTotalMem(&bytes, device), "the GPU's memory size");
  return bytes;
}

std::string Driver::error_text(CUresult error) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(error, &name) != CUDA_SUCCESS || !name) return fmt::format("error {}", error);
  if (cuGetErrorString(error, &text) != CUDA_SUCCESS || !text) return name;
  return fmt::format("{} ({})", name, text);
}

void Driver::check(CUresult result, const std::string& what) const {
  if (result != CUDA_SUCCESS) throw BadInput(what + ": " + error_text(result));
}

}  // namespace assay
