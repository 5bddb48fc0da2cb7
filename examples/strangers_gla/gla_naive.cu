// Gated linear attention, one token after the other: one thread per value column, the state in registers and
// local memory, everything in fp32. Knows nothing of assay.
//   S_t = diag(exp(g_t)) S_{t-1} + k_t v_t^T        o_t = scale * S_t^T q_t
// q, k, g [B,T,H,K]; v, o [B,T,H,V]; h0, ht [N,H,K,V]. cu_seqlens [N+1] (or null): packed sequences, B = 1.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int kMaxK = 128;

__device__ float load(const float* p) {
  return *p;
}
__device__ float load(const __half* p) {
  return __half2float(*p);
}
__device__ float load(const __nv_bfloat16* p) {
  return __bfloat162float(*p);
}
__device__ void store(float* p, float x) {
  *p = x;
}
__device__ void store(__half* p, float x) {
  *p = __float2half_rn(x);
}
__device__ void store(__nv_bfloat16* p, float x) {
  *p = __float2bfloat16_rn(x);
}

// grid: (ceil(V / blockDim.x), H, N); shared memory: 3 K floats.
template <typename T>
__device__ void gla(const T* q, const T* k, const T* v, const float* g, const float* h0, T* o, float* ht,
                    const long long* cu_seqlens, int length, int H, int K, int V, float scale) {
  extern __shared__ float row[];
  float *qs = row, *ks = row + K, *ws = row + 2 * K;
  const int column = blockIdx.x * blockDim.x + threadIdx.x, head = blockIdx.y, sequence = blockIdx.z;
  const long long first = cu_seqlens ? cu_seqlens[sequence] : (long long)sequence * length;
  const long long last = cu_seqlens ? cu_seqlens[sequence + 1] : first + length;
  const long long state = ((long long)sequence * H + head) * K * V;

  float S[kMaxK];
  for (int i = 0; i < K; ++i) S[i] = h0 && column < V ? h0[state + (long long)i * V + column] : 0.0f;

  for (long long t = first; t < last; ++t) {
    const long long token = t * H + head;
    for (int i = threadIdx.x; i < K; i += blockDim.x) {
      qs[i] = load(q + token * K + i) * scale;
      ks[i] = load(k + token * K + i);
      ws[i] = g ? __expf(g[token * K + i]) : 1.0f;
    }
    __syncthreads();
    if (column < V) {
      const float value = load(v + token * V + column);
      float sum = 0;
      for (int i = 0; i < K; ++i) {
        S[i] = S[i] * ws[i] + ks[i] * value;
        sum += S[i] * qs[i];
      }
      store(o + token * V + column, sum);
    }
    __syncthreads();
  }
  if (ht && column < V)
    for (int i = 0; i < K; ++i) ht[state + (long long)i * V + column] = S[i];
}

#define ENTRY(NAME, T)                                                                                       \
  extern "C" __global__ void NAME(const T* q, const T* k, const T* v, const float* g, const float* h0, T* o, \
                                  float* ht, const long long* cu_seqlens, int length, int H, int K, int V,   \
                                  float scale) {                                                             \
    gla(q, k, v, g, h0, o, ht, cu_seqlens, length, H, K, V, scale);                                          \
  }

ENTRY(gla_naive_bf16, __nv_bfloat16)
ENTRY(gla_naive_fp16, __half)
ENTRY(gla_naive_fp32, float)
