// Sums of rows, checked on the host: a program of the CUDA runtime as one writes it.
//   nvcc -cudart shared -lineinfo -o row_sums row_sums.cu && assay run -- ./row_sums
// ./row_sums race   leaves out a barrier; past   reads a row behind the last
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

struct Rows {
  const float* x;
  float* sums;
  int columns;
  bool careless;
  int first;
};

__global__ void row_sums(Rows rows) {
  __shared__ float parts[128];
  const float* row = rows.x + (blockIdx.x + rows.first) * rows.columns;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < rows.columns; i += blockDim.x) sum += row[i];
  parts[threadIdx.x] = sum;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (!rows.careless) __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) rows.sums[blockIdx.x] = parts[0];
}

static void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char** argv) {
  const char* const fault = argc > 1 ? argv[1] : "none";
  constexpr int count = 5, columns = 1000;
  std::vector<float> x(count * columns), sums(count);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) - 8.0f;
  Rows rows{nullptr, nullptr, columns, std::strcmp(fault, "race") == 0, std::strcmp(fault, "past") == 0};
  float* on_device = nullptr;
  check(cudaMalloc(&on_device, x.size() * sizeof(float)));
  check(cudaMalloc(&rows.sums, count * sizeof(float)));
  check(cudaMemcpy(on_device, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice));
  rows.x = on_device;
  row_sums<<<count, 128>>>(rows);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  check(cudaMemcpy(sums.data(), rows.sums, count * sizeof(float), cudaMemcpyDeviceToHost));
  for (int r = 0; r < count; ++r) {
    float expected = 0.0f;
    for (int i = 0; i < columns; ++i) expected += x[static_cast<size_t>(r * columns + i)];
    if (std::fabs(sums[static_cast<size_t>(r)] - expected) > 0.5f) {
      std::printf("row %d: %g instead of %g\n", r, sums[static_cast<size_t>(r)], expected);
      return 1;
    }
  }
  std::printf("%d sums are right\n", count);
  check(cudaFree(on_device));
  check(cudaFree(rows.sums));
  return 0;
}
