#%Module1.0
## libspx @VERSION@ for environment-modules: module use PREFIX/share/modulefiles; module load libspx
## Everything is found by where this file stands: the tree may be moved.
set prefix [file normalize [file join [file dirname $ModulesCurrentModulefile] .. .. ..]]

proc ModulesHelp { } {
  puts stderr "libspx @VERSION@, an MPI library with the MPI-5.0 standard ABI: mpicc, mpifort, spxrun."
  puts stderr "Programs of other libraries with that ABI (libmpi_abi.so.1) run on it while this module is loaded."
}
module-whatis "libspx @VERSION@: MPI-5.0 with the standard ABI"
conflict mpi
conflict mpich
conflict openmpi
conflict libspx

prepend-path PATH $prefix/bin
prepend-path LD_LIBRARY_PATH $prefix/lib
prepend-path MANPATH $prefix/share/man
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path CMAKE_PREFIX_PATH $prefix
setenv LIBSPX_DIR $prefix
setenv MPI_HOME $prefix
