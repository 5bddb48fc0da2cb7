// What a program may ask of the watch itself: for compilers whose PTX never comes to the driver as text
// (python/assay/watch.py).
#include <nlohmann/json.hpp>
#include <string>

#include "src/preload/watched_process.h"

#define ASSAY_OWN extern "C" __attribute__((visibility("default")))

using namespace assay::preload;  // NOLINT(google-build-using-namespace): the C functions stand outside it

/// PTX text with the watch in it; valid until the thread's next call. `marks_cold`: it will be compiled by a
/// ptxas of CUDA 13.0 or later (WatchOptions::marks_cold_code); `own_registers`: WatchOptions.
ASSAY_OWN const char* assay_watch_ptx(const char* text, int marks_cold, int own_registers) {
  thread_local std::string made;
  made = WatchedProcess::get().watched(text, "module", marks_cold != 0, own_registers);
  return made.c_str();
}
/// Before a launch, in the context that it is launched in. The driver is opened where it was not yet.
ASSAY_OWN void assay_watch_launching() {
  static const auto make_known =
      reinterpret_cast<WatchedProcess::Register>(next_function("cuMemHostRegister_v2"));
  WatchedProcess::get().launching(make_known);
}
/// After what waits for the device: tells of new births on standard error.
ASSAY_OWN void assay_watch_look() {
  WatchedProcess::get().look();
}
/// All births and what was watched, as JSON; valid until the thread's next call.
ASSAY_OWN const char* assay_watch_result() {
  thread_local std::string made;
  made = WatchedProcess::get().result().dump();
  return made.c_str();
}
