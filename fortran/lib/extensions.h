/* Routines of the extensions: their names have no prefix of MPI's. */
#ifndef SPXF_EXTENSIONS_H
#define SPXF_EXTENSIONS_H

#include "cdesc.h"
#include "mpisp.h"
#include <stdint.h>

#undef F77
#undef F08
#undef CALL
#undef CDESC
#ifdef SPX_PROFILE
#define F77(name)   p##name##_
#define F08(name)   p##name##_f08_
#define CDESC(name) p##name##_cdesc
#define CALL(name)  PASTE(P, name)
#else
#define F77(name)   name##_
#define F08(name)   name##_f08_
#define CDESC(name) name##_cdesc
#define CALL(name)  name
#endif

/* As MPI_Comm_toint and MPI_Comm_fromint. */
static inline MPIX_Rankset MPIX_Rankset_fromint(MPI_Fint set) { return (MPIX_Rankset)(uintptr_t)(uint32_t)set; }
static inline MPI_Fint MPIX_Rankset_toint(MPIX_Rankset set) { return (MPI_Fint)(uintptr_t)set; }
static inline MPIX_Checkpoint MPIX_Checkpoint_fromint(MPI_Fint c) { return (MPIX_Checkpoint)(uintptr_t)(uint32_t)c; }
static inline MPI_Fint MPIX_Checkpoint_toint(MPIX_Checkpoint c) { return (MPI_Fint)(uintptr_t)c; }

#endif
