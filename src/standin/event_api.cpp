// Events, of the runtime and of the driver ("CUDA Driver API", "Event Management"): whatever stands before
// one is done when it is recorded.
#include <chrono>

#include "src/standin/device.h"

#define ASSAY_CUDA extern "C" __attribute__((visibility("default")))

using namespace assay::standin;  // NOLINT(google-build-using-namespace): the C functions stand outside it

ASSAY_CUDA int cudaEventCreate(void** event) {
  *event = new std::chrono::steady_clock::time_point{};
  return kSuccess;
}
ASSAY_CUDA int cudaEventCreateWithFlags(void** event, unsigned) {
  return cudaEventCreate(event);
}
ASSAY_CUDA int cudaEventDestroy(void* event) {
  delete static_cast<std::chrono::steady_clock::time_point*>(event);
  return kSuccess;
}
ASSAY_CUDA int cudaEventRecord(void* event, void*) {
  *static_cast<std::chrono::steady_clock::time_point*>(event) = std::chrono::steady_clock::now();
  return kSuccess;
}
ASSAY_CUDA int cudaEventRecordWithFlags(void* event, void* stream, unsigned) {
  return cudaEventRecord(event, stream);
}
ASSAY_CUDA int cudaEventSynchronize(void*) {
  return Device::get().last(false);
}
ASSAY_CUDA int cudaEventQuery(void*) {
  return Device::get().last(false);
}
ASSAY_CUDA int cudaEventElapsedTime(float* milliseconds, void* from, void* to) {
  using Time = std::chrono::steady_clock::time_point;
  *milliseconds =
      std::chrono::duration<float, std::milli>(*static_cast<Time*>(to) - *static_cast<Time*>(from)).count();
  return kSuccess;
}
ASSAY_CUDA int cudaEventElapsedTime_v2(float* milliseconds, void* from, void* to) {
  return cudaEventElapsedTime(milliseconds, from, to);
}

ASSAY_CUDA int cuEventCreate(void** event, unsigned) {
  return cudaEventCreate(event);
}
ASSAY_CUDA int cuEventDestroy_v2(void* event) {
  return cudaEventDestroy(event);
}
ASSAY_CUDA int cuEventRecord(void* event, void* stream) {
  return cudaEventRecord(event, stream);
}
ASSAY_CUDA int cuEventSynchronize(void* event) {
  return cudaEventSynchronize(event);
}
ASSAY_CUDA int cuEventQuery(void* event) {
  return cudaEventQuery(event);
}
ASSAY_CUDA int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  return cudaEventElapsedTime(milliseconds, from, to);
}
