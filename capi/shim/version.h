/* version.h - the version of libspx: MPI_Get_library_version, the compiler wrappers and pkg-config read it here. */
#define SPX_VERSION "0.1"
