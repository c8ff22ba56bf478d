package libraries

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// HDF5 in parallel, in C and Fortran.
var hdf5 = library{name: "hdf5", pkg: "hdf5", version: "1.10.8+repack1-1", folder: "hdf5-1.10.8+repack1", apart: true, steps: [][]string{
	{"../hdf5-1.10.8+repack1/configure", "CC=mpicc", "FC=mpif90", "--enable-parallel", "--enable-fortran", "--disable-cxx", "--disable-hl", "--disable-shared",
		"--enable-build-mode=production", "--without-zlib"},
	{"make", "-j2", "-C", "src"},
	{"make", "-j2", "-C", "test", "libh5test.la"},
	{"make", "-j2", "-C", "testpar", "t_mpi", "t_bigio", "testphdf5", "t_cache", "t_cache_image", "t_pread", "t_pshutdown", "t_prestart", "t_init_term", "t_shapesame",
		"t_filters_parallel", "t_pflush1", "t_pflush2"},
	{"make", "-j2", "-C", "fortran/src"},
	{"make", "-j2", "-C", "fortran/test", "libh5test_fortran.la"},
	{"make", "-C", "fortran/testpar", "parallel_test"},
}}

// The programs of testpar, in the order in which HDF5 itself runs them: t_prestart reads what t_pshutdown wrote, t_pflush2 what t_pflush1 wrote.
var hdf5Programs = []program{
	{args: []string{"./t_mpi"}, says: "MPI tests finished with no errors"},
	{args: []string{"./t_bigio"}, says: "(?s)Testing Dataset1.*Read Testing Dataset4 with Point selection.*Express test mode on"},
	{args: []string{"./testphdf5"}, says: "PHDF5 tests finished with no errors", limit: 4 * time.Minute},
	{args: []string{"./t_cache"}, says: "metadata cache tests finished with no failures", least: 15, limit: 4 * time.Minute, ranks: 3},
	{args: []string{"./t_pread"}, says: "tests finished with no failures", least: 2, ranks: 3},
	{args: []string{"./t_pshutdown"}, least: 1},
	{args: []string{"./t_prestart"}, least: 1},
	{args: []string{"./t_init_term"}, least: 1},
	{args: []string{"./t_shapesame"}, says: "Shape Same tests finished with no errors", limit: 4 * time.Minute},
	{args: []string{"./t_filters_parallel"}, says: "All Parallel Filters tests passed"},
	{args: []string{"./t_pflush1"}, least: 1, dies: true},
	{args: []string{"./t_pflush2"}, least: 1},
}

// t_cache_image, which spends minutes in children that are HDF5 without MPI, and starts them by its name in the current folder: LIBS=hdf5-cache-image.
func TestHDF5CacheImage(t *testing.T) {
	need(t, "hdf5-cache-image")
	dir := filepath.Join(hdf5.ready(t), "testpar")
	files := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "t_cache_image"), filepath.Join(files, "t_cache_image")); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	checks := program{args: []string{"./t_cache_image"}, says: "cache image tests finished with no failures", least: 5, limit: 9 * time.Minute}.run(t, files, 4, nil)
	result(t, "HDF5", hdf5.version, "testpar/t_cache_image on 4 ranks, as it comes", fmt.Sprintf("%d lines PASSED", checks), time.Since(start))
}

func TestHDF5(t *testing.T) {
	need(t, "hdf5")
	dir := filepath.Join(hdf5.ready(t), "testpar")
	for _, way := range ways {
		for _, n := range []int{2, 4, 6} {
			if way.env != nil && n != 4 {
				continue
			}
			t.Run(fmt.Sprintf("%s/n=%d", way.name, n), func(t *testing.T) { runHDF5(t, dir, n, way.name, way.env) })
		}
	}
}

// Its tests of the Fortran interface in parallel: a dataset written by hyperslabs, contiguous and in chunks, independently and collectively, and many datasets.
func TestHDF5Fortran(t *testing.T) {
	need(t, "hdf5")
	dir := filepath.Join(hdf5.ready(t), "fortran/testpar")
	for _, way := range ways {
		t.Run(way.name+"/n=4", func(t *testing.T) {
			start := time.Now()
			checks := program{args: []string{filepath.Join(dir, "parallel_test")}, least: 5}.run(t, t.TempDir(), 4, way.env)
			result(t, "HDF5", hdf5.version, "fortran/testpar on 4 ranks, "+way.name, fmt.Sprintf("%d checks", checks), time.Since(start))
		})
	}
}

func runHDF5(t *testing.T, dir string, n int, way string, env []string) {
	start, programs, passed, checks := time.Now(), 0, 0, 0
	files := t.TempDir() // the programs leave some behind
	for _, p := range hdf5Programs {
		if n < p.ranks { // it would say that it needs more
			continue
		}
		programs++
		ok := t.Run(p.args[0][2:], func(t *testing.T) {
			p.args = []string{filepath.Join(dir, p.args[0])}
			checks += p.run(t, files, n, env)
		})
		if ok {
			passed++
		}
	}
	result(t, "HDF5", hdf5.version, fmt.Sprintf("testpar on %d ranks, %s", n, way), fmt.Sprintf("%d of %d programs, %d lines PASSED", passed, programs, checks), time.Since(start))
}
