package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"libspx/api"
	"libspx/tests/harness"
)

// pages are the manual pages that are more than a reference to another one; those must lead to one that is there.
func pages(t *testing.T, man string) (list []string) {
	t.Helper()
	all, _ := filepath.Glob(man + "/man*/*")
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		to, link := strings.CutPrefix(string(text), ".so ")
		if !link {
			list = append(list, file)
			continue
		}
		if target, err := os.ReadFile(filepath.Join(man, strings.TrimSpace(to))); err != nil || bytes.HasPrefix(target, []byte(".so ")) {
			t.Errorf("%s leads to %q (%v)", file, to, err)
		}
	}
	return list
}

func TestManualPages(t *testing.T) {
	man := filepath.Join(installed(t), "share/man")
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range tables.Functions {
		if _, err := os.Stat(filepath.Join(man, "man3", f.Name+".3")); err != nil {
			t.Errorf("no page: %v", err)
		}
	}
	programs, _ := os.ReadDir(filepath.Join(installed(t), "bin"))
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(man, "man1", p.Name()+".1")); err != nil {
			t.Errorf("no page: %v", err)
		}
	}
	list := pages(t, man)
	if len(list) < 500 {
		t.Fatalf("only %d pages", len(list))
	}
	t.Run("mandoc", func(t *testing.T) {
		harness.Need(t, "packaging", "mandoc")
		cmd := exec.Command("mandoc", append([]string{"-T", "lint", "-W", "warning"}, list...)...)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("mandoc -T lint -W warning: %v\n%.4000s", err, out)
		}
	})
	t.Run("man", func(t *testing.T) {
		harness.Need(t, "packaging", "man", "nroff")
		for page, words := range map[string][]string{
			"man3/MPI_Isend.3":       {"MPI_Isend_c(const void *buf, MPI_Count count", "use mpi_f08", "MPI_ERR_RANK", "MPI_Send(3)"},
			"man3/MPIX_Comm_agree.3": {"mpi-ext.h", "bitwise AND"},
			"man1/spxrun.1":          {"--on-death HOW", "EXIT STATUS"},
			"man1/spxctl.1":          {"resize JOB M"},
			"man1/mpicc.1":           {"LD_LIBRARY_PATH"},
			"man7/libspx.7":          {"SPX_EAGER_MAX", "libmpi_abi.so.1"},
			"man3/MPI_Send_c.3":      {"MPI_Send_c"},
		} {
			cmd := exec.Command("man", "-l", page)
			cmd.Dir = man
			cmd.Env = append(os.Environ(), "MANWIDTH=120", "MAN_KEEP_FORMATTING=", "LC_ALL=C", "MANOPT=--warnings=mac,syntax,escape")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil || errs.Len() > 0 {
				t.Errorf("man -l %s: %v\n%s", page, err, errs.String())
			}
			for _, w := range words {
				if !strings.Contains(string(out), w) {
					t.Errorf("man -l %s does not show %q:\n%s", page, w, out)
				}
			}
		}
	})
}

// The text of a page must not be longer than the lines of a source may be, nor say nothing.
func TestManualPagesAreWhole(t *testing.T) {
	for _, file := range pages(t, filepath.Join(installed(t), "share/man")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, must := range []string{".Dd ", ".Sh NAME", ".Nd ", ".Sh DESCRIPTION"} {
			if !strings.Contains(string(text), must) {
				t.Errorf("%s has no %s", file, must)
			}
		}
		if strings.Contains(string(text), "%!") || strings.Contains(string(text), "@VERSION@") || strings.Contains(string(text), "@DATE@") {
			t.Errorf("%s has something that was to be filled in", file)
		}
	}
}
