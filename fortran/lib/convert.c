/* Sentinels, strings, and lengths of arrays. */
#include "f77.h"

#include <string.h>

/* The COMMON blocks that mpif.h declares. A program's own copy takes the place of these. */
#define SENTINEL(name) MPI_Fint name[8] __attribute__((visibility("default")))
SENTINEL(mpi_abi_bottom_);
SENTINEL(mpi_abi_in_place_);
SENTINEL(mpi_abi_buffer_automatic_);
SENTINEL(mpi_abi_status_ignore_);
SENTINEL(mpi_abi_statuses_ignore_);
SENTINEL(mpi_abi_errcodes_ignore_);
SENTINEL(mpi_abi_unweighted_);
SENTINEL(mpi_abi_weights_empty_);
SENTINEL(mpi_abi_argv_null_);
SENTINEL(mpi_abi_argvs_null_);

void *spxf_buffer(void *buffer)
{
  if (buffer == mpi_abi_bottom_) return MPI_BOTTOM;
  if (buffer == mpi_abi_in_place_) return MPI_IN_PLACE;
  if (buffer == mpi_abi_buffer_automatic_) return MPI_BUFFER_AUTOMATIC;
  return buffer;
}

MPI_Status *spxf_status(MPI_Fint *status)
{
  return status == mpi_abi_status_ignore_ ? MPI_STATUS_IGNORE : (MPI_Status *)status;
}

MPI_Status *spxf_statuses(MPI_Fint *statuses)
{
  return statuses == mpi_abi_statuses_ignore_ ? MPI_STATUSES_IGNORE : (MPI_Status *)statuses;
}

MPI_Fint *spxf_weights(MPI_Fint *weights)
{
  if (weights == mpi_abi_unweighted_) return MPI_UNWEIGHTED;
  if (weights == mpi_abi_weights_empty_) return MPI_WEIGHTS_EMPTY;
  return weights;
}

MPI_Fint *spxf_errcodes(MPI_Fint *errcodes)
{
  return errcodes == mpi_abi_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : errcodes;
}

int spxf_no_argv(const void *argv) { return argv == mpi_abi_argv_null_; }

int spxf_no_argvs(const void *argvs) { return argvs == mpi_abi_argvs_null_; }

static size_t trimmed(const char *text, size_t length)
{
  while (length > 0 && text[length - 1] == ' ') length--;
  return length;
}

char *spxf_string(const char *text, size_t length)
{
  length = trimmed(text, length);
  while (length > 0 && *text == ' ') text++, length--;
  char *s = malloc(length + 1);
  if (s) {
    memcpy(s, text, length);
    s[length] = 0;
  }
  return s;
}

void spxf_fill(char *text, size_t length, const char *from)
{
  size_t n = strlen(from);
  if (n > length) n = length;
  memcpy(text, from, n);
  memset(text + n, ' ', length - n);
}

char **spxf_strings(const char *text, size_t length, int count, int stride)
{
  size_t step = length * (size_t)stride;
  int n = 0;
  if (count >= 0)
    n = count;
  else
    while (trimmed(text + (size_t)n * step, length) > 0) n++;
  char **list = malloc(sizeof *list * ((size_t)n + 1));
  for (int i = 0; list && i <= n; i++) list[i] = i < n ? spxf_string(text + (size_t)i * step, length) : NULL;
  return list;
}

void spxf_free_strings(char **strings)
{
  for (char **s = strings; s && *s; s++) free(*s);
  free(strings);
}

int spxf_peers(MPI_Fint comm)
{
  int inter = 0, n = 0;
  MPI_Comm c = MPI_Comm_fromint(comm);
  if (PMPI_Comm_test_inter(c, &inter) != MPI_SUCCESS) return 0;
  if ((inter ? PMPI_Comm_remote_size(c, &n) : PMPI_Comm_size(c, &n)) != MPI_SUCCESS) return 0;
  return n;
}

int spxf_neighbors(MPI_Fint comm, int out)
{
  MPI_Comm c = MPI_Comm_fromint(comm);
  int kind = MPI_UNDEFINED, n = 0, in = 0, weighted, rank;
  if (PMPI_Topo_test(c, &kind) != MPI_SUCCESS) return 0;
  switch (kind) {
  case MPI_CART: return PMPI_Cartdim_get(c, &n) == MPI_SUCCESS ? 2 * n : 0;
  case MPI_GRAPH:
    return PMPI_Comm_rank(c, &rank) == MPI_SUCCESS && PMPI_Graph_neighbors_count(c, rank, &n) == MPI_SUCCESS ? n : 0;
  case MPI_DIST_GRAPH:
    return PMPI_Dist_graph_neighbors_count(c, &in, &n, &weighted) == MPI_SUCCESS ? (out ? n : in) : 0;
  }
  return 0;
}

int spxf_cart_dims(MPI_Fint comm)
{
  int n = 0;
  return PMPI_Cartdim_get(MPI_Comm_fromint(comm), &n) == MPI_SUCCESS ? n : 0;
}

void spxf_count_from_1(MPI_Fint *indices, MPI_Fint n, int err)
{
  if (err == MPI_SUCCESS || err == MPI_ERR_IN_STATUS)
    for (MPI_Fint i = 0; i < n; i++) indices[i]++;
}
