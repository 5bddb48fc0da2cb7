/* Digests of what a CUDA program leaves in its device memory, for `assay run --digests` to be held against:
 *   cc -shared -fPIC -O2 -o gpu_digests.so tools/gpu_digests.c -ldl
 *   GPU_DIGESTS=gpu.txt LD_PRELOAD=./gpu_digests.so ./program      (linked with nvcc -cudart shared)
 *   assay run --checks none --digests machine.txt -- ./program && diff gpu.txt machine.txt
 * Allocations are filled with 0xff as the machine fills them; one line for each, in the order of the program, when
 * it is freed or the program ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { most_allocations = 1 << 16, device_to_host = 2 };

static struct {
  void* address;
  size_t bytes;
  uint64_t digest;
} allocations[most_allocations];
static int count;

static void* real(const char* name) { return dlsym(RTLD_NEXT, name); }

static void note(int i) {
  int (*copy)(void*, const void*, size_t, int) = (int (*)(void*, const void*, size_t, int))real("cudaMemcpy");
  unsigned char* bytes = malloc(allocations[i].bytes);
  uint64_t hash = 0xcbf29ce484222325u;
  ((int (*)(void))real("cudaDeviceSynchronize"))();
  if (bytes && copy(bytes, allocations[i].address, allocations[i].bytes, device_to_host) == 0)
    for (size_t at = 0; at < allocations[i].bytes; ++at) hash = (hash ^ bytes[at]) * 0x100000001b3u;
  free(bytes);
  allocations[i].digest = hash, allocations[i].address = NULL;
}

static void write_digests(void) {
  const char* const path = getenv("GPU_DIGESTS");
  FILE* const out = path ? fopen(path, "w") : stderr;
  if (!out) return;
  for (int i = 0; i < count; ++i) {
    if (allocations[i].address) note(i);
    fprintf(out, "allocation %d: %zu bytes, %016llx\n", i + 1, allocations[i].bytes,
            (unsigned long long)allocations[i].digest);
  }
  if (path) fclose(out);
}

int cudaMalloc(void** to, size_t bytes) {
  const int status = ((int (*)(void**, size_t))real("cudaMalloc"))(to, bytes);
  if (status != 0 || bytes == 0 || count == most_allocations) return status;
  if (count == 0) atexit(write_digests); /* behind the runtime's own, so that it runs before that */
  ((int (*)(void*, int, size_t))real("cudaMemset"))(*to, 0xff, bytes);
  allocations[count].address = *to, allocations[count].bytes = bytes, ++count;
  return status;
}

int cudaFree(void* address) {
  for (int i = 0; i < count && address; ++i)
    if (allocations[i].address == address) note(i);
  return ((int (*)(void*))real("cudaFree"))(address);
}
