// Lanes that exchange values, cooperative-group tiles, barriers, atomics.
PROGRAM(shuffle_down) {
#ifdef __CUDACC__
  return __shfl_down_sync(~0u, a, 3) ^ __shfl_up_sync(~0u, u32(b), 5);
#else
  return in.a[t % 32 + 3 < 32 ? t + 3 : t] ^ u32(in.b[t % 32 >= 5 ? t - 5 : t]);
#endif
}
PROGRAM(shuffle_xor) {
#ifdef __CUDACC__
  return __shfl_xor_sync(~0u, a, 9) + __shfl_sync(~0u, u32(b), u32(c), 8);
#else
  return in.a[t ^ 9] + u32(in.b[(t & ~7u) + (u32(c) & 7)]);
#endif
}
#ifndef __CUDACC__
template <class F>
static u64 over_warp(u32 t, u64 start, F f) {
  for (u32 i = t / 32 * 32; i < t / 32 * 32 + 32; ++i) start = f(start, i);
  return start;
}
#endif
PROGRAM(votes) {
#ifdef __CUDACC__
  return u64(__ballot_sync(~0u, a & 1)) << 32 | (__any_sync(~0u, u8(b) == 7) ? 2u : 0u) |
         (__all_sync(~0u, u8(c) != 9) ? 1u : 0u);
#else
  return over_warp(t, 0, [](u64 s, u32 i) { return s | (in.a[i] & 1) << (32 + i % 32); }) |
         over_warp(t, 0, [](u64 s, u32 i) { return s | (u8(in.b[i]) == 7 ? 2u : 0u); }) |
         over_warp(t, 1, [](u64 s, u32 i) { return s & (u8(in.c[i]) != 9); });
#endif
}
PROGRAM(matches) {
#ifdef __CUDACC__
  int same = 0;
  const u32 all = __match_all_sync(~0u, u32(b) & 0, &same);
  return u64(__match_any_sync(~0u, u32(a) & 3)) << 32 | (all & u32(same)) |
         (u64(__match_any_sync(~0u, c & 1)) << 8);
#else
  const u64 any =
                over_warp(t, 0, [&](u64 s, u32 i) { return s | u64((in.a[i] & 3) == (a & 3)) << (i % 32); }),
            wide =
                over_warp(t, 0, [&](u64 s, u32 i) { return s | u64((in.c[i] & 1) == (c & 1)) << (i % 32); });
  return any << 32 | 1 | wide << 8;
#endif
}
PROGRAM(warp_reductions) {
#ifdef __CUDACC__
  return u64(__reduce_add_sync(~0u, u32(a))) << 32 ^ u32(__reduce_min_sync(~0u, s32(b))) ^
         __reduce_xor_sync(~0u, u32(c)) ^ __reduce_max_sync(~0u, u32(b)) ^
         __reduce_or_sync(~0u, u32(c) & 0x1111u << (t & 3));
#else
  const u64 sum = over_warp(t, 0, [](u64 s, u32 i) { return u32(s + in.a[i]); }),
            least =
                over_warp(t, 0x7fffffff,
                          [](u64 s, u32 i) { return u32(s32(in.b[i]) < s32(s) ? s32(in.b[i]) : s32(s)); }),
            parity = over_warp(t, 0, [](u64 s, u32 i) { return s ^ u32(in.c[i]); }),
            most = over_warp(t, 0, [](u64 s, u32 i) { return u32(in.b[i]) > s ? u32(in.b[i]) : s; }),
            any = over_warp(t, 0, [](u64 s, u32 i) { return s | (u32(in.c[i]) & 0x1111u << (i & 3)); });
  return sum << 32 ^ least ^ parity ^ most ^ any;
#endif
}
PROGRAM(divergent_mask) {
#ifdef __CUDACC__
  u32 result = 0;
  if (a & 1) result = __ballot_sync(__activemask(), b & 1);
  __syncwarp();
  return result;
#else
  return a & 1 ? over_warp(t, 0, [](u64 s, u32 i) { return s | (in.a[i] & in.b[i] & 1) << (i % 32); }) : 0;
#endif
}
PROGRAM(tile_of_eight) {
#ifdef __CUDACC__
  auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
  u64 sum = a;
  for (u32 i = tile.size() / 2; i; i /= 2) sum += tile.shfl_xor(sum, i);
  return sum + tile.thread_rank() + tile.meta_group_rank() + tile.ballot(u32(b) & 1);
#else
  u64 sum = t % 8 + t % 64 / 8;
  for (u32 i = t & ~7u; i < (t & ~7u) + 8; ++i) sum += in.a[i] + ((in.b[i] & 1) << (i & 7));
  return sum;
#endif
}
PROGRAM(tile_of_thirty_two) {
#ifdef __CUDACC__
  auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
  tile.sync();
  return tile.shfl(a, u32(t + 1) % 32) + (tile.any(u8(b) == 3) ? 1 : 0);
#else
  return in.a[t / 32 * 32 + (t + 1) % 32] +
         over_warp(t, 0, [](u64 s, u32 i) { return s | (u8(in.b[i]) == 3); });
#endif
}
PROGRAM(coalesced_group) {
#ifdef __CUDACC__
  u64 result = 0;
  if (a & 2) {
    auto group = cooperative_groups::coalesced_threads();
    result = group.size() * 64 + group.thread_rank();
  }
  return result;
#else
  if (!(a & 2)) return 0;
  return over_warp(t, 0,
                   [&](u64 s, u32 i) { return s + (in.a[i] & 2 ? 64 : 0) + (in.a[i] & 2 && i < t ? 1 : 0); });
#endif
}
PROGRAM(shared_transpose) {
#ifdef __CUDACC__
  __shared__ u64 box[8][9];
  const u32 n = threadIdx.x;
  box[n / 8][n % 8] = a;
  __syncthreads();
  return box[n % 8][n / 8];
#else
  const u32 n = t % 64;
  return in.a[t - n + n % 8 * 8 + n / 8];
#endif
}
PROGRAM(barrier_votes) {
#ifdef __CUDACC__
  return __syncthreads_count(a & 1) * 4 + (__syncthreads_and(u8(b) != 1) ? 2 : 0) +
         (__syncthreads_or(u8(c) == 1) ? 1 : 0);
#else
  u64 count = 0, all = 2, any = 0;
  for (u32 i = t / 64 * 64; i < t / 64 * 64 + 64; ++i)
    count += in.a[i] & 1, all &= u8(in.b[i]) != 1 ? 2 : 0, any |= u8(in.c[i]) == 1;
  return count * 4 + all + any;
#endif
}
#ifdef __CUDACC__
template <class T, class F>
__device__ u64 gathered(T start, F change) {
  __shared__ T box;
  if (threadIdx.x == 0) box = start;
  __syncthreads();
  change(&box);
  __syncthreads();
  return u64(box);
}
__device__ u32 global_words[2][4];
__device__ u64 global_long[2];
__device__ float global_float[2];
__device__ double global_double[2];
#else
template <class T, class F>
static u64 over_block(u32 t, T start, F f) {
  for (u32 i = t / 64 * 64; i < t / 64 * 64 + 64; ++i) start = f(start, i);
  return u64(start);
}
#endif
PROGRAM(shared_atomic_sum) {
#ifdef __CUDACC__
  return gathered(5u, [&](u32* box) { atomicAdd(box, u32(a)); });
#else
  return over_block(t, 5u, [](u32 s, u32 i) { return s + u32(in.a[i]); });
#endif
}
PROGRAM(shared_atomic_extremes) {
#ifdef __CUDACC__
  return gathered(0, [&](int* box) { atomicMin(box, s32(a)); }) ^
         gathered(0u, [&](u32* box) { atomicMax(box, u32(b)); }) ^
         gathered(~0ull, [&](u64* box) { atomicMin(box, c); });
#else
  return u64(s64{s32(over_block(t, 0, [](int s, u32 i) { return s32(in.a[i]) < s ? s32(in.a[i]) : s; }))}) ^
         over_block(t, 0u, [](u32 s, u32 i) { return u32(in.b[i]) > s ? u32(in.b[i]) : s; }) ^
         over_block(t, ~0ull, [](u64 s, u32 i) { return in.c[i] < s ? in.c[i] : s; });
#endif
}
PROGRAM(shared_atomic_logic) {
#ifdef __CUDACC__
  return gathered(~0u, [&](u32* box) { atomicAnd(box, u32(a) | 0xff00ff00u >> (t & 15)); }) ^
         gathered(0u, [&](u32* box) { atomicOr(box, u32(b) & 0x01010101u); }) ^
         gathered(0ull, [&](u64* box) { atomicXor(box, c); });
#else
  return over_block(t, ~0u, [](u32 s, u32 i) { return s & (u32(in.a[i]) | 0xff00ff00u >> (i & 15)); }) ^
         over_block(t, 0u, [](u32 s, u32 i) { return s | (u32(in.b[i]) & 0x01010101u); }) ^
         over_block(t, 0ull, [](u64 s, u32 i) { return s ^ in.c[i]; });
#endif
}
PROGRAM(shared_compare_and_swap) {
#ifdef __CUDACC__
  return gathered(1u, [&](u32* box) {
    u32 seen = *box, expected;
    do {
      expected = seen;
      seen = atomicCAS(box, expected, expected + (u32(a) & 0xff));
    } while (seen != expected);
  });
#else
  return over_block(t, 1u, [](u32 s, u32 i) { return s + (u32(in.a[i]) & 0xff); });
#endif
}
PROGRAM(counted_increments) {
#ifdef __CUDACC__
  return gathered(0u, [&](u32* box) { atomicInc(box, 1000); }) +
         gathered(7u, [&](u32* box) { atomicDec(box, 9); }) * 8;
#else
  return 64 + (7 + 640 - 64) % 10 * 8;
#endif
}
PROGRAM(global_atomics) {
#ifdef __CUDACC__
  u32* box = global_words[blockIdx.x];
  atomicAdd(&box[0], u32(a));
  atomicMax(&box[1], u32(b));
  atomicOr(&box[2], u32(c) & 0x10101010u);
  atomicAdd(&global_long[blockIdx.x], c);
  __threadfence();
  __syncthreads();
  return box[0] + box[1] + box[2] + global_long[blockIdx.x] + atomicExch(&box[3], 0u);
#else
  return u64{u32(over_block(t, 0u, [](u32 s, u32 i) { return s + u32(in.a[i]); }) +
                 over_block(t, 0u, [](u32 s, u32 i) { return u32(in.b[i]) > s ? u32(in.b[i]) : s; }) +
                 over_block(t, 0u, [](u32 s, u32 i) { return s | (u32(in.c[i]) & 0x10101010u); }))} +
         over_block(t, 0ull, [](u64 s, u32 i) { return s + in.c[i]; });
#endif
}
PROGRAM(float_atomics) {  // small integers: every order gives the same sum
#ifdef __CUDACC__
  atomicAdd(&global_float[blockIdx.x], float(u8(a)));
  atomicAdd(&global_double[blockIdx.x], double(u16(b)));
  __syncthreads();
  return u64(global_float[blockIdx.x]) << 32 | u32(global_double[blockIdx.x]);
#else
  return over_block(t, 0u, [](u32 s, u32 i) { return s + u8(in.a[i]); }) << 32 |
         over_block(t, 0u, [](u32 s, u32 i) { return s + u16(in.b[i]); });
#endif
}
PROGRAM(half_atomics) {
#ifdef __CUDACC__
  __shared__ __half2 halves;
  __shared__ __nv_bfloat162 brains;
  __shared__ __half one;
  __shared__ __nv_bfloat16 brain;
  if (threadIdx.x == 0) halves = {0, 0}, brains = {0, 0}, one = 0, brain = 0;
  __syncthreads();
  atomicAdd(&halves, __half2{__half(float(a & 7)), __half(float(b & 7))});
  atomicAdd(&brains, __nv_bfloat162{__nv_bfloat16(float(a & 1)), __nv_bfloat16(float(b & 1))});
  atomicAdd(&one, __half(float(c & 3)));
  atomicAdd(&brain, __nv_bfloat16(float(c & 1)));
  __syncthreads();
  return u64(float(halves.x)) + u64(float(halves.y)) * 1000 + u64(float(brains.x)) * 1000000 +
         u64(float(brains.y)) * 100000000 + (u64(float(one)) << 40) + (u64(float(brain)) << 52);
#else
  auto sum = [&](const std::vector<u64>& from, u64 bits) {
    return over_block(t, 0ull, [&](u64 s, u32 i) { return s + (from[i] & bits); });
  };
  return sum(in.a, 7) + sum(in.b, 7) * 1000 + sum(in.a, 1) * 1000000 + sum(in.b, 1) * 100000000 +
         (sum(in.c, 3) << 40) + (sum(in.c, 1) << 52);
#endif
}
PROGRAM(vector_loads) {
#ifdef __CUDACC__
  __shared__ uint4 box[16];
  u32* words = reinterpret_cast<u32*>(box);
  words[threadIdx.x] = u32(a);
  __syncthreads();
  const uint4 four = box[threadIdx.x / 4];
  const ulonglong2 two = *reinterpret_cast<const ulonglong2*>(&box[threadIdx.x / 8]);
  return (four.x + four.y * 3ull + four.z * 5ull + four.w * 7ull + two.x) ^ two.y;
#else
  const u32 n = t % 64, base = t - n;
  auto at = [&](u32 i) { return u64{u32(in.a[base + i])}; };
  const u32 f = n / 4 * 4, g = n / 8 * 4;
  return (at(f) + at(f + 1) * 3 + at(f + 2) * 5 + at(f + 3) * 7 + (at(g) | at(g + 1) << 32)) ^
         (at(g + 2) | at(g + 3) << 32);
#endif
}
