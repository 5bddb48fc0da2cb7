// C = A B^T of bf16 by one warp that loads and a warpgroup that multiplies: tensor maps, multicast within a
// cluster of two blocks, a ring of mbarriers, wgmma and a store through shared memory.
#include <cstdint>

namespace {

constexpr int kRows = 128, kColumns = 64, kDepth = 64, kStages = 3, kCluster = 2;
constexpr int kBytesA = kRows * kDepth * 2, kBytesB = kColumns * kDepth * 2;

struct __align__(1024) Stage {
  uint8_t a[kBytesA], b[kBytesB];
};
struct __align__(1024) Memory {
  Stage stages[kStages];
  float c[kRows * kColumns];
  uint64_t full[kStages], empty[kStages];
};

__device__ uint32_t shared(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ uint32_t rank() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ void init(uint64_t* barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(barrier)), "r"(count));
}
__device__ void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@p "
      "bra DONE;\nbra "
      "WAIT;\nDONE:\n}" ::"r"(shared(barrier)),
      "r"(parity)
      : "memory");
}
__device__ void expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ void arrive_at(uint64_t* barrier, uint32_t block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(shared(barrier)),
      "r"(block)
      : "memory");
}
__device__ void load(void* to, const void* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(shared(to)),
      "l"(map), "r"(x), "r"(y), "r"(shared(barrier))
      : "memory");
}
__device__ void load_for_all(void* to, const void* map, int x, int y, uint64_t* barrier, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, "
      "%3}], [%4], %5;" ::"r"(shared(to)),
      "l"(map), "r"(x), "r"(y), "r"(shared(barrier)), "h"(blocks)
      : "memory");
}
__device__ uint64_t descriptor(const void* tile) {
  // 128-byte swizzle, eight rows 1024 bytes apart.
  return uint64_t{1} << 62 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 16 | (shared(tile) & 0x3ffff) >> 4;
}
__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b, int adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,"
      "%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(adds));
}

__device__ void produce(Memory& m, const void* a, const void* b, int row, int column, int steps) {
  const uint32_t me = rank();
  for (int i = 0; i < steps; ++i) {
    const int s = i % kStages;
    wait(&m.empty[s], (i / kStages & 1) ^ 1);
    expect(&m.full[s], kBytesA + kBytesB);
    load(m.stages[s].a, a, i * kDepth, row, &m.full[s]);
    const int part = kColumns / kCluster;
    load_for_all(m.stages[s].b + me * (kBytesB / kCluster), b, i * kDepth,
                 column + static_cast<int>(me) * part, &m.full[s], 3);
  }
}

__device__ void consume(Memory& m, const void* c, int row, int column, int steps) {
  float d[2][32];
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = 0; i < steps; ++i) {
    const int s = i % kStages;
    wait(&m.full[s], i / kStages & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < kDepth / 16; ++k)
      for (int half = 0; half < 2; ++half)
        multiply(d[half], descriptor(m.stages[s].a + half * (kBytesA / 2)) + 2 * k,
                 descriptor(m.stages[s].b) + 2 * k, i + k > 0);
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int half = 0; half < 2; ++half)
      for (float& x : d[half]) asm volatile("" : "+f"(x)::"memory");
    if (thread < kCluster) arrive_at(&m.empty[s], thread);
  }
  for (int half = 0; half < 2; ++half)
    for (int j = 0; j < 32; ++j) {
      const int r = half * 64 + thread / 32 * 16 + thread % 32 / 4 + j / 2 % 2 * 8,
                n = j / 4 * 8 + thread % 4 * 2 + j % 2;
      m.c[r * kColumns + n] = d[half][j];
    }
  asm volatile("fence.proxy.async.shared::cta;\nbarrier.sync 1, 128;" ::: "memory");
  if (thread == 0)
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], "
        "[%3];\ncp.async.bulk.commit_group;\n"
        "cp.async.bulk.wait_group.read 0;" ::"l"(c),
        "r"(column), "r"(row), "r"(shared(m.c))
        : "memory");
}

}  // namespace

struct __align__(64) TensorMap {
  uint8_t bytes[128];
};

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(160)
    gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
         const __grid_constant__ TensorMap c, int depth) {
  extern __shared__ uint8_t raw[];
  Memory& m = *reinterpret_cast<Memory*>((reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024);
  const int row = static_cast<int>(blockIdx.x) * kRows, column = static_cast<int>(blockIdx.y) * kColumns;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) init(&m.full[s], 1), init(&m.empty[s], kCluster);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  const int steps = depth / kDepth;
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) produce(m, &a, &b, row, column, steps);
  } else {
    consume(m, &c, row, column, steps);
  }
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
