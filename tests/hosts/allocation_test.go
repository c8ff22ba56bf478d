package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// TestAllocations runs a job on the hosts that the files of batch systems name, in the form of each, reached by the command that each has for it. The commands are
// stand-ins that do what scripts/hosts rsh does.
func TestAllocations(t *testing.T) {
	b, where := newBed(t, 2), program(t, "where")
	one, two := b.host(1), b.host(2)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// The host and the line are the last two arguments of either; what was called says so.
	for _, name := range []string{"ssh", "qrsh"} {
		write(name, fmt.Sprintf("#!/bin/bash\necho \"%s $*\" >>%s/called\nexec %s rsh \"${@: -2:1}\" \"${@: -1}\"\n", name, dir, script()), 0o777)
	}
	lines := write("lines", fmt.Sprintf("%s\n%s\n%s\n", one, two, two), 0o666)
	slots := write("slots", fmt.Sprintf("# made by the operator\n%s slots=1\n%s slots=2\n", one, two), 0o666)
	colons := write("colons", fmt.Sprintf("%s:1\n%s:2\n", one, two), 0o666)
	queues := write("queues", fmt.Sprintf("%s 1 all.q@%s UNDEFINED\n%s 2 all.q@%s <NULL>\n", one, one, two, two), 0o666)
	for _, c := range []struct{ name, env, by string }{
		{"PBS", "PBS_NODEFILE=" + lines, "ssh "},
		{"LSF", "LSB_DJOB_HOSTFILE=" + lines, "ssh "},
		{"LSF, variable", fmt.Sprintf("LSB_MCPU_HOSTS=%s 1 %s 2", one, two), "ssh "},
		{"SGE", "PE_HOSTFILE=" + queues, "qrsh -inherit -V " + two},
		{"Operator, MPICH", "HYDRA_HOST_FILE=" + colons, "ssh "},
		{"Operator, Intel MPI", "I_MPI_HYDRA_HOST_FILE=" + colons, "ssh "},
		{"Operator, Open MPI", "OMPI_MCA_orte_default_hostfile=" + slots, "ssh "},
		{"SPX_HOSTFILE", "SPX_HOSTFILE=" + slots, "ssh "},
	} {
		t.Run(c.name, func(t *testing.T) {
			os.Remove(filepath.Join(dir, "called"))
			args := []string{script(), "on", one, filepath.Join(harness.Build(t), "bin/spxrun"), where}
			o := harness.Run(t, harness.Command{Args: args, Env: []string{c.env, "SPX_SPIN=0", "PATH=" + dir + ":" + os.Getenv("PATH")}})
			check(t, o, 0, []string{
				fmt.Sprintf("rank 0 of 3 on %s shares with 1, sum 3", one),
				fmt.Sprintf("rank 1 of 3 on %s shares with 2, sum 3", two),
				fmt.Sprintf("rank 2 of 3 on %s shares with 2, sum 3", two),
			})
			called, err := os.ReadFile(filepath.Join(dir, "called"))
			if err != nil || strings.Count(string(called), "\n") != 1 || !strings.HasPrefix(string(called), c.by) || !strings.Contains(string(called), " "+two+" ") {
				t.Errorf("called: %q, %v; want one line that begins with %q", called, err, c.by)
			}
		})
	}
}
