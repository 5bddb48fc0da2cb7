/* What assay asks of MPI. The plugin is built against the MPI that the host has, and opened when a launcher
 * has started several processes; assay itself is linked to none. */
#ifndef ASSAY_MPI_H
#define ASSAY_MPI_H
#include <stdint.h>

struct assay_mpi {
  uint32_t struct_bytes; /* set by the caller to sizeof(struct assay_mpi) */
  int rank, size;
  /* Begins to send a copy. 0: done. */
  int (*send)(int to, const void* bytes, int64_t count);
  /* 1: a message has come, in `bytes` until the next call; 0: none has; else an error. Never waits. */
  int (*receive)(int* from, const void** bytes, int64_t* count);
  /* Sends what is under way, and ends MPI; waits for all processes to come here. */
  void (*finish)(void);
};

/* Begins MPI and fills the struct. 0: done; else a text says why not. */
typedef const char* (*assay_mpi_start_function)(struct assay_mpi*);
#define ASSAY_MPI_START "assay_mpi_start"

#endif
