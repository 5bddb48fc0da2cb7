// CUPTI's functions for those who follow a program's calls, and the driver's injection of them.
#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>

#include "src/standin/device.h"
#include "src/standin/profiling.h"

#define ASSAY_CUDA extern "C" __attribute__((visibility("default")))

namespace assay::standin {
namespace {

/// The one that is told.
struct Subscriber {
  std::mutex mutex;
  Listener listener = nullptr;
  void* user = nullptr;
  std::set<uint32_t> calls;
};

Subscriber& subscriber() {
  static Subscriber one;
  return one;
}

thread_local bool telling = false;  // what the listener calls itself is not told

}  // namespace

Told::Told(DriverCall call, const char* function, const void* parameters, const char* symbol) : call_(call) {
  static std::atomic<uint32_t> calls = 0;
  told_.function = function, told_.parameters = parameters, told_.symbol = symbol;
  told_.status = &status_, told_.kept = &kept_, told_.number = ++calls;
  tell(kEnter);
}

Told::~Told() {
  tell(kExit);
}

void Told::tell(int site) {
  if (telling) return;
  Listener listener = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard lock(subscriber().mutex);
    if (!subscriber().calls.contains(call_)) return;
    listener = subscriber().listener, user = subscriber().user;
  }
  if (!listener) return;
  told_.site = site;
  telling = true;
  listener(user, kDriverDomain, call_, &told_);
  telling = false;
}

void load_injection() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const path = std::getenv("CUDA_INJECTION64_PATH");
    if (!path || !*path) return;
    void* const library = dlopen(path, RTLD_NOW);
    const auto begin = library ? reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")) : nullptr;
    if (begin)
      begin();
    else
      Device::get().say(fmt::format("CUDA_INJECTION64_PATH: {} cannot be loaded", path));
  });
}

}  // namespace assay::standin

using namespace assay::standin;  // NOLINT(google-build-using-namespace): the C functions stand outside it

ASSAY_CUDA int cuptiSubscribe(void** made, Listener listener, void* user) {
  const std::lock_guard lock(subscriber().mutex);
  if (subscriber().listener) return kProfilingBusy;
  subscriber().listener = listener, subscriber().user = user;
  return *made = &subscriber(), kProfilingSuccess;
}
ASSAY_CUDA int cuptiUnsubscribe(void*) {
  const std::lock_guard lock(subscriber().mutex);
  subscriber().listener = nullptr, subscriber().calls.clear();
  return kProfilingSuccess;
}
ASSAY_CUDA int cuptiEnableCallback(uint32_t on, void*, uint32_t domain, uint32_t call) {
  const std::lock_guard lock(subscriber().mutex);
  if (domain != kDriverDomain) return kProfilingSuccess;
  if (on)
    subscriber().calls.insert(call);
  else
    subscriber().calls.erase(call);
  return kProfilingSuccess;
}
