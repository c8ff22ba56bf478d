// Command gen makes the Fortran interface from the table of package api, in fortran/lib: the routines mpi_*_ that mpif.h and module mpi call (zz_f77.c), mpif.h
// itself, module mpi (zz_mpi.f90); of module mpi_f08 constants and types (zz_f08_types.f90), interfaces (zz_mpi_f08.f90), the procedures with choice buffers
// (zz_f08ts.f90) and what is behind them (zz_cdesc.c). What no rule covers is written by hand in fortran/lib/special.c.
//
//	go run ./fortran/gen [DIRECTORY]
//
// The directory is the one that the files are written below: the project's, unless another one is given.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"libspx/api"
)

//go:generate go run . ../..

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fortran/gen:", err)
		os.Exit(1)
	}
}

func run() error {
	t, err := api.Load()
	if err != nil {
		return err
	}
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	wrappers, err := f77(t)
	if err != nil {
		return err
	}
	header, err := mpifh(t)
	if err != nil {
		return err
	}
	module, err := moduleMPI(t)
	if err != nil {
		return err
	}
	files := map[string]string{"fortran/lib/zz_mpi.f90": module, "fortran/lib/zz_f77.c": wrappers, "include/mpif.h": header, "fortran/lib/zz_f08_types.f90": moduleTypes(t)}
	if files["fortran/lib/zz_mpi_f08.f90"], err = moduleF08(t); err != nil {
		return err
	}
	if files["fortran/lib/zz_f08ts.f90"], err = shells(t); err != nil {
		return err
	}
	if files["fortran/lib/zz_cdesc.c"], err = descriptors(t); err != nil {
		return err
	}
	if files["fortran/lib/zz_extensions.c"], err = extensionRoutines(t); err != nil {
		return err
	}
	if files["fortran/lib/zz_extensions_cdesc.c"], err = extensionDescriptors(t); err != nil {
		return err
	}
	if files["fortran/lib/zz_f08ts_ext.f90"], err = extensionShells(t); err != nil {
		return err
	}
	if files["fortran/lib/zz_mpi_ext.f90"], err = extensionModules(t); err != nil {
		return err
	}
	files["include/mpif-ext.h"] = extensionInclude(t)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
