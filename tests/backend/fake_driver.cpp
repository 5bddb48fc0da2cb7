// A driver library that executes two entries on the host, so that the CUDA backend can be tested without a
// GPU:
//   add(u64 from, u64 to, s32 count, f32 term)   to[i] = from[i] + term
//   bad(...)                                      an illegal address, noticed when the host waits
//   crash(...)                                    the driver itself dies
// Launches of any other entry are listed by name and do nothing.
// FAKE_DRIVER="cuInit=100" makes the named function return that error; devices=0 hides the GPU.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>

namespace {

std::map<uint64_t, size_t> allocations;
std::string last_ptx, launched;
std::set<std::string> others;
int illegal_address = 0;  // lasts as long as the process
int contexts = 0, launches = 0;

int planned(const char* function) {
  const char* plan = std::getenv("FAKE_DRIVER");
  const std::string key = std::string(function) + "=";
  const char* at = plan ? std::strstr(plan, key.c_str()) : nullptr;
  return at ? std::atoi(at + key.size()) : 0;
}

int status(const char* function) {
  const int error = planned(function);
  return error ? error : illegal_address;
}

}  // namespace

extern "C" {

int fake_allocations() {
  return static_cast<int>(allocations.size());
}
int fake_contexts() {
  return contexts;
}
int fake_restart() {
  return illegal_address = 0;
}
int fake_launches() {
  return launches;
}
const char* fake_last_ptx() {
  return last_ptx.c_str();
}

const char* fake_launched() {
  return launched.c_str();
}

int cuInit(unsigned) {
  return planned("cuInit");
}
int cuDriverGetVersion(int* version) {
  return *version = 13000, 0;
}
int cuDeviceGetCount(int* count) {
  return *count = std::getenv("FAKE_DRIVER") && std::strstr(std::getenv("FAKE_DRIVER"), "devices=0") ? 0 : 1,
         0;
}
int cuDeviceGet(int* device, int) {
  return *device = 0, planned("cuDeviceGet");
}
int cuDeviceGetName(char* name, int length, int) {
  return std::snprintf(name, static_cast<size_t>(length), "Fake GPU"), 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  return *value = attribute == 75 ? 9 : 0, 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  return *bytes = size_t{3} << 29, 0;
}
int cuCtxCreate_v2(void** context, unsigned, int) {
  return *context = &contexts, ++contexts, planned("cuCtxCreate");
}
int cuCtxDestroy_v2(void*) {
  return allocations.clear(), 0;
}
int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void** values) {
  last_ptx = static_cast<const char*>(image);
  *module = &last_ptx;
  if (planned("cuModuleLoadDataEx"))
    std::snprintf(static_cast<char*>(values[0]), 100,
                  "ptxas line 7; error : Unknown opcode\nptxas fatal : Aborted\n");
  return status("cuModuleLoadDataEx");
}
int cuModuleGetFunction(const char** function, void*, const char* name) {
  *function = others.insert(name).first->c_str();
  for (const char* known : {"add", "bad", "crash"})
    if (std::strcmp(name, known) == 0) *function = known;
  return status("cuModuleGetFunction");
}
int cuFuncSetAttribute(const char*, int, int) {
  return status("cuFuncSetAttribute");
}
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  if (const int error = status("cuMemAlloc")) return error;
  if (bytes == 0) return 1;
  *pointer = reinterpret_cast<uint64_t>(std::malloc(bytes));
  allocations[*pointer] = bytes;
  return 0;
}
int cuMemFree_v2(uint64_t pointer) {
  if (allocations.erase(pointer)) std::free(reinterpret_cast<void*>(pointer));
  return 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), status("cuMemcpyHtoD");
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), status("cuMemcpyDtoH");
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
  return std::memset(reinterpret_cast<void*>(to), value, bytes), status("cuMemsetD8");
}
int cuLaunchKernel(const char* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void** parameters, void**) {
  if (const int error = status("cuLaunchKernel")) return error;
  ++launches;
  if (const auto other = others.find(function); other != others.end() && other->c_str() == function)
    return launched += *other + "\n", 0;
  if (std::strcmp(function, "crash") == 0) std::raise(SIGKILL);
  if (std::strcmp(function, "bad") == 0) return illegal_address = 700, 0;
  const auto* from = *static_cast<const float**>(parameters[0]);
  auto* to = *static_cast<float**>(parameters[1]);
  const int count = *static_cast<int*>(parameters[2]);
  for (int i = 0; i < count; ++i) to[i] = from[i] + *static_cast<float*>(parameters[3]);
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  return *event = &launches, 0;
}
int cuEventDestroy_v2(void*) {
  return 0;
}
int cuEventRecord(void*, void*) {
  return status("cuEventRecord");
}
int cuEventQuery(void*) {
  return status("cuEventQuery");
}
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  return *milliseconds = 2.0f, 0;
}
int cuGetErrorName(int error, const char** text) {
  return *text = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                 : error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY"
                              : "CUDA_ERROR_OTHER",
         0;
}
int cuGetErrorString(int, const char** text) {
  return *text = "as the driver explains it", 0;
}

}  // extern "C"
