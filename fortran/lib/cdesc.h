/* Choice buffers of module mpi_f08: descriptors of ISO_Fortran_binding.h, which the Fortran compiler makes. A buffer whose elements lie side by side is its address.
   Others (array sections) become:
     a datatype   where one count and one datatype describe the buffer. It holds the data type's elements at the places of the section's (MPI-5.0, 20.1.12), is
                  committed for the call, and freed after it: nothing is copied, nonblocking calls included.
     a unit       where a datatype describes the elements of several blocks: the elements lie at one distance, and so the datatype is given that extent.
     a copy       for operations on predefined datatypes, and what no datatype describes. A nonblocking call copies back when it completes. */
#ifndef SPXF_CDESC_H
#define SPXF_CDESC_H

#include "f77.h"
#include <mpi-ext.h>
#include <ISO_Fortran_binding.h>

#ifdef SPX_PROFILE
#define CDESC(name) pmpi_##name##_cdesc
#else
#define CDESC(name) mpi_##name##_cdesc
#endif

/* 1 when the elements of d lie side by side (or it is a scalar, or has none). */
static inline int spxf_dense(const CFI_cdesc_t *d)
{
  CFI_index_t step = (CFI_index_t)d->elem_len;
  int dense = 1;
  for (int i = 0; i < d->rank; i++) {
    CFI_index_t n = d->dim[i].extent;
    if (n == 0) return 1;
    if (n != 1 && d->dim[i].sm != step) dense = 0;
    step *= n;
  }
  return dense;
}

/* What a call is given for one buffer. */
struct spxf_view {
  const CFI_cdesc_t *d;
  void *base;
  MPI_Count count;
  MPI_Fint type;
  MPI_Datatype made; /* to be freed; MPI_DATATYPE_NULL: none */
  void *copy;        /* to be freed; NULL: none */
};

/* How the call treats a buffer. */
enum { SPXF_READS = 1, SPXF_WRITES = 2, SPXF_LATER = 4 }; /* LATER: after the call has returned */

/* Each fills v and returns an error code. */
int spxf_as_is(struct spxf_view *v, const CFI_cdesc_t *d, MPI_Count count, MPI_Fint type);
int spxf_datatype(struct spxf_view *v, const CFI_cdesc_t *d, MPI_Count count, MPI_Fint type, int how);
int spxf_unit(struct spxf_view *v, const CFI_cdesc_t *d, MPI_Fint type, int how);
int spxf_copy(struct spxf_view *v, const CFI_cdesc_t *d, MPI_Fint type, int how);

/* libspx has it, other libraries of the same ABI have not. */
extern int MPIX_Request_attach(MPI_Request request, MPIX_Request_function *start_fn, MPIX_Request_function *complete_fn,
                               MPIX_Request_function *free_fn, void *extra_state) __attribute__((weak));

/* After the call: copies back and frees, now, or when *request completes (NULL: the call is a blocking one). */
void spxf_close(struct spxf_view *v, int how, const MPI_Fint *request, int err);

int spxf_is_root(MPI_Fint comm, MPI_Fint root);
/* Calls the error handler of what the call is about, and gives the error code. */
int spxf_raise_comm(MPI_Fint comm, int err);
int spxf_raise_win(MPI_Fint win, int err);
int spxf_raise_file(MPI_Fint file, int err);

#endif
