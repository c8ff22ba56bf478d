/* version.h - the version of libspx: MPI_Get_library_version, the compiler wrappers, pkg-config and
 * all that is installed read it here. */
#define SPX_VERSION      "0.1.0"
#define SPX_VERSION_DATE "November 22, 2026" /* of the manual pages, as they have dates */
