package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"libspx/launch/progress"
)

const (
	suitePackage = "mpich"
	suiteVersion = "4.0.2-3"
	suiteFolder  = "mpich-4.0.2/test/mpi"
)

// suite is the unpacked and configured test-suite in the cache.
type suite struct {
	root  string // the repository
	spx   string // our build folder
	cache string
}

func (s suite) source() string { return filepath.Join(s.cache, "src", suiteFolder) }
func (s suite) tree() string   { return filepath.Join(s.cache, "build") }

// treeOf is the folder in which the suite was configured for the language of a folder's programs.
func (s suite) treeOf(dir string) string {
	if language, _, _ := strings.Cut(dir, "/"); strings.Contains(" "+fortranDirs+" ", " "+language+" ") {
		return filepath.Join(s.cache, "build-fortran")
	}
	return s.tree()
}

// cacheFolder is $SPX_CONFORMANCE, or a folder that this user may write.
func cacheFolder() string {
	if dir := os.Getenv("SPX_CONFORMANCE"); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/var/cache/spx-conformance"
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "spx-conformance")
}

// lock keeps others that use the same cache out until the function that it returns is called.
func (s suite) lock() (unlock func(), err error) {
	if err := os.MkdirAll(s.cache, 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.cache, ".lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// The suite is configured for a compiler in the cache that stands for the mpicc of the build in hand, so that one cache serves
// several builds: the programs find the library by LD_LIBRARY_PATH.
//
// The programs of folder ft take MPICH's extensions for a part of mpi.h.
const compiler = `#!/bin/sh
case ${0##*/}$PWD in mpicc*/ft) set -- -include mpi-ext.h "$@" ;; esac
exec "$SPX_BUILD/bin/${0##*/}" "$@"
`

// prepare fetches, unpacks and configures the suite for the languages of some folders; done parts are kept.
func (s suite) prepare(folders []string) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if !isDir(s.source()) {
		fmt.Println("fetching", suitePackage, suiteVersion)
		src := filepath.Join(s.cache, "src")
		out, err := exec.Command(filepath.Join(s.root, "scripts/debian-source"), suitePackage, suiteVersion, src).CombinedOutput()
		if err != nil {
			return fmt.Errorf("fetching the suite: %v: %s", err, out)
		}
		lines := strings.Fields(string(out))
		if err := s.sh(src, "tar", "xf", lines[len(lines)-1], suiteFolder); err != nil {
			return err
		}
	}
	for _, name := range []string{"mpicc", "mpif77", "mpifort"} {
		if err := os.WriteFile(filepath.Join(s.cache, name), []byte(compiler), 0o777); err != nil {
			return err
		}
	}
	made := map[string]bool{}
	for _, dir := range folders {
		if tree := s.treeOf(dir); !made[tree] {
			made[tree] = true
			if err := s.configure(tree, tree != s.tree()); err != nil {
				return err
			}
		}
	}
	return nil
}

// configure makes the suite's folder for one language, with its support libraries.
func (s suite) configure(tree string, fortran bool) error {
	mpicc := filepath.Join(s.cache, "mpicc")
	language, libraries := []string{"--enable-fortran=no"}, []string{"util", "dtpools"}
	if fortran {
		language = []string{"--enable-fortran=all", "F77=gfortran", "FC=gfortran", "MPIF77=" + filepath.Join(s.cache, "mpif77"), "MPIFC=" + filepath.Join(s.cache, "mpifort")}
		libraries = []string{"util"}
	}
	stamp := filepath.Join(tree, ".configured")
	if made, err := os.ReadFile(stamp); err != nil || string(made) != mpicc {
		fmt.Println("configuring the suite in", tree)
		if err := os.RemoveAll(tree); err != nil {
			return err
		}
		if err := os.MkdirAll(tree, 0o777); err != nil {
			return err
		}
		// Its threads wait for each other by pthread_barrier rather than by trying a mutex in a loop: with more threads than
		// processors a line takes a second instead of a minute.
		args := append([]string{"--disable-maintainer-mode", "CPPFLAGS=-DHAVE_PTHREAD_BARRIER_INIT=1", "CC=gcc", "MPICC=" + mpicc, "MPIEXEC=spxrun",
			"--disable-cxx", "--enable-threads=multiple", "--enable-strictmpi", "--enable-checkerrors"}, language...)
		if err := s.runConfigure(tree, args); err != nil {
			return err
		}
		if err := os.WriteFile(stamp, []byte(mpicc), 0o666); err != nil {
			return err
		}
	}
	for _, dir := range libraries {
		if err := s.sh(tree, "make", "-j2", "-C", dir); err != nil {
			return err
		}
	}
	return nil
}

// runConfigure runs a copy of the suite's configure that takes the folder f08 also when it is not part of a build of MPICH.
func (s suite) runConfigure(tree string, args []string) error {
	text, err := os.ReadFile(filepath.Join(s.source(), "configure"))
	if err != nil {
		return err
	}
	const alone = ` -a "$FROM_MPICH" = "yes"`
	script := filepath.Join(tree, "configure")
	if err := os.WriteFile(script, []byte(strings.ReplaceAll(string(text), alone, "")), 0o777); err != nil {
		return err
	}
	return s.sh(tree, "sh", append([]string{script, "--srcdir=" + s.source()}, args...)...)
}

// build makes the programs of the lines' folders that can be made; what cannot is reported with its line. Programs that
// are there stay: the standard ABI makes them fit every build of the library.
func (s suite) build(tests []testLine) {
	unlock, err := s.lock()
	if err != nil {
		return // make of the single line will say so
	}
	defer unlock()
	var folders []string
	for _, l := range tests {
		if !slices.Contains(folders, l.dir) {
			folders = append(folders, l.dir)
		}
	}
	bar := progress.Start("building the suite", len(folders))
	defer bar.End()
	for _, dir := range folders {
		bar.Say(dir)
		cmd := exec.Command("make", "-k", "-j2", "-C", filepath.Join(s.treeOf(dir), dir))
		cmd.Env = cleanEnv(s.spx)
		cmd.Run()
		bar.Step()
	}
}

// sh runs a command; its output goes into a log file in the cache and, at the end, into the error.
func (s suite) sh(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = cleanEnv(s.spx)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	os.WriteFile(filepath.Join(s.cache, filepath.Base(name)+".log"), out.Bytes(), 0o666)
	if err != nil {
		text := out.String()
		return fmt.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text[max(0, len(text)-1500):])
	}
	return nil
}

// cleanEnv is the environment without what our own make passes down.
func cleanEnv(spx string) []string {
	var env []string
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "MAKE") || strings.HasPrefix(e, "MFLAGS") || strings.HasPrefix(e, "CGO_") || strings.HasPrefix(e, "SPX_BUILD=") || strings.HasPrefix(e, "LD_LIBRARY_PATH=") {
			continue
		}
		env = append(env, e)
	}
	return append(env, "LD_LIBRARY_PATH="+filepath.Join(spx, "lib"), "SPX_BUILD="+spx)
}
