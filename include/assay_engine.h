/* The engine of assay for other languages: the machine, the references and the checks behind few functions.
 * Structured data goes in and out as JSON (UTF-8), tensors as plain memory. A call returns ASSAY_OK or says
 * why not in its answer, and never throws; any number of threads may call at once. Structs carry their own
 * size, so that a caller compiled against an older header goes on. python/assay is written on this and
 * nothing else. */
#ifndef ASSAY_ENGINE_H
#define ASSAY_ENGINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ASSAY_OK = 0,
  ASSAY_BAD_INPUT = 1,  /* the answer's text is one line: what, where, what to do */
  ASSAY_ABANDONED = 2,  /* assay_control::stop was set */
  ASSAY_INTERNAL = 3,   /* our own fault; one line */
  ASSAY_OVER_BUDGET = 4 /* the launch took more than its "limit" */
};

enum { ASSAY_MOST_AXES = 8 };

/* Memory of the caller: a storage, and the tensor that lies in it. The engine reads no byte outside, and
 * writes only where the call says so and `writable` is set. */
typedef struct {
  uint64_t struct_bytes;
  const char* name;
  uint64_t address, bytes; /* the storage */
  int32_t writable;
  int32_t format; /* index into "formats" of assay_about; -1: bytes of any kind */
  int32_t rank;   /* 0 with format -1 */
  int64_t offset; /* elements from the storage's first byte to the tensor's first element */
  int64_t shape[ASSAY_MOST_AXES], strides[ASSAY_MOST_AXES]; /* in elements; any sign, any order */
  const char* axes;                                         /* "B,T,H,K", or NULL: messages then count them */
} assay_array;

/* What a caller may do while a call runs. */
typedef struct {
  uint64_t struct_bytes;
  const int32_t* stop;                            /* not 0: the call ends soon; NULL: never */
  void (*progress)(void* user, const char* line); /* what is being done; from any thread; or NULL */
  void* user;
} assay_control;

/* What a call gives back; also where it failed. */
typedef struct assay_answer assay_answer;
const char* assay_answer_text(const assay_answer*,
                              uint64_t* bytes); /* JSON, or the line that says what failed */
/* Array `index` of the answer in *array, memory of the answer; 1 past the last. */
int assay_answer_array(const assay_answer*, uint64_t index, assay_array* array);
void assay_answer_free(assay_answer*);

/* {"version", "commit", "schema", "formats": [{"name", "bytes"}], "architectures", "checks", "gpus"} */
int assay_about(assay_answer**);

/* PTX text, parsed once. Answers {"entries": {name: {"parameters": [..], ..}}, "target"}; a body that cannot
 * be read refuses its entry alone, when that is launched. */
typedef struct assay_module assay_module;
int assay_module_load(const char* ptx, uint64_t bytes, const char* path, assay_module**, assay_answer**);
void assay_module_free(assay_module*); /* while no launch of it runs */

/* One launch on the machine. Addresses in arguments and inside storages are the process's own; the kernel
 * reads and writes the storages and nothing else. */
typedef struct {
  uint64_t struct_bytes;
  const char* entry;
  uint32_t grid[3], block[3];
  uint32_t cluster[3];   /* zeros: as the entry says */
  uint32_t shared_bytes; /* dynamic */
  int32_t cooperative;
  /* Either the parameter block, laid out as the entry says (`argument_count` 0), or a pointer to each one. */
  const void* packed;
  uint64_t packed_bytes;
  const void* const* arguments;
  uint64_t argument_count;
  const assay_array* storages;
  uint64_t storage_count;
  /* {"arch", "checks", "repeats", "origins", "threads", "instruction_budget", "limit", "name"};
   * python/assay/machine.py says what they mean. */
  const char* options;
} assay_launch;
/* Answers {"trap", "printed", "not_printed", "lane_instructions", "seconds", "exponents", "verification"}. */
int assay_machine_launch(const assay_module*, const assay_launch*, const assay_control*, assay_answer**);

/* A function of the caller's, run in place of a kernel: by one thread at a time, any one. */
typedef struct assay_run assay_run; /* one run, while assay_function::run lasts */
typedef struct {
  uint64_t struct_bytes;
  /* `request`: JSON (src/binding/function.cpp). `inputs`: memory that the function may change, and is then
   * told of; after the tensors "cu_seqlens" where the case is packed. What came of it goes to the functions
   * below. */
  void (*run)(void* user, const char* request, const assay_array* inputs, uint64_t input_count, assay_run*);
  void* user;
} assay_function;
void assay_run_output(assay_run*, const assay_array*); /* copied */
/* {"trap", "exponents", "lane_instructions", "seconds", "refused"} or {"failed": "one line"} */
void assay_run_ended(assay_run*, const char* json);
/* Where `request` asks for launches: what a tensor is called, wherever it lies; a launch, before it and after
 * it. */
void assay_run_named(assay_run*, const assay_array*);
void assay_run_launching(assay_run*, const assay_module*, const assay_launch*);
void assay_run_launched(assay_run*);
/* An operation with a function of the caller's: "fuzz", "replay_function". */
int assay_call_function(const char* operation, const char* request, const assay_function*,
                        const assay_control*, assay_answer**);

/* Everything else: operations by name (src/binding/operations.cpp), a JSON object in, JSON and arrays out. */
int assay_call(const char* operation, const char* request, const assay_array* arrays, uint64_t array_count,
               const assay_control*, assay_answer**);

#ifdef __cplusplus
}
#endif
#endif
