// Single instructions of sm_90a (PTX ISA 8.0 and newer) that C++ has no name for. As in instruction.cuh, a
// line in here counts as the line that calls it. Closing braces are indented: alone in a line one would be a
// function's end.
#pragma once
#include "operand.cuh"

// --- mbarriers (PTX ISA 9.7.13.15, "mbarrier") ---
using u64 = unsigned long long;

__device__ __forceinline__ void init_barrier(u64* barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}
// Makes what init_barrier wrote visible to the copy engine; then the block meets at a barrier.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Arrives, and lets the phase end no earlier than `bytes` more have been copied.
__device__ __forceinline__ void arrive_expecting(u64* barrier, u32 bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
// Whether the phase of that parity has ended; waits a while for it.
__device__ __forceinline__ bool try_wait(u64* barrier, u32 parity) {
  u32 ended;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n }"
      : "=r"(ended)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return ended != 0;
}

// --- copies by tensor map (PTX ISA 9.7.9.27, "cp.async.bulk.tensor") ---
// A kernel parameter, 128 bytes that the driver writes.
struct __align__(64) TensorMap {
  char bytes[128];
};
// A box of a tensor of three axes, innermost first, to shared memory; its bytes count at the barrier.
__device__ __forceinline__ void copy_box(char* to, const TensorMap* map, int x, int y, int z, u64* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier))
      : "memory");
}
// Orders a thread's writes of shared memory before reads of it by tensor cores and copies (PTX ISA 8.6.1,
// "Async proxy"); a barrier follows.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Barrier `name` of the first `threads` that come to it.
template <int name, int threads>
__device__ __forceinline__ void meet() {
  asm volatile("barrier.sync %0, %1;" ::"n"(name), "n"(threads) : "memory");
}

// --- products of a warpgroup (PTX ISA 9.7.15, "wgmma") ---
// What was written to registers of the next products, before them.
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// The same of operands, and of sums that products add to: what makes them stays before it.
template <int count>
__device__ __forceinline__ void begin_products(OperandBf16 (&operands)[count]) {
#pragma unroll
  for (OperandBf16& a : operands)
    asm volatile("" : "+r"(a.r[0]), "+r"(a.r[1]), "+r"(a.r[2]), "+r"(a.r[3])::"memory");
  begin_products();
}
template <int n, int count>
__device__ __forceinline__ void begin_products(Accumulator (&sums)[n], OperandBf16 (&operands)[count]) {
#pragma unroll
  for (Accumulator& d : sums)
    asm volatile("" : "+f"(d.r[0]), "+f"(d.r[1]), "+f"(d.r[2]), "+f"(d.r[3])::"memory");
  begin_products(operands);
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int pending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// A warpgroup's registers of a thread from here on, fewer or more than the kernel was launched with (PTX ISA
// 9.7.19.5, "setmaxnreg"): multiples of 8 whose sum over the warpgroups is what they had.
template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

#define SUMS_4(d, i) "+f"(d[i].r[0]), "+f"(d[i].r[1]), "+f"(d[i].r[2]), "+f"(d[i].r[3])
#define SUMS_16(d, i) SUMS_4(d, i), SUMS_4(d, i + 1), SUMS_4(d, i + 2), SUMS_4(d, i + 3)
#define PLACES_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define PLACES_32 PLACES_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"

// d = A B, or d += A B where `adds`: 64 rows x 8 n columns x 16 places; d[i] are columns 8 i .. 8 i + 7 of
// the warp's 16 rows. A and B by their descriptors (warpgroup.cuh); `b_turned`: B's places lie row by row.
template <int b_turned>
__device__ __forceinline__ void wgmma_bf16(Accumulator (&d)[8], u64 a, u64 b, bool adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" PLACES_32 "}, %32, %33, p, 1, 1, 0, %35;\n }"
      : SUMS_16(d, 0), SUMS_16(d, 4)
      : "l"(a), "l"(b), "r"(int(adds)), "n"(b_turned));
}
template <int b_turned>
__device__ __forceinline__ void wgmma_bf16(Accumulator (&d)[4], u64 a, u64 b, bool adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" PLACES_16 "}, %16, %17, p, 1, 1, 0, %19;\n }"
      : SUMS_16(d, 0)
      : "l"(a), "l"(b), "r"(int(adds)), "n"(b_turned));
}
// The same with A in registers: the warp's 16 rows as an operand.
template <int b_turned>
__device__ __forceinline__ void wgmma_bf16(Accumulator (&d)[8], const OperandBf16& a, u64 b, bool adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" PLACES_32
      "}, {%32,%33,%34,%35}, %36, p, 1, 1, %38;\n }"
      : SUMS_16(d, 0), SUMS_16(d, 4)
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b), "r"(int(adds)), "n"(b_turned));
}
template <int b_turned>
__device__ __forceinline__ void wgmma_bf16(Accumulator (&d)[4], const OperandBf16& a, u64 b, bool adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" PLACES_16
      "}, {%16,%17,%18,%19}, %20, p, 1, 1, %22;\n }"
      : SUMS_16(d, 0)
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b), "r"(int(adds)), "n"(b_turned));
}

// Four 8 x 8 matrices of 16-bit elements to shared memory; each lane gives the address of one row of 16 bytes
// (PTX ISA 9.7.14.5.16, "stmatrix").
__device__ __forceinline__ void store_matrices(char* row, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(row)),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
