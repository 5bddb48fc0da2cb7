// What a program that is watched gives birth to: one kernel for each kind, each on a line of its own.
#include <cstdio>
#include <cstring>

__global__ void divide(float* x) {
  x[threadIdx.x] = 1 / x[threadIdx.x];
}
__global__ void subtract(float* x) {
  const float large = x[threadIdx.x] * 3e38f;
  x[threadIdx.x] = large - large;
}
__global__ void pass_on(float* x) {
  x[threadIdx.x] = x[threadIdx.x] * 2 + 1;
}

int main(int, char** argv) {
  float host[64], *x = nullptr;
  for (int i = 0; i < 64; ++i) host[i] = static_cast<float>(i);
  if (std::strcmp(argv[1], "clean") == 0)
    for (float& y : host) y = 0.5f;
  if (std::strcmp(argv[1], "input") == 0) host[7] = 1e30f * 1e30f;
  if (cudaMalloc(&x, sizeof host) != cudaSuccess) return 2;
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  pass_on<<<1, 64>>>(x);
  if (std::strcmp(argv[1], "births") == 0) {
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    divide<<<1, 64>>>(x);
    cudaDeviceSynchronize();
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    subtract<<<1, 64>>>(x);
  }
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%g %g\n", host[1], host[40]);
  return cudaFree(x) != cudaSuccess;
}
