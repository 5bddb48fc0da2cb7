// Gradients of gla_naive.cu, as plainly as it: fp32 throughout, no tensor cores. Knows nothing of assay.
//   G_t = scale q_t do_t^T + diag(exp(g_{t+1})) G_{t+1}        G_last = .. + dht
//   dq_t = scale S_t do_t      dk_t = G_t v_t      dv_t = G_t^T k_t
//   dg_t = exp(g_t) rowsum(S_{t-1} * G_t)                      dh0 = diag(exp(g_1)) G_1
// q, k, g, dq, dk, dg [B,T,H,K]; v, do, dv [B,T,H,V]; h0, ht, dh0, dht [N,H,K,V]. cu_seqlens [N+1] (or null).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

struct Shape {
  long long first, last, state;  // tokens of the sequence; where its states begin
  int head, heads, K, V;
  __device__ long long token(long long t) const { return t * heads + head; }
};

__device__ Shape shape_of(const long long* cu_seqlens, int length, int H, int K, int V) {
  const int head = blockIdx.y, sequence = blockIdx.z;
  const long long first = cu_seqlens ? cu_seqlens[sequence] : (long long)sequence * length;
  const long long last = cu_seqlens ? cu_seqlens[sequence + 1] : first + length;
  return {first, last, ((long long)sequence * H + head) * K * V, head, H, K, V};
}

// One thread per row i of S and G. grid: (ceil(K / blockDim.x), H, N). `states`: S after every token,
// [tokens,H,K,V]; `G`: [N,H,K,V], zeros.
template <typename T>
__device__ void rows(const T* q, const T* k, const T* v, const float* g, const float* h0, const T* grad_o,
                     const float* dht, float* states, float* G, T* dq, T* dk, float* dg, float* dh0,
                     const long long* cu_seqlens, int length, int H, int K, int V, float scale) {
  const Shape s = shape_of(cu_seqlens, length, H, K, V);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= K) return;
  const long long row = s.state + (long long)i * V;
  for (long long t = s.first; t < s.last; ++t) {
    const long long token = s.token(t);
    const float decay = g ? __expf(g[token * K + i]) : 1.0f, key = load(k + token * K + i);
    float* S = states + (token * K + i) * V;
    const float* before = t > s.first ? states + (s.token(t - 1) * K + i) * V : h0 ? h0 + row : nullptr;
    for (int j = 0; j < V; ++j) S[j] = (before ? before[j] * decay : 0.0f) + key * load(v + token * V + j);
  }
  if (dht)
    for (int j = 0; j < V; ++j) G[row + j] = dht[row + j];
  for (long long t = s.last - 1; t >= s.first; --t) {
    const long long token = s.token(t);
    const float decay = g ? __expf(g[token * K + i]) : 1.0f, query = load(q + token * K + i) * scale;
    const float* S = states + (token * K + i) * V;
    const float* before = t > s.first ? states + (s.token(t - 1) * K + i) * V : h0 ? h0 + row : nullptr;
    float of_q = 0, of_k = 0, of_g = 0;
    for (int j = 0; j < V; ++j) {
      const float cotangent = load(grad_o + token * V + j), sum = G[row + j] + query * cotangent;
      of_q += S[j] * cotangent;
      of_k += sum * load(v + token * V + j);
      const float carried = sum * decay;
      if (before) of_g += before[j] * carried;
      G[row + j] = carried;
    }
    store(dq + token * K + i, of_q * scale);
    store(dk + token * K + i, of_k);
    if (dg) dg[token * K + i] = of_g;
  }
  if (dh0)
    for (int j = 0; j < V; ++j) dh0[row + j] = G[row + j];
}

// One thread per column j of G. grid: (ceil(V / blockDim.x), H, N). `G`: [N,H,K,V], zeros.
template <typename T>
__device__ void columns(const T* q, const T* k, const float* g, const T* grad_o, const float* dht, float* G,
                        T* dv, const long long* cu_seqlens, int length, int H, int K, int V, float scale) {
  const Shape s = shape_of(cu_seqlens, length, H, K, V);
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= V) return;
  float* column = G + s.state + j;
  if (dht)
    for (int i = 0; i < K; ++i) column[(long long)i * V] = dht[s.state + (long long)i * V + j];
  for (long long t = s.last - 1; t >= s.first; --t) {
    const long long token = s.token(t);
    const float cotangent = load(grad_o + token * V + j);
    float of_v = 0;
    for (int i = 0; i < K; ++i) {
      const float sum = column[(long long)i * V] + load(q + token * K + i) * scale * cotangent;
      of_v += sum * load(k + token * K + i);
      column[(long long)i * V] = sum * (g ? __expf(g[token * K + i]) : 1.0f);
    }
    store(dv + token * V + j, of_v);
  }
}

#define ENTRIES(SUFFIX, T)                                                                             \
  extern "C" __global__ void gla_naive_rows_##SUFFIX(                                                  \
      const T* q, const T* k, const T* v, const float* g, const float* h0, const T* grad_o,            \
      const float* dht, float* states, float* G, T* dq, T* dk, float* dg, float* dh0,                  \
      const long long* cu_seqlens, int length, int H, int K, int V, float scale) {                     \
    rows(q, k, v, g, h0, grad_o, dht, states, G, dq, dk, dg, dh0, cu_seqlens, length, H, K, V, scale); \
  }                                                                                                    \
  extern "C" __global__ void gla_naive_columns_##SUFFIX(                                               \
      const T* q, const T* k, const float* g, const T* grad_o, const float* dht, float* G, T* dv,      \
      const long long* cu_seqlens, int length, int H, int K, int V, float scale) {                     \
    columns(q, k, g, grad_o, dht, G, dv, cu_seqlens, length, H, K, V, scale);                          \
  }

ENTRIES(bf16, __nv_bfloat16)
ENTRIES(fp16, __half)
ENTRIES(fp32, float)
