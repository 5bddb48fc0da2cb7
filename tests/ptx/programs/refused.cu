// What the machine does not run: each is refused by name.
static __device__ __noinline__ u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

PROGRAM(recursion) { out[threadIdx.x] = fibonacci(in[threadIdx.x] % 8 + n); }

PROGRAM(bulk_copy) {
  __shared__ alignas(128) u32 tile[32];
  __shared__ u64 barrier;
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(
                   static_cast<u32>(__cvta_generic_to_shared(tile))),
               "l"(in), "r"(static_cast<u32>(__cvta_generic_to_shared(&barrier)))
               : "memory");
  out[threadIdx.x] = tile[threadIdx.x % 32];
}

PROGRAM(texture) { out[threadIdx.x] = tex1Dfetch<u32>(static_cast<cudaTextureObject_t>(in[0]), static_cast<int>(n)); }
