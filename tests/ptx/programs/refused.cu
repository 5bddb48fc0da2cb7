// What the machine does not run: each is refused by name.
PROGRAM(several_gpus) {
  asm volatile("multimem.red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(out), "r"(n) : "memory");
  out[threadIdx.x] = in[threadIdx.x];
}

PROGRAM(texture) { out[threadIdx.x] = tex1Dfetch<u32>(static_cast<cudaTextureObject_t>(in[0]), static_cast<int>(n)); }
