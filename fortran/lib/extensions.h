/* Routines of the extensions: their names have no prefix of MPI's. */
#ifndef SPXF_EXTENSIONS_H
#define SPXF_EXTENSIONS_H

#include "f77.h"
#include <mpi-ext.h>

#undef F77
#undef F08
#undef CALL
#ifdef SPX_PROFILE
#define F77(name)  p##name##_
#define F08(name)  p##name##_f08_
#define CALL(name) PASTE(P, name)
#else
#define F77(name)  name##_
#define F08(name)  name##_f08_
#define CALL(name) name
#endif

#endif
