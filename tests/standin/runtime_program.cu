// What programs of the CUDA runtime do beside launching kernels; by name, exit status 0 where it went
// as on a GPU.
#include <cstdio>
#include <cstring>

__device__ int counter;

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
  const int one = 1;
  if (cudaMemcpyToSymbol(counter, &one, sizeof one) != cudaErrorNotSupported) return false;
  add<<<1, 2000>>>(nullptr, 1);
  return cudaGetLastError() != cudaSuccess;
}

__global__ void count_up() {
  atomicAdd(&counter, 1);
}

static bool variable() {
  count_up<<<1, 1>>>();
  return cudaDeviceSynchronize() == cudaSuccess;
}

int main(int, char** argv) {
  const char* const step = argv[1];
  if (std::strcmp(step, "memory") == 0) return !memory();
  if (std::strcmp(step, "device") == 0) return !device();
  if (std::strcmp(step, "refused") == 0) return !refused();
  if (std::strcmp(step, "variable") == 0) return !variable();
  return 2;
}
