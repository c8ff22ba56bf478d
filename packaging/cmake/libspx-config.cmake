# find_package(libspx [COMPONENTS C CXX Fortran]): libspx by name, where find_package(MPI) would take any MPI.
#
# Targets:    libspx::mpi_c, libspx::mpi_cxx, libspx::mpi_fort (if Fortran was built)
# Variables:  libspx_VERSION, libspx_PREFIX, libspx_MPI_VERSION (5.0)
#             libspx_MPIEXEC (spxrun), libspx_C_COMPILER, libspx_CXX_COMPILER, libspx_Fortran_COMPILER (mpicc and its like)
#
# Everything is found by where this file stands: the tree may be moved.
get_filename_component(libspx_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." REALPATH)
set(libspx_MPI_VERSION 5.0)
set(libspx_MPIEXEC "${libspx_PREFIX}/bin/spxrun")
set(libspx_C_COMPILER "${libspx_PREFIX}/bin/mpicc")
set(libspx_CXX_COMPILER "${libspx_PREFIX}/bin/mpicxx")
set(libspx_Fortran_COMPILER "${libspx_PREFIX}/bin/mpifort")

set(libspx_C_FOUND TRUE)
set(libspx_CXX_FOUND TRUE)
set(libspx_Fortran_FOUND FALSE)
if(EXISTS "${libspx_PREFIX}/lib/libmpifort_abi.so.1")
  set(libspx_Fortran_FOUND TRUE)
endif()

foreach(_spx_file lib/libmpi_abi.so.1 include/mpi.h)
  if(NOT EXISTS "${libspx_PREFIX}/${_spx_file}")
    set(libspx_FOUND FALSE)
    set(libspx_NOT_FOUND_MESSAGE "${libspx_PREFIX}/${_spx_file} is missing: this file was moved without the tree around it")
    return()
  endif()
endforeach()

foreach(_spx_component IN LISTS libspx_FIND_COMPONENTS)
  if(libspx_FIND_REQUIRED_${_spx_component} AND NOT libspx_${_spx_component}_FOUND)
    set(libspx_FOUND FALSE)
    set(libspx_NOT_FOUND_MESSAGE "libspx in ${libspx_PREFIX} has no component ${_spx_component} (C, CXX, Fortran)")
    return()
  endif()
endforeach()

if(NOT TARGET libspx::mpi_c)
  add_library(libspx::mpi_c SHARED IMPORTED)
  set_target_properties(libspx::mpi_c PROPERTIES
    IMPORTED_LOCATION "${libspx_PREFIX}/lib/libmpi_abi.so.1"
    IMPORTED_SONAME libmpi_abi.so.1
    INTERFACE_INCLUDE_DIRECTORIES "${libspx_PREFIX}/include")
  add_library(libspx::mpi_cxx INTERFACE IMPORTED)
  set_target_properties(libspx::mpi_cxx PROPERTIES INTERFACE_LINK_LIBRARIES libspx::mpi_c)
endif()

if(libspx_Fortran_FOUND AND NOT TARGET libspx::mpi_fort)
  add_library(libspx::mpi_fort SHARED IMPORTED)
  # Old programs pass arguments of different types to one routine, which gfortran 10 and later refuse unless told not to.
  set_target_properties(libspx::mpi_fort PROPERTIES
    IMPORTED_LOCATION "${libspx_PREFIX}/lib/libmpifort_abi.so.1"
    IMPORTED_SONAME libmpifort_abi.so.1
    INTERFACE_INCLUDE_DIRECTORIES "${libspx_PREFIX}/include"
    INTERFACE_COMPILE_OPTIONS "$<$<AND:$<COMPILE_LANGUAGE:Fortran>,$<STREQUAL:${CMAKE_Fortran_COMPILER_ID},GNU>>:-fallow-argument-mismatch>"
    INTERFACE_LINK_LIBRARIES libspx::mpi_c)
endif()
unset(_spx_file)
unset(_spx_component)
