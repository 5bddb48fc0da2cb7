/* assay's plugin for MPI:
 *
 *   mpicc -shared -fPIC -O2 -o libassay_mpi.so assay_mpi.c
 *
 * Calls are those of MPI 3.0 (mpi-forum.org, chapters 3.8.2 "Matching Probe" and 12.4.3 "Initialization"). */
#include "assay_mpi.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { kTag = 1 };

struct sending {
  MPI_Request request;
  void* bytes;
  struct sending* next;
};

static struct sending* under_way;
static void* received;

/* Frees what has arrived. `wait`: all of it. */
static int collect(int wait) {
  struct sending** at = &under_way;
  while (*at != NULL) {
    struct sending* const one = *at;
    int done = 1;
    const int status = wait ? MPI_Wait(&one->request, MPI_STATUS_IGNORE)
                            : MPI_Test(&one->request, &done, MPI_STATUS_IGNORE);
    if (status != MPI_SUCCESS) return 1;
    if (!done) {
      at = &one->next;
      continue;
    }
    *at = one->next;
    free(one->bytes);
    free(one);
  }
  return 0;
}

static int send_copy(int to, const void* bytes, int64_t count) {
  struct sending* one;
  if (count > INT_MAX || (one = malloc(sizeof *one)) == NULL) return 1;
  one->bytes = malloc(count > 0 ? (size_t)count : 1);
  if (one->bytes == NULL) {
    free(one);
    return 1;
  }
  memcpy(one->bytes, bytes, (size_t)count);
  if (MPI_Isend(one->bytes, (int)count, MPI_BYTE, to, kTag, MPI_COMM_WORLD, &one->request) != MPI_SUCCESS)
    return 1;
  one->next = under_way;
  under_way = one;
  return collect(0);
}

static int receive(int* from, const void** bytes, int64_t* count) {
  MPI_Message message;
  MPI_Status status;
  int came = 0, length = 0;
  if (collect(0) != 0) return -1;
  if (MPI_Improbe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &came, &message, &status) != MPI_SUCCESS) return -1;
  if (!came) return 0;
  if (MPI_Get_count(&status, MPI_BYTE, &length) != MPI_SUCCESS) return -1;
  free(received);
  received = malloc(length > 0 ? (size_t)length : 1);
  if (received == NULL) return -1;
  if (MPI_Mrecv(received, length, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS) return -1;
  *from = status.MPI_SOURCE;
  *bytes = received;
  *count = length;
  return 1;
}

static void finish(void) {
  collect(1);
  free(received);
  received = NULL;
  MPI_Finalize();
}

const char* assay_mpi_start(struct assay_mpi* mpi) {
  int level = MPI_THREAD_SINGLE;
  if (mpi->struct_bytes < sizeof *mpi) return "the plugin is newer than the program: build it from its own source";
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) return "MPI_Init_thread failed";
  if (level < MPI_THREAD_SERIALIZED) return "this MPI was built without MPI_THREAD_SERIALIZED";
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi->size);
  mpi->send = send_copy;
  mpi->receive = receive;
  mpi->finish = finish;
  return NULL;
}
