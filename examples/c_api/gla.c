/* Gated linear attention from C: plan gla.chunk, allocate with the CUDA driver, run it, read one output back. q, k
 * and v are views of one buffer [B, T, 3, H, K], as a fused projection makes it.
 * Links nothing but assay's kernels and the driver, which it opens by hand as a program with the CUDA toolkit
 * would not need to.
 *   gla          runs on the first GPU; without one it says so and ends with 2
 *   gla --plan   only plans, and prints the tensors of the call; needs no GPU */
#include <assay_kernels.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long device_pointer;

/* The five driver functions this program needs. */
static struct {
  int (*init)(unsigned);
  int (*retain_context)(void**, int);
  int (*set_context)(void*);
  int (*allocate)(device_pointer*, size_t);
  int (*upload)(device_pointer, const void*, size_t);
  int (*download)(void*, device_pointer, size_t);
} cuda;

static int open_driver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return 0;
  *(void**)&cuda.init = dlsym(library, "cuInit");
  *(void**)&cuda.retain_context = dlsym(library, "cuDevicePrimaryCtxRetain");
  *(void**)&cuda.set_context = dlsym(library, "cuCtxSetCurrent");
  *(void**)&cuda.allocate = dlsym(library, "cuMemAlloc_v2");
  *(void**)&cuda.upload = dlsym(library, "cuMemcpyHtoD_v2");
  *(void**)&cuda.download = dlsym(library, "cuMemcpyDtoH_v2");
  void* context = NULL;
  return cuda.init && cuda.init(0) == 0 && cuda.retain_context(&context, 0) == 0 &&
         cuda.set_context(context) == 0;
}

static void* device_memory(int64_t bytes) {
  device_pointer pointer = 0;
  if (cuda.allocate(&pointer, bytes > 0 ? (size_t)bytes : 1) != 0) {
    fprintf(stderr, "out of memory on the GPU\n");
    exit(1);
  }
  return (void*)pointer;
}

/* Keys, queries and values small, log decays -0.1. */
static char* filled(int64_t bytes, int decays) {
  float* values = malloc((size_t)bytes);
  for (int64_t i = 0; i < bytes / 4; ++i) values[i] = decays ? -0.1f : 0.001f * (float)(i % 1000 - 500);
  void* memory = device_memory(bytes);
  cuda.upload((device_pointer)memory, values, (size_t)bytes);
  free(values);
  return memory;
}

static void print_tensor(const assay_tensor* tensor) {
  printf("%s %s [", tensor->is_output ? "gives" : "takes", tensor->name);
  for (int i = 0; i < tensor->rank; ++i) printf(i ? ",%lld" : "%lld", (long long)tensor->shape[i]);
  printf("] %lld bytes\n", (long long)tensor->bytes);
}

int main(int argc, char** argv) {
  enum { T = 1000, H = 2, K = 64, kRow = 3 * H * K };
  const char* absent[] = {"initial_state", NULL};
  const assay_strides views[] = {
      {sizeof *views, "q", {T * kRow, kRow, K, 1}},
      {sizeof *views, "k", {T * kRow, kRow, K, 1}},
      {sizeof *views, "v", {T * kRow, kRow, K, 1}},
      {0}};
  const assay_problem problem = {.struct_bytes = sizeof problem,
                                 .B = 1,
                                 .T = T,
                                 .H = H,
                                 .K = K,
                                 .V = K,
                                 .format = ASSAY_FP32,
                                 .gate_format = ASSAY_FP32,
                                 .direction = ASSAY_FORWARD,
                                 .absent = absent,
                                 .strides = views};
  assay_kernel* kernel = NULL;
  if (assay_kernel_create("gla.chunk", &problem, &kernel) != 0) {
    fprintf(stderr, "%s\n", assay_error());
    return 1;
  }
  int count = 0;
  const assay_tensor* tensors = assay_kernel_tensors(kernel, &count);
  for (int i = 0; i < count; ++i) print_tensor(&tensors[i]);
  printf("workspace %lld bytes\n", (long long)assay_kernel_workspace(kernel));
  if (argc > 1 && strcmp(argv[1], "--plan") == 0) {
    assay_kernel_destroy(kernel);
    return 0;
  }
  if (!open_driver()) {
    fprintf(stderr, "no GPU here\n");
    return 2;
  }
  void** pointers = calloc((size_t)count, sizeof *pointers);
  char* const qkv = filled(T * kRow * 4, 0);
  for (int i = 0; i < count; ++i) {
    const char* part = strchr("qkv", tensors[i].name[0]);
    if (tensors[i].is_output)
      pointers[i] = device_memory(tensors[i].bytes);
    else if (part && tensors[i].name[1] == 0)
      pointers[i] = qkv + (part - "qkv") * H * K * 4;
    else
      pointers[i] = filled(tensors[i].bytes, strcmp(tensors[i].name, "g") == 0);
  }
  int status = assay_kernel_run(kernel, pointers, device_memory(assay_kernel_workspace(kernel)), NULL);
  if (status != 0) fprintf(stderr, "%s\n", assay_error());
  for (int i = 0; i < count && status == 0; ++i)
    if (strcmp(tensors[i].name, "o") == 0) {
      float first = 0;
      status = cuda.download(&first, (device_pointer)pointers[i], sizeof first);
      printf("o[0,0,0,0] = %.9g\n", (double)first);
    }
  free(pointers);
  assay_kernel_destroy(kernel);
  return status;
}
