/* What the routines of mpif.h and module mpi share. Conventions of the compiler: names in lower case with an underscore, arguments by address,
   lengths of strings as size_t after all arguments, LOGICAL as INTEGER with 0 for .FALSE. (gfortran; ifx and flang with their presets).

   Handles are INTEGERs with the value of MPI_Comm_toint and the like. A status is 8 INTEGERs, in memory the same as MPI_Status. */
#ifndef SPXF_F77_H
#define SPXF_F77_H

#include <limits.h>
#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>

#define PASTE(a, b) a##b
#ifdef SPX_PROFILE
#define F77(name)  pmpi_##name##_
#define F08(name)  pmpi_##name##_f08_
#define CALL(name) PASTE(PMPI_, name)
#else
#define F77(name)  mpi_##name##_
#define F08(name)  mpi_##name##_f08_
#define CALL(name) PASTE(MPI_, name)
#endif

/* In memory the arguments of module mpi_f08 are those of module mpi: a handle is a structure of one INTEGER, and a missing ierror is NULL. So a routine without
   choice buffers is the same under two names (MPI-5.0, 20.1.5); one with choice buffers is called by what reads descriptors. */
#define TEXT(x)           TEXT_(x)
#define TEXT_(x)          #x
#define SAME_IN_F08(name) extern __typeof(F77(name)) F08(name) __attribute__((alias(TEXT(F77(name)))));

/* A TYPE(C_PTR) is in memory what an INTEGER(MPI_ADDRESS_KIND) is. */
#define SAME_WITH_C_PTR(name) extern __typeof(F77(name)) F77(name##_cptr) __attribute__((alias(TEXT(F77(name)))));

/* For routines that use ierror themselves. */
#define OPTIONAL_IERROR                                                                                                \
  MPI_Fint unused;                                                                                                     \
  if (!ierror) ierror = &unused

/* A local array of n entries, on the stack if it is small. The entries' number is n_NAME. */
#define SPXF_ARRAY(type, name, n)                                                                                      \
  int n_##name = spxf_length(n);                                                                                       \
  type small_##name[32];                                                                                               \
  type *name = n_##name <= 32 ? small_##name : malloc(sizeof(type) * (size_t)n_##name)
#define SPXF_FREE(name)                                                                                                \
  if ((name) != small_##name) free(name)

static inline int spxf_length(MPI_Count n) { return n < 0 ? 0 : n > INT_MAX ? INT_MAX : (int)n; }

/* Sentinels are COMMON blocks of mpif.h and variables of module mpi; these turn their addresses into the values of C. */
void *spxf_buffer(void *buffer);
MPI_Status *spxf_status(MPI_Fint *status);
MPI_Status *spxf_statuses(MPI_Fint *statuses);
MPI_Fint *spxf_weights(MPI_Fint *weights);
MPI_Fint *spxf_errcodes(MPI_Fint *errcodes);
int spxf_no_argv(const void *argv);
int spxf_no_argvs(const void *argvs);

/* Strings: without leading and trailing blanks, to be freed; and back, filled up with blanks. */
char *spxf_string(const char *text, size_t length);
void spxf_fill(char *text, size_t length, const char *from);
/* An array of strings of one length, up to the first blank one or count (if not negative): ended by NULL, freed by spxf_free_strings. */
char **spxf_strings(const char *text, size_t length, int count, int stride);
void spxf_free_strings(char **strings);

/* Numbers of entries in arrays that have one for each process. */
int spxf_peers(MPI_Fint comm);
int spxf_neighbors(MPI_Fint comm, int out);
int spxf_cart_dims(MPI_Fint comm);
void spxf_count_from_1(MPI_Fint *indices, MPI_Fint n, int err);

#endif
