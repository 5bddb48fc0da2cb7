// A ring of places in shared memory between warps that fill them and warps that use them: one mbarrier says
// that a place is full, one that it is empty again. The n-th use of the ring is place n % places, round n /
// places; a round ends one phase of each barrier (PTX ISA 9.7.13.15.5, "Phase of the mbarrier object").
#pragma once
#include "hopper_instruction.cuh"

template <int places>
struct Ring {
  u64 full[places], empty[places];

  // By one thread, before the block meets. `fillers`, `users`: arrivals that a phase takes.
  __device__ void init(int fillers, int users) {
    for (int i = 0; i < places; ++i) init_barrier(&full[i], fillers), init_barrier(&empty[i], users);
  }
  __device__ __forceinline__ void wait_until_full(int use) {
    while (!try_wait(&full[use % places], u32(use / places) & 1)) {
    }
  }
  // Passes at once in the first round: the phase before the first one has ended.
  __device__ __forceinline__ void wait_until_empty(int use) {
    while (!try_wait(&empty[use % places], (u32(use / places) & 1) ^ 1)) {
    }
  }
  // By one lane of a warp, whose lanes' accesses it speaks for.
  __device__ __forceinline__ void filled(int use, int lane) { tell(&full[use % places], lane); }
  __device__ __forceinline__ void used(int use, int lane) { tell(&empty[use % places], lane); }

 private:
  static __device__ __forceinline__ void tell(u64* barrier, int lane) {
    __syncwarp();
    if (lane == 0) arrive(barrier);
  }
};
