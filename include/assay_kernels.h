/* The kernels of assay for programs of their own, by plain pointers: plan once for given sizes, then enqueue
 * on a stream as often as needed. Nothing here needs a CUDA header: the driver is opened when a kernel first
 * runs, in the context that is current then. Functions return 0, or 1 and say why in assay_error(). A kernel
 * belongs to one thread at a time.
 * Every struct begins with its size, `struct_bytes`: the caller's own are set to `sizeof`, so that a program
 * goes on with later versions of the library, whose structs may be longer. */
#ifndef ASSAY_KERNELS_H
#define ASSAY_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef enum { ASSAY_BF16 = 0, ASSAY_FP16 = 1, ASSAY_FP32 = 2 } assay_format;
typedef enum { ASSAY_FORWARD = 1, ASSAY_BACKWARD = 2, ASSAY_BOTH = 3 } assay_direction;

typedef struct {
  uint64_t struct_bytes; /* sizeof(assay_parameter); 0 in the one that ends a list */
  const char* name;      /* "layer_idx" */
  double value;
} assay_parameter;

/* An input that is a view: elements from one index to the next along each axis, in the order of its shape. At
 * least 1 along axes longer than one, and no two elements at one place. */
typedef struct {
  uint64_t struct_bytes; /* sizeof(assay_strides); 0 in the one that ends a list */
  const char* name;      /* "q" */
  int64_t strides[6];
} assay_strides;

/* Sizes as `assay list operators` names them; 0 stands for 1, and for HV for as many value heads as heads.
 * Only the axes of the operator count: hgrn's channels D are V. M: gsa's slots, gated_delta_product's writes
 * per token, 0 for others. */
typedef struct {
  uint64_t struct_bytes; /* sizeof(assay_problem) */
  int64_t B, T, H, HV, K, V, M;
  /* Packed sequences: `sequences` + 1 offsets into T, in host memory, B = 1; NULL: B sequences of T tokens.
   */
  const int64_t* cu_seqlens;
  int64_t sequences;
  assay_format format;      /* of inputs, outputs and gradients */
  assay_format gate_format; /* of log decays and their gradients; states are fp32 */
  assay_direction direction;
  double scale; /* 0: the operator's default */
  /* Numbers of the operator beside its tensors, ended by a NULL name; NULL: all have their default. */
  const assay_parameter* parameters;
  /* Names of optional inputs that are not given, ended by NULL; NULL: all are given. The gradient of an
   * absent input is absent. An input that stands in for another one (simple_gla's g_gamma for g) is taken
   * where that one is absent and it is not. */
  const char* const* absent;
  /* Inputs that are views, ended by a NULL name; NULL: all lie row by row. A call copies each into its
   * workspace first: every one is read once and written once. */
  const assay_strides* strides;
} assay_problem;

/* One tensor of a call, row by row and aligned to 16 bytes; an input with strides of its own may begin at any
 * element, and `bytes` reach from its first element to its last. */
typedef struct {
  uint64_t
      struct_bytes; /* from one tensor of a list to the next; perhaps more than sizeof(assay_tensor) here */
  const char* name; /* "q", "initial_state", "o", "dq", .. */
  int is_output;
  assay_format format;
  int rank;
  int64_t shape[6];
  int64_t strides[6]; /* in elements */
  int64_t bytes;
} assay_tensor;

typedef struct assay_kernel assay_kernel;

/* Names of the kernels, "gla.chunk" and so on; NULL beyond the last one. */
const char* assay_kernel_name(int index);
/* Plans a kernel for a problem. Needs no GPU. */
int assay_kernel_create(const char* name, const assay_problem* problem, assay_kernel** kernel);
void assay_kernel_destroy(assay_kernel* kernel);

/* The tensors that a call takes and gives, inputs first; their number in `count`. */
const assay_tensor* assay_kernel_tensors(const assay_kernel* kernel, int* count);
/* Bytes of device memory that a call needs beside the tensors, aligned to 256 bytes. */
int64_t assay_kernel_workspace(const assay_kernel* kernel);

/* Enqueues the kernel on `stream` (a CUstream or cudaStream_t; NULL: the default stream). `tensors`: device
 * pointers in the order of assay_kernel_tensors. The first call loads the module and waits for it; later ones
 * only enqueue. */
int assay_kernel_run(assay_kernel* kernel, void* const* tensors, void* workspace, void* stream);

/* What went wrong in this thread's last call that returned 1. */
const char* assay_error(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
