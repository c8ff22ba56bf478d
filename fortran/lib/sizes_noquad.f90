! In place of sizes_quad.f90 where the compiler has no real numbers of 16 bytes: generic names without procedures.
module mpi_sizes_quad
  implicit none

  interface MPI_SIZEOF
  end interface
  interface PMPI_SIZEOF
  end interface
end module mpi_sizes_quad
