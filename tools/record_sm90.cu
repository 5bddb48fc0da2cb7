// Records what one GPU computes for the inputs of recorded_inputs.h: tensor-core sums at the edges of their
// rule and the approximate instructions. The tests compare the machine's arithmetic with these files.
//
//   nvcc -std=c++20 -arch=sm_90 -O2 -I . -o record tools/record_sm90.cu && ./record DIR && gzip -9 -n
//   DIR/*.bin
//
// writes DIR/mma_NAME.bin per form and DIR/approximate.bin: little-endian words: digest of the inputs (low,
// high), the number of result words, then the results. mma: D[16][8] row-major per case. approximate: one
// block of kArguments results per instruction, in the order of kInstructions.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/recorded_inputs.h"

using namespace assay::recorded;

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    cudaError_t e = (call);                                                                             \
    if (e != cudaSuccess) std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)), std::exit(1); \
  } while (0)

// Registers in the fragment order of the PTX ISA (mma.m16n8kK), one warp per case: a[r][lane], b[r][lane], c,
// d[4][lane].
template <int kForm, int kA, int kB>
__global__ void run_mma(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d) {
  const int lane = threadIdx.x;
  uint32_t ra[4], rb[2], rc[4], rd[4];
  for (int r = 0; r < kA; r++) ra[r] = a[(blockIdx.x * kA + r) * 32 + lane];
  for (int r = 0; r < kB; r++) rb[r] = b[(blockIdx.x * kB + r) * 32 + lane];
  for (int r = 0; r < 4; r++) rc[r] = c[(blockIdx.x * 4 + r) * 32 + lane];
#define D4 "=r"(rd[0]), "=r"(rd[1]), "=r"(rd[2]), "=r"(rd[3])
#define C4 "r"(rc[0]), "r"(rc[1]), "r"(rc[2]), "r"(rc[3])
#define K_LARGE(form)                                                                                \
  asm volatile("mma.sync.aligned." form " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" \
               : D4                                                                                  \
               : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]), C4)
#define K_SMALL(form)                                                                    \
  asm volatile("mma.sync.aligned." form " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};" \
               : D4                                                                      \
               : "r"(ra[0]), "r"(ra[1]), "r"(rb[0]), C4)
  if constexpr (kForm == 0) K_LARGE("m16n8k16.row.col.f32.bf16.bf16.f32");
  if constexpr (kForm == 1) K_LARGE("m16n8k16.row.col.f32.f16.f16.f32");
  if constexpr (kForm == 2) K_LARGE("m16n8k8.row.col.f32.tf32.tf32.f32");
  if constexpr (kForm == 3) K_SMALL("m16n8k8.row.col.f32.bf16.bf16.f32");
  if constexpr (kForm == 4) K_SMALL("m16n8k8.row.col.f32.f16.f16.f32");
  if constexpr (kForm == 5) K_SMALL("m16n8k4.row.col.f32.tf32.tf32.f32");
  for (int r = 0; r < 4; r++) d[(blockIdx.x * 4 + r) * 32 + lane] = rd[r];
}

const char* const kInstructions[] = {"ex2.approx.ftz.f32", "ex2.approx.f32",       "rcp.approx.ftz.f32",
                                     "rcp.approx.f32",     "rsqrt.approx.ftz.f32", "rsqrt.approx.f32",
                                     "lg2.approx.ftz.f32", "lg2.approx.f32",       "sqrt.approx.ftz.f32",
                                     "sqrt.approx.f32"};
constexpr int kArguments = 32768;

__global__ void run_approximate(const uint32_t* x, uint32_t* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = __uint_as_float(x[i]);
  float r;
  int block = 0;
#define ONE(form)                                   \
  asm volatile(form " %0, %1;" : "=f"(r) : "f"(v)); \
  y[block++ * kArguments + i] = __float_as_uint(r);
  ONE("ex2.approx.ftz.f32")
  ONE("ex2.approx.f32")
  ONE("rcp.approx.ftz.f32")
  ONE("rcp.approx.f32")
  ONE("rsqrt.approx.ftz.f32")
  ONE("rsqrt.approx.f32")
  ONE("lg2.approx.ftz.f32") ONE("lg2.approx.f32") ONE("sqrt.approx.ftz.f32") ONE("sqrt.approx.f32")
}

void write(const std::string& path, uint64_t inputs, const std::vector<uint32_t>& results) {
  std::FILE* f = std::fopen(path.c_str(), "wb");
  if (!f) std::fprintf(stderr, "%s: cannot write\n", path.c_str()), std::exit(1);
  const uint32_t head[3] = {static_cast<uint32_t>(inputs), static_cast<uint32_t>(inputs >> 32),
                            static_cast<uint32_t>(results.size())};
  std::fwrite(head, 4, 3, f);
  std::fwrite(results.data(), 4, results.size(), f);
  std::fclose(f);
}

uint32_t* upload(const std::vector<uint32_t>& v) {
  uint32_t* p;
  CHECK(cudaMalloc(&p, v.size() * 4));
  CHECK(cudaMemcpy(p, v.data(), v.size() * 4, cudaMemcpyHostToDevice));
  return p;
}

// Element (row, col) of A held by `lane` in register r, half h; tf32 has one element per register.
void place_a(const MmaForm& f, const MmaCase& m, int r, int lane, uint32_t* word) {
  const int g = lane / 4, t = lane % 4, row = g + 8 * (r & 1);
  if (f.tf32) {
    *word = m.a[row * f.k + t + 4 * (r >> 1)];
    return;
  }
  const int col = 2 * t + 8 * (r >> 1);
  *word = m.a[row * f.k + col] | m.a[row * f.k + col + 1] << 16;
}
void place_b(const MmaForm& f, const MmaCase& m, int r, int lane, uint32_t* word) {
  const int g = lane / 4, t = lane % 4;
  if (f.tf32) {
    *word = m.b[(t + 4 * r) * 8 + g];
    return;
  }
  const int k = 2 * t + 8 * r;
  *word = m.b[k * 8 + g] | m.b[(k + 1) * 8 + g] << 16;
}

void record_mma(int index, const std::string& folder) {
  const MmaForm& f = kMmaForms[index];
  const int na = index < 3 ? 4 : 2, nb = index < 3 ? 2 : 1;
  std::vector<uint32_t> a(f.cases * na * 32), b(f.cases * nb * 32), c(f.cases * 128), d(f.cases * 128),
      rows(f.cases * 128);
  uint64_t h = digest(nullptr, 0);
  for (int i = 0; i < f.cases; i++) {
    const MmaCase m = draw_mma(f, i);
    h = digest(m.c.data(), m.c.size(), digest(m.b.data(), m.b.size(), digest(m.a.data(), m.a.size(), h)));
    for (int lane = 0; lane < 32; lane++) {
      for (int r = 0; r < na; r++) place_a(f, m, r, lane, &a[(i * na + r) * 32 + lane]);
      for (int r = 0; r < nb; r++) place_b(f, m, r, lane, &b[(i * nb + r) * 32 + lane]);
      for (int r = 0; r < 4; r++)
        c[(i * 4 + r) * 32 + lane] = m.c[(lane / 4 + 8 * (r >> 1)) * 8 + 2 * (lane % 4) + (r & 1)];
    }
  }
  uint32_t *pa = upload(a), *pb = upload(b), *pc = upload(c), *pd = upload(d);
  switch (index) {
    case 0:
      run_mma<0, 4, 2><<<f.cases, 32>>>(pa, pb, pc, pd);
      break;
    case 1:
      run_mma<1, 4, 2><<<f.cases, 32>>>(pa, pb, pc, pd);
      break;
    case 2:
      run_mma<2, 4, 2><<<f.cases, 32>>>(pa, pb, pc, pd);
      break;
    case 3:
      run_mma<3, 2, 1><<<f.cases, 32>>>(pa, pb, pc, pd);
      break;
    case 4:
      run_mma<4, 2, 1><<<f.cases, 32>>>(pa, pb, pc, pd);
      break;
    default:
      run_mma<5, 2, 1><<<f.cases, 32>>>(pa, pb, pc, pd);
      break;
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(d.data(), pd, d.size() * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < f.cases; i++)
    for (int lane = 0; lane < 32; lane++)
      for (int r = 0; r < 4; r++)
        rows[i * 128 + (lane / 4 + 8 * (r >> 1)) * 8 + 2 * (lane % 4) + (r & 1)] = d[(i * 4 + r) * 32 + lane];
  write(folder + "/mma_" + f.name + ".bin", h, rows);
  std::printf("%s: %d cases, inputs %016llx, results %016llx\n", f.name, f.cases,
              static_cast<unsigned long long>(h),
              static_cast<unsigned long long>(digest(rows.data(), rows.size())));
}

int main(int argc, char** argv) {
  if (argc != 2) std::fprintf(stderr, "usage: record DIR\n"), std::exit(2);
  for (int i = 0; i < static_cast<int>(kMmaForms.size()); i++) record_mma(i, argv[1]);
  const std::vector<uint32_t> x = draw_arguments(kArguments);
  constexpr int kCount = sizeof(kInstructions) / sizeof(*kInstructions);
  std::vector<uint32_t> y(kCount * kArguments);
  uint32_t *px = upload(x), *py = upload(y);
  run_approximate<<<kArguments / 256, 256>>>(px, py);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(y.data(), py, y.size() * 4, cudaMemcpyDeviceToHost));
  write(std::string(argv[1]) + "/approximate.bin", digest(x.data(), x.size()), y);
  for (int i = 0; i < kCount; i++)
    std::printf("%s: results %016llx\n", kInstructions[i],
                static_cast<unsigned long long>(digest(&y[i * kArguments], kArguments)));
}
