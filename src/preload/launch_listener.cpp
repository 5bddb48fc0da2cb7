#include "src/preload/launch_listener.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "src/preload/module_images.h"
#include "src/standin/cuda_abi.h"
#include "src/standin/profiling_abi.h"

#define ASSAY_OWN extern "C" __attribute__((visibility("default")))

using namespace assay::standin;  // NOLINT(google-build-using-namespace): the ABI's own names

namespace assay::preload {
namespace {

constexpr DriverCall kLoads[] = {kModuleLoadData,    kModuleLoadDataEx, kModuleLoadFatBinary,
                                 kModuleGetFunction, kLibraryLoadData,  kLibraryGetKernel,
                                 kLibraryGetModule,  kKernelGetFunction};
constexpr DriverCall kLaunches[] = {kLaunchKernel,          kLaunchKernelPtsz, kLaunchCooperative,
                                    kLaunchCooperativePtsz, kLaunchKernelEx,   kLaunchKernelExPtsz};

constexpr uint64_t kNeverAgain = ~uint64_t{0};

thread_local bool inside = false;  // what the asker does itself is not told
thread_local int32_t otherwise = 0;

class Listening {
 public:
  static Listening& get() {
    static auto* const one = new Listening;  // never destroyed: the driver may call at the very end
    return *one;
  }

  /// Null, or why not.
  const char* subscribe(const char* cupti) {
    const std::lock_guard lock(mutex_);
    if (handle_) return nullptr;
    if (!find_cupti(cupti)) return "CUPTI is not found (torch and CuPy bring it, as does the CUDA toolkit)";
    if (const int status = subscribe_(&handle_, &Listening::heard, this)) {
      handle_ = nullptr;
      return status == kProfilingBusy
                 ? "a profiler holds CUPTI's callbacks already (torch.profiler, nsys, ncu, or "
                   "what CUDA_INJECTION64_PATH names)"
                 : "CUPTI refuses to tell of the driver's calls";
    }
    for (const DriverCall call : kLoads) enable_(1, handle_, kDriverDomain, call);
    return nullptr;
  }

  void launches(assay_before_launch before, assay_after_launch after) {
    before_ = before, after_ = after, without_ptx_ = 0;
    const std::lock_guard lock(mutex_);
    if (!handle_) return;
    for (const DriverCall call : kLaunches) enable_(before ? 1 : 0, handle_, kDriverDomain, call);
  }

  void stop() {
    launches(nullptr, nullptr);
    const std::lock_guard lock(mutex_);
    if (handle_ && !injected_) unsubscribe_(handle_), handle_ = nullptr;
  }

  void injected() { injected_ = true; }
  uint64_t without_ptx() const { return without_ptx_; }

 private:
  template <class Function>
  bool find(void* library, const char* name, Function& to) {
    return (to = reinterpret_cast<Function>(dlsym(library, name))) != nullptr;
  }

  bool find_cupti(const char* path) {
    if (subscribe_) return true;
    std::vector<void*> libraries = {
        dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)};  // the stand-in has both
    for (const char* name : {"libcupti.so.13", "libcupti.so.12"})
      libraries.push_back(dlopen(name, RTLD_LAZY | RTLD_NOLOAD));
    if (path && *path) libraries.push_back(dlopen(path, RTLD_LAZY));
    for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})
      libraries.push_back(dlopen(name, RTLD_LAZY));
    for (void* const library : libraries)
      if (library && find(library, "cuptiUnsubscribe", unsubscribe_) &&
          find(library, "cuptiEnableCallback", enable_) && find(library, "cuptiSubscribe", subscribe_))
        return true;
    return false;
  }

  static void heard(void* user, uint32_t domain, uint32_t call, const void* told) {
    if (inside || domain != kDriverDomain) return;
    inside = true;
    static_cast<Listening*>(user)->heard(static_cast<DriverCall>(call), *static_cast<const ToldCall*>(told));
    inside = false;
  }

  void heard(DriverCall call, const ToldCall& told) {
    for (const DriverCall launch : kLaunches)
      if (launch == call) return told.site == kEnter ? before(call, told) : after(told);
    if (told.site != kExit || !told.parameters || *static_cast<const int*>(told.status) != 0) return;
    const auto& load = *static_cast<const LoadCall*>(told.parameters);
    const auto& function = *static_cast<const FunctionCall*>(told.parameters);
    const auto& handle = *static_cast<const HandleCall*>(told.parameters);
    switch (call) {
      case kModuleGetFunction:
      case kLibraryGetKernel:
        return images_.function(*function.made, function.of, function.name, call == kLibraryGetKernel);
      case kLibraryGetModule:
        return images_.same(*handle.made, handle.of);
      case kKernelGetFunction:
        return images_.same_function(*handle.made, handle.of);
      default:
        return images_.loaded(*load.made, load.image);
    }
  }

  void before(DriverCall call, const ToldCall& told) {
    const assay_before_launch before = before_;
    *told.kept = 0;
    if (!before || !told.parameters || otherwise) return;
    const bool extended = call == kLaunchKernelEx || call == kLaunchKernelExPtsz;
    const void* const handle = extended ? static_cast<const LaunchExCall*>(told.parameters)->function
                                        : static_cast<const LaunchCall*>(told.parameters)->function;
    const KnownKernel kernel = images_.kernel(handle);
    if (kernel.image && kernel.image->kind >= Image::Kind::machine_code) {
      ++without_ptx_;
      return;
    }
    assay_told_launch launch{};
    launch.name = !kernel.name.empty() ? kernel.name.c_str() : told.symbol ? told.symbol : "";
    launch.kind = 4;
    if (kernel.image) {
      launch.kind = static_cast<int32_t>(kernel.image->kind);
      launch.image = kernel.image->data, launch.image_bytes = kernel.image->bytes;
    }
    void** extra = nullptr;
    if (extended) {
      const auto& given = *static_cast<const LaunchExCall*>(told.parameters);
      configure(launch, *given.config);
      launch.arguments = given.arguments, extra = given.extra;
    } else {
      const auto& given = *static_cast<const LaunchCall*>(told.parameters);
      for (int i = 0; i < 3; ++i) launch.grid[i] = given.grid[i], launch.block[i] = given.block[i];
      launch.shared_bytes = given.shared_bytes, launch.stream = given.stream,
      launch.arguments = given.arguments;
      launch.cooperative = call == kLaunchCooperative || call == kLaunchCooperativePtsz;
      if (!launch.cooperative) extra = given.extra;
    }
    for (void** at = extra; at && at[0]; at += 2) {  // CU_LAUNCH_PARAM_END is null
      if (at[0] == reinterpret_cast<void*>(1)) launch.packed = at[1];
      if (at[0] == reinterpret_cast<void*>(2)) launch.packed_bytes = *static_cast<const size_t*>(at[1]);
    }
    std::vector<uint32_t> offsets, sizes;
    if (!kernel.name.empty()) ask_driver(handle, kernel.of_library, offsets, sizes);
    launch.parameters = static_cast<uint32_t>(offsets.size());
    launch.offsets = offsets.data(), launch.sizes = sizes.data();
    const uint64_t kept = before(&launch);
    if (kept == kNeverAgain) return images_.leave_out(handle, launch.name);
    *told.kept = kept;
  }

  void after(const ToldCall& told) {
    if (const assay_after_launch after = after_; after && *told.kept)
      after(*told.kept, *static_cast<const int*>(told.status));
  }

  static void configure(assay_told_launch& launch, const LaunchConfig& config) {
    const auto put = [](uint32_t(&to)[3], const Dim3& from) {
      to[0] = from.x, to[1] = from.y, to[2] = from.z;
    };
    put(launch.grid, config.grid), put(launch.block, config.block);
    launch.shared_bytes = driver_shared_bytes(config);
    launch.stream = config.stream;
    for (uint32_t i = 0; i < config.attribute_count; ++i) {
      if (config.attributes[i].id == kAttributeCluster) put(launch.cluster, config.attributes[i].cluster);
      if (config.attributes[i].id == kAttributeCooperative)
        launch.cooperative = config.attributes[i].cooperative != 0;
    }
  }

  /// Where each parameter lies and how long it is, by the driver itself; nothing with drivers before 12.4.
  static void ask_driver(const void* handle, bool of_library, std::vector<uint32_t>& offsets,
                         std::vector<uint32_t>& sizes) {
    using Ask = int (*)(const void*, size_t, size_t*, size_t*);
    static void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    static const auto of_function =
        driver ? reinterpret_cast<Ask>(dlsym(driver, "cuFuncGetParamInfo")) : nullptr;
    static const auto of_kernel =
        driver ? reinterpret_cast<Ask>(dlsym(driver, "cuKernelGetParamInfo")) : nullptr;
    const Ask ask = of_library ? of_kernel : of_function;
    for (size_t i = 0, offset = 0, bytes = 0; ask && ask(handle, i, &offset, &bytes) == 0; ++i)
      offsets.push_back(static_cast<uint32_t>(offset)), sizes.push_back(static_cast<uint32_t>(bytes));
  }

  std::mutex mutex_;
  void* handle_ = nullptr;
  bool injected_ = false;
  int (*subscribe_)(void**, Listener, void*) = nullptr;
  int (*unsubscribe_)(void*) = nullptr;
  int (*enable_)(uint32_t, void*, uint32_t, uint32_t) = nullptr;
  std::atomic<assay_before_launch> before_ = nullptr;
  std::atomic<assay_after_launch> after_ = nullptr;
  std::atomic<uint64_t> without_ptx_ = 0;
  ModuleImages images_;
};

}  // namespace
}  // namespace assay::preload

using assay::preload::Listening;

ASSAY_OWN const char* assay_tell_launches(assay_before_launch before, assay_after_launch after,
                                          const char* cupti) {
  const char* const why = Listening::get().subscribe(cupti);
  if (!why) Listening::get().launches(before, after);
  return why;
}
ASSAY_OWN void assay_tell_no_launches() {
  Listening::get().stop();
}
ASSAY_OWN uint64_t assay_launches_without_ptx() {
  return Listening::get().without_ptx();
}
ASSAY_OWN int32_t* assay_tell_otherwise() {
  return &assay::preload::otherwise;
}
ASSAY_OWN int InitializeInjection() {
  Listening::get().injected();
  Listening::get().subscribe(nullptr);
  return 1;
}
