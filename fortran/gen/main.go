// Command gen makes the Fortran interface from the table of package api: the routines mpi_*_ that mpif.h and module mpi call
// (fortran/lib/zz_f77.c), mpif.h itself, and the module (fortran/lib/zz_mpi.f90). What no rule covers is written by hand in fortran/lib/special.c.
//
//	go run ./fortran/gen
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"libspx/api"
)

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
	root, err := os.Getwd()
	if err != nil {
		return err
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
	for name, text := range map[string]string{"fortran/lib/zz_mpi.f90": module, "fortran/lib/zz_f77.c": wrappers, "include/mpif.h": header} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
