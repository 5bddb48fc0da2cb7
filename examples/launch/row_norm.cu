// Normalises rows: what a launch file is for. The arguments are a struct by value, as many kernels have them.
struct RowNorm {
  const float* x;  // [rows, columns]
  float* y;        // likewise
  float* scale;    // [rows]
  int columns;
  float epsilon;
};

extern "C" __global__ void row_norm(RowNorm p) {
  __shared__ float sums[32];
  const float* x = p.x + static_cast<long long>(blockIdx.x) * p.columns;
  float* y = p.y + static_cast<long long>(blockIdx.x) * p.columns;
  float sum = 0;
  for (int i = threadIdx.x; i < p.columns; i += blockDim.x) sum = fmaf(x[i], x[i], sum);
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) total += sums[warp];
  const float scale = rsqrtf(total / p.columns + p.epsilon);
  if (threadIdx.x == 0) p.scale[blockIdx.x] = scale;
  for (int i = threadIdx.x; i < p.columns; i += blockDim.x) y[i] = x[i] * scale;
}
