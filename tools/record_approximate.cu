// Records the digests of approximate_inputs.h on one GPU, all inputs of every form.
//
//   nvcc -std=c++20 -gencode arch=compute_90,code=compute_90 -O2 -I . -o record tools/record_approximate.cu
//   ./record approximate_digests.bin && gzip -9 -n approximate_digests.bin
//
// The PTX is compiled by the driver. Output: little-endian words, the forms' blocks in order. 16-bit forms
// are executed in both halves of a packed register too, and have to agree.
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tools/approximate_inputs.h"

using namespace assay::recorded;

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    cudaError_t e = (call);                                                                             \
    if (e != cudaSuccess) std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)), std::exit(1); \
  } while (0)

#define WORD(number, form)                                                 \
  if constexpr (kForm == number) {                                         \
    float r;                                                               \
    asm volatile(form " %0, %1;" : "=f"(r) : "f"(__uint_as_float(index))); \
    return __float_as_uint(r);                                             \
  }
#define HIGH(number, form)                                                                             \
  if constexpr (kForm == number) {                                                                     \
    const unsigned long long x = static_cast<unsigned long long>(index) << 32 | hashed(index);         \
    unsigned long long r;                                                                              \
    asm volatile("{.reg .f64 x, r; mov.b64 x, %1; " form " r, x; mov.b64 %0, r;}" : "=l"(r) : "l"(x)); \
    return condensed(r);                                                                               \
  }
#define PAIR(number, form)                                                                              \
  if constexpr (kForm == number) {                                                                      \
    const Pair p = drawn_pair(index);                                                                   \
    float r;                                                                                            \
    asm volatile(form " %0, %1, %2;" : "=f"(r) : "f"(__uint_as_float(p.a)), "f"(__uint_as_float(p.b))); \
    return __float_as_uint(r);                                                                          \
  }
#define HALF(number, form)                                                             \
  if constexpr (kForm == number) {                                                     \
    unsigned short r;                                                                  \
    uint32_t both;                                                                     \
    asm volatile(form " %0, %1;" : "=h"(r) : "h"(static_cast<unsigned short>(index))); \
    asm volatile(form "x2 %0, %1;" : "=r"(both) : "r"(index << 16 | index));           \
    if (both != (static_cast<uint32_t>(r) << 16 | r)) __trap();                        \
    return r;                                                                          \
  }

template <int kForm>
__device__ uint32_t result_of(uint32_t index) {
  WORD(0, "rcp.approx.ftz.f32")
  WORD(1, "rcp.approx.f32")
  WORD(2, "rsqrt.approx.ftz.f32")
  WORD(3, "rsqrt.approx.f32")
  WORD(4, "lg2.approx.ftz.f32")
  WORD(5, "lg2.approx.f32")
  WORD(6, "sqrt.approx.ftz.f32")
  WORD(7, "sqrt.approx.f32")
  WORD(8, "sin.approx.ftz.f32")
  WORD(9, "sin.approx.f32")
  WORD(10, "cos.approx.ftz.f32")
  WORD(11, "cos.approx.f32")
  WORD(12, "ex2.approx.ftz.f32")
  WORD(13, "ex2.approx.f32")
  WORD(14, "tanh.approx.f32")
  HIGH(15, "rcp.approx.ftz.f64")
  HIGH(16, "rsqrt.approx.ftz.f64")
  HIGH(17, "rsqrt.approx.f64")
  PAIR(18, "div.approx.ftz.f32")
  PAIR(19, "div.approx.f32")
  PAIR(20, "div.full.ftz.f32")
  PAIR(21, "div.full.f32")
  HALF(22, "ex2.approx.f16")
  HALF(23, "ex2.approx.ftz.bf16")
  HALF(24, "tanh.approx.f16")
  HALF(25, "tanh.approx.bf16")
  return 0;
}

/// One thread block per block of indices.
template <int kForm>
__global__ void digests(uint32_t size, uint32_t* out) {
  uint32_t sum = 0;
  for (uint32_t k = threadIdx.x; k < size; k += blockDim.x) {
    const uint32_t index = blockIdx.x * size + k;
    sum += digest_term(index, result_of<kForm>(index));
  }
  atomicAdd(&out[blockIdx.x], sum);
}

template <int kForm>
void record(std::vector<uint32_t>& all) {
  const Operands operands = kApproximateForms[kForm].operands;
  const auto blocks = static_cast<uint32_t>(index_count(operands) / block_size(operands));
  uint32_t* device;
  CHECK(cudaMalloc(&device, blocks * 4));
  CHECK(cudaMemset(device, 0, blocks * 4));
  digests<kForm><<<blocks, 256>>>(block_size(operands), device);
  CHECK(cudaDeviceSynchronize());
  all.resize(all.size() + blocks);
  CHECK(cudaMemcpy(&all[all.size() - blocks], device, blocks * 4, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device));
  std::printf("%s: %u blocks\n", kApproximateForms[kForm].name, blocks);
}

template <int... kForms>
void record_all(std::vector<uint32_t>& all, std::integer_sequence<int, kForms...>) {
  (record<kForms>(all), ...);
}

int main(int argc, char** argv) {
  if (argc != 2) std::fprintf(stderr, "usage: record FILE\n"), std::exit(2);
  std::vector<uint32_t> all;
  record_all(all, std::make_integer_sequence<int, static_cast<int>(kApproximateForms.size())>{});
  std::FILE* file = std::fopen(argv[1], "wb");
  if (!file) std::fprintf(stderr, "%s: cannot write\n", argv[1]), std::exit(1);
  std::fwrite(all.data(), 4, all.size(), file);
  std::fclose(file);
}
