# A recipe for Spack: put this folder as packages/libspx into a repository of yours (spack repo create), then: spack install libspx
from spack.package import *


class Libspx(MakefilePackage):
    """libspx: an MPI library with the MPI-5.0 standard ABI (libmpi_abi.so.1), written in Go with a data plane in C."""

    homepage = "https://www.mpi-forum.org"
    git = "file:///usr/local/src/libspx"

    version("main", branch="main")

    provides("mpi@:5.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build")
    depends_on("go@1.26:", type="build")
    depends_on("gmake", type="build")

    requires("platform=linux")

    def edit(self, spec, prefix):
        pass

    def build(self, spec, prefix):
        make("build")

    def install(self, spec, prefix):
        make("install", "PREFIX={0}".format(prefix))

    def setup_dependent_package(self, module, dependent_spec):
        bindir = self.prefix.bin
        self.spec.mpicc = join_path(bindir, "mpicc")
        self.spec.mpicxx = join_path(bindir, "mpicxx")
        self.spec.mpifc = join_path(bindir, "mpifort")
        self.spec.mpif77 = join_path(bindir, "mpif77")

    def setup_run_environment(self, env):
        env.set("MPI_HOME", self.prefix)

    def setup_dependent_build_environment(self, env, dependent_spec):
        env.set("SPX_CC", spack_cc)
        env.set("SPX_CXX", spack_cxx)
        env.set("SPX_FC", spack_fc)
