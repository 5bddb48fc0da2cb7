// What programs of the CUDA runtime do beside launching kernels; by name, exit status 0 where it went
// as on a GPU.
#include <cuda.h>

#include <cstdio>
#include <cstring>

__device__ int counter = 5;
__device__ int* behind = &counter;
__device__ int* given;
__device__ int words[64];
__constant__ int table[4] = {1, 2, 3, 4};
__managed__ int seen_by_both = 7;
static int on_host;

__global__ void add(int* x, int by) {
  x[threadIdx.x] += by;
}
__global__ void whole(int* x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(clock64() != 0) + int(gridDim.x);
}

static bool memory() {
  int *x = nullptr, host[64];
  if (cudaMalloc(&x, sizeof host) != cudaSuccess || cudaMemset(x, 0, sizeof host) != cudaSuccess)
    return false;
  add<<<1, 64>>>(x, 3);
  cudaLaunchConfig_t config{};
  config.gridDim = 1, config.blockDim = 64;
  if (cudaLaunchKernelEx(&config, add, x, 4) != cudaSuccess) return false;
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  for (const int y : host)
    if (y != 7) return false;
  cudaPointerAttributes where;
  if (cudaPointerGetAttributes(&where, x + 5) != cudaSuccess || where.type != cudaMemoryTypeDevice)
    return false;
  if (cudaMemcpy(host, x + 1, sizeof host, cudaMemcpyDeviceToHost) != cudaErrorInvalidValue) return false;
  if (cudaGetLastError() != cudaErrorInvalidValue || cudaGetLastError() != cudaSuccess) return false;
  if (cudaMemcpyToSymbol(table, x, sizeof table, sizeof(int)) != cudaErrorInvalidValue) return false;
  return cudaFree(x) == cudaSuccess && cudaFree(x) == cudaErrorInvalidValue;
}

static bool device() {
  cudaDeviceProp is;
  int count = 0, processors = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || cudaGetDeviceProperties(&is, 0) != cudaSuccess)
    return false;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  std::printf("%d.%d %d %zu %s\n", is.major, is.minor, is.multiProcessorCount, is.sharedMemPerBlockOptin,
              is.name);
  return count == 1 && processors == is.multiProcessorCount && is.warpSize == 32 &&
         is.maxThreadsDim[2] == 64 && cudaSetDevice(1) == cudaErrorInvalidDevice;
}

static bool refused() {
  add<<<1, 2000>>>(nullptr, 1);
  return cudaGetLastError() != cudaSuccess;
}

__global__ void count_up() {
  atomicAdd(behind, 1);
  seen_by_both += counter;
}
__global__ void through_table() {
  given[threadIdx.x] = table[threadIdx.x] * 10;
}
__global__ void neighbours() {
  words[threadIdx.x] = threadIdx.x;
  words[(threadIdx.x + 33) % 64] += 1;
}

/// Variables are one per program: what one launch or the host writes, the next one reads.
static bool variables() {
  int x = 0, four[4], *at = nullptr, *memory = nullptr;
  size_t bytes = 0;
  count_up<<<1, 1>>>();
  count_up<<<1, 1>>>();
  if (cudaMemcpyFromSymbol(&x, counter, sizeof x) != cudaSuccess || x != 7) return false;
  if (seen_by_both != 7 + 6 + 7) return false;
  seen_by_both = 1;
  x = 40;
  if (cudaMemcpyToSymbol(counter, &x, sizeof x) != cudaSuccess) return false;
  count_up<<<1, 1>>>();
  if (seen_by_both != 42) return false;
  if (cudaGetSymbolAddress(reinterpret_cast<void**>(&at), counter) != cudaSuccess) return false;
  add<<<1, 1>>>(at, 1);
  if (cudaMemcpy(&x, at, sizeof x, cudaMemcpyDeviceToHost) != cudaSuccess || x != 42) return false;
  const int tail[] = {8, 9};
  if (cudaMemcpyToSymbol(table, tail, sizeof tail, 2 * sizeof(int)) != cudaSuccess) return false;
  if (cudaGetSymbolSize(&bytes, table) != cudaSuccess || bytes != sizeof four) return false;
  if (cudaMalloc(&memory, sizeof four) != cudaSuccess) return false;
  if (cudaMemcpyToSymbol(given, &memory, sizeof memory) != cudaSuccess) return false;
  through_table<<<1, 4>>>();
  if (cudaMemcpy(four, memory, sizeof four, cudaMemcpyDeviceToHost) != cudaSuccess) return false;
  if (four[0] != 10 || four[1] != 20 || four[2] != 80 || four[3] != 90) return false;
  return cudaGetSymbolSize(&bytes, on_host) == cudaErrorInvalidSymbol &&
         cudaFree(at) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue;
}

/// Modules that a program loads itself.
static bool loaded_module() {
  static const char ptx[] =
      ".version 7.0\n.target sm_80\n.address_size 64\n"
      ".global .align 4 .u32 total = 4;\n"
      ".visible .entry more(.param .u32 by) {\n"
      ".reg .u32 %r<3>;\nld.param.u32 %r1, [by];\natom.global.add.u32 %r2, [total], %r1;\nret;\n}\n";
  CUmodule module;
  CUfunction function;
  CUdeviceptr at;
  size_t bytes = 0;
  unsigned x = 0, by = 3;
  void* arguments[] = {&by};
  if (cuInit(0) != CUDA_SUCCESS || cuModuleLoadData(&module, ptx) != CUDA_SUCCESS) return false;
  if (cuModuleGetFunction(&function, module, "more") != CUDA_SUCCESS) return false;
  if (cuModuleGetFunction(&function, module, "less") != CUDA_ERROR_NOT_FOUND) return false;
  if (cuModuleGetGlobal(&at, &bytes, module, "total") != CUDA_SUCCESS || bytes != sizeof x) return false;
  for (int i = 0; i < 2; ++i)
    if (cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, nullptr, arguments, nullptr) != CUDA_SUCCESS)
      return false;
  size_t packed = sizeof by;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &by, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed,
                   CU_LAUNCH_PARAM_END};
  if (cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra) != CUDA_SUCCESS) return false;
  if (cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, nullptr, arguments, extra) != CUDA_ERROR_INVALID_VALUE)
    return false;
  if (cuMemcpyDtoH(&x, at, sizeof x) != CUDA_SUCCESS) return false;
  return x == 4 + 3 * 2 * 3 && cuModuleGetGlobal(&at, &bytes, module, "none") == CUDA_ERROR_NOT_FOUND;
}

static bool variable_race() {
  neighbours<<<1, 64>>>();
  return cudaDeviceSynchronize() == cudaSuccess;
}

// An object of the device's heap: made by one launch, used and freed by later ones.
__device__ int* object;
__global__ void make_object(bool filled) {
  object = static_cast<int*>(malloc(10 * sizeof(int)));
  for (int i = 0; i < 10 && filled; ++i) object[i] = i;
}
__global__ void sum_object(int count, int* to) {
  int sum = 0;
  if (object[0] == 77) return;
  for (int i = 0; i < count; ++i) sum += object[i];
  *to = sum;
}
__global__ void free_object() {
  free(object);
}

static bool heap(const char* fault) {
  int* sum;
  int got = 0;
  if (cudaMalloc(&sum, sizeof got) != cudaSuccess) return false;
  make_object<<<1, 1>>>(std::strcmp(fault, "unwritten") != 0);
  if (std::strcmp(fault, "freed") == 0) free_object<<<1, 1>>>();
  sum_object<<<1, 1>>>(std::strcmp(fault, "past") == 0 ? 11 : 10, sum);
  free_object<<<1, 1>>>();
  if (std::strcmp(fault, "twice") == 0) free_object<<<1, 1>>>();
  if (cudaDeviceSynchronize() != cudaSuccess) return false;
  return cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess && got == 45;
}

__global__ void powers(const float* x, float* to, int count) {
  const int i = threadIdx.x;
  if (i < count) to[i] = expf(x[i]) / expf(x[i]);
}

/// exp(x) / exp(x), where `largest` decides whether an infinity is divided by one.
static bool quotients(float largest) {
  float host[40], *x, *to;
  for (int i = 0; i < 40; ++i) host[i] = i == 33 ? largest : 1;
  if (cudaMalloc(&x, sizeof host) != cudaSuccess || cudaMalloc(&to, sizeof host) != cudaSuccess) return false;
  if (cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice) != cudaSuccess) return false;
  powers<<<1, 64>>>(x, to, 40);
  return cudaMemcpy(host, to, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess && host[0] == 1;
}

/// Doubles, pairs at a time; `whole`: the last element of an odd number too.
__global__ void doubles(const float* x, float* to, int count, bool whole) {
  const int i = 2 * threadIdx.x;
  if (i + 1 < count) to[i] = 2 * x[i], to[i + 1] = 2 * x[i + 1];
  if (whole && i + 1 == count) to[i] = 2 * x[i];
}

static bool tail(const char* how) {
  float host[63] = {}, *x, *to, *other;
  if (cudaMalloc(&x, sizeof host) != cudaSuccess || cudaMalloc(&to, sizeof host) != cudaSuccess) return false;
  if (cudaMalloc(&other, sizeof host) != cudaSuccess) return false;
  if (cudaMemset(x, 0, sizeof host) != cudaSuccess) return false;
  doubles<<<1, 32>>>(x, to, std::strcmp(how, "none") == 0 ? 0 : 63, std::strcmp(how, "whole") == 0);
  if (std::strcmp(how, "later") == 0) doubles<<<1, 32>>>(x + 62, to + 62, 1, true);
  const float* from = to;
  if (std::strcmp(how, "moved") == 0) {
    doubles<<<1, 32>>>(to, other, 63, true);
    from = other;
  } else if (std::strcmp(how, "copied") == 0) {
    if (cudaMemcpy(other, to, sizeof host, cudaMemcpyDeviceToDevice) != cudaSuccess) return false;
    from = other;
  }
  const size_t bytes = sizeof host - (std::strcmp(how, "unread") == 0 ? sizeof(float) : 0);
  return cudaMemcpy(host, from, bytes, cudaMemcpyDeviceToHost) == cudaSuccess;
}

int main(int, char** argv) {
  const char* const step = argv[1];
  if (std::strcmp(step, "memory") == 0) return !memory();
  if (std::strcmp(step, "device") == 0) return !device();
  if (std::strcmp(step, "refused") == 0) return !refused();
  if (std::strcmp(step, "variables") == 0) return !variables();
  if (std::strcmp(step, "variable-race") == 0) return !variable_race();
  if (std::strcmp(step, "loaded-module") == 0) return !loaded_module();
  if (std::strcmp(step, "quotients") == 0) return !quotients(static_cast<float>(std::atof(argv[2])));
  if (std::strcmp(step, "tail") == 0) return !tail(argv[2]);
  if (std::strcmp(step, "heap") == 0) return !heap(argv[2]);
  return 2;
}
