-- libspx @VERSION@ for Lmod: module use PREFIX/share/lmod; module load libspx
-- Everything is found by where this file stands: the tree may be moved.
local file = myFileName()
local prefix = pathJoin(file:match("^(.*)/[^/]*$"), "../../..")
prefix = prefix:gsub("/[^/]+/[^/]+/[^/]+/%.%./%.%./%.%.$", "")

help([[libspx @VERSION@, an MPI library with the MPI-5.0 standard ABI: mpicc, mpifort, spxrun.
Programs of other libraries with that ABI (libmpi_abi.so.1) run on it while this module is loaded.]])
whatis("Name: libspx")
whatis("Version: @VERSION@")
whatis("Description: MPI-5.0 with the standard ABI")
family("mpi")

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("LD_LIBRARY_PATH", pathJoin(prefix, "lib"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib/pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
setenv("LIBSPX_DIR", prefix)
setenv("MPI_HOME", prefix)
