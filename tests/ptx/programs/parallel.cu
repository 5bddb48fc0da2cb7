// Threads that work together: sorting, scans, histograms, transposition, hash tables, tiles of warps.

/// Sorts n = 256 keys with 256 threads.
PROGRAM(bitonic_sort) {
  __shared__ u32 keys[256];
  const u32 t = threadIdx.x;
  keys[t] = in[t];
  __syncthreads();
  for (u32 size = 2; size <= n; size *= 2)
    for (u32 step = size / 2; step > 0; step /= 2) {
      const u32 other = t ^ step;
      if (other > t) {
        const bool up = (t & size) == 0;
        const u32 a = keys[t], b = keys[other];
        if ((a > b) == up) keys[t] = b, keys[other] = a;
      }
      __syncthreads();
    }
  out[t] = keys[t];
}

/// Inclusive sums of n = 512 words by warp shuffles, one block.
PROGRAM(prefix_scan) {
  __shared__ u32 totals[32];
  const u32 t = threadIdx.x, lane = t % 32, warp = t / 32;
  u32 sum = in[t];
  for (u32 step = 1; step < 32; step *= 2) {
    const u32 below = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += below;
  }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    u32 total = lane < n / 32 ? totals[lane] : 0;
    for (u32 step = 1; step < 32; step *= 2) {
      const u32 below = __shfl_up_sync(~0u, total, step);
      if (lane >= step) total += below;
    }
    totals[lane] = total;
  }
  __syncthreads();
  out[t] = sum + (warp ? totals[warp - 1] : 0);
}

/// Counts of the low bytes of n words, first per block.
PROGRAM(histogram) {
  __shared__ u32 counts[256];
  for (u32 i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[in[i] & 255], 1u);
  __syncthreads();
  if (blockIdx.x == 0)
    for (u32 i = threadIdx.x; i < 256; i += blockDim.x) out[i] = counts[i];
}

/// A 48 x 48 matrix turned by tiles of 16 x 16 with a padded row.
PROGRAM(transpose) {
  __shared__ u32 tile[16][17];
  const u32 x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  out[(blockIdx.x * 16 + threadIdx.y) * n + blockIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

/// Minimum, maximum, sum, number of odd words, and lane of the first multiple of 7 of each warp.
PROGRAM(warp_reductions) {
  const u32 t = threadIdx.x, x = in[t];
  const u32 least = __reduce_min_sync(~0u, x), most = __reduce_max_sync(~0u, x), sum = __reduce_add_sync(~0u, x);
  const u32 odd = __popc(__ballot_sync(~0u, x & 1)), first = __ffs(__ballot_sync(~0u, x % 7 == 0));
  const u32 same = __match_any_sync(~0u, x & 3);
  u32* to = out + t / 32 * 6;
  if (t % 32 == 0) to[0] = least, to[1] = most, to[2] = sum, to[3] = odd, to[4] = first, to[5] = same;
}

/// Sums of tiles of 8 lanes, and the rank in the tile, by cooperative groups.
PROGRAM(tile_sums) {
  namespace cg = cooperative_groups;
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  u32 sum = in[threadIdx.x];
  for (u32 step = tile.size() / 2; step > 0; step /= 2) sum += tile.shfl_xor(sum, step);
  out[threadIdx.x] = sum * 8 + tile.thread_rank();
}

/// Every key of in is put into an open hash table of 1024 places with atomicCAS; then each thread looks its key up.
PROGRAM(hash_table) {
  __shared__ u32 table[1024];
  for (u32 i = threadIdx.x; i < 1024; i += blockDim.x) table[i] = 0;
  __syncthreads();
  const u32 key = in[threadIdx.x] | 1;
  for (u32 at = key * 2654435761u >> 22;; at = (at + 1) & 1023) {
    const u32 old = atomicCAS(&table[at], 0u, key);
    if (old == 0 || old == key) break;
  }
  __syncthreads();
  u32 probes = 1;
  for (u32 at = key * 2654435761u >> 22; table[at] != key; at = (at + 1) & 1023) ++probes;
  out[threadIdx.x] = probes > 0 ? key : 0;
}

/// Sums n words through a double buffer filled by asynchronous copies.
PROGRAM(pipelined_sum) {
  __shared__ alignas(16) u32 buffer[2][128];
  const u32 t = threadIdx.x;
  u32 sum = 0;
  __pipeline_memcpy_async(&buffer[0][t], &in[t], 4);
  __pipeline_commit();
  for (u32 i = 0; i < n / 128; ++i) {
    if (i + 1 < n / 128) __pipeline_memcpy_async(&buffer[(i + 1) & 1][t], &in[(i + 1) * 128 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    sum += buffer[i & 1][t] * (i + 1);
  }
  out[t] = sum;
}

/// A lock that every warp takes in turn.
PROGRAM(spin_lock) {
  __shared__ volatile u32 total;
  __shared__ u32 lock;
  if (threadIdx.x == 0) total = 0, lock = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    while (atomicExch(&lock, 1u)) __nanosleep(20);
    total = total + in[threadIdx.x];
    __threadfence_block();
    atomicExch(&lock, 0u);
  }
  __syncthreads();
  if (threadIdx.x == 0) out[0] = total;
}

// Calls that the system answers.
PROGRAM(printing) {
  printf("%u\n", in[threadIdx.x]);
  out[threadIdx.x] = n;
}

PROGRAM(allocation) {
  u32* p = static_cast<u32*>(malloc(4 * n));
  p[0] = in[threadIdx.x];
  out[threadIdx.x] = p[0];
  free(p);
}
