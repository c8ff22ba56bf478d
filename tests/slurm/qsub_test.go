package slurm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// TestQsub submits batch scripts with the options of PBS, by the qsub that Slurm brings for users who come from there. The job's variables are Slurm's; a file like that of PBS
// is made within the job by another program of that package, so that a list of nodes that a batch system has really given is taken as PBS_NODEFILE, too.
func TestQsub(t *testing.T) {
	c := newCluster(t)
	root := harness.Debian(t, "slurm-wlm-torque")
	libraries := harness.Libraries(root)
	modules, err := filepath.Glob(libraries + "/perl5/*")
	if err != nil || len(modules) != 1 {
		t.Fatalf("folders of Perl modules: %v, %v", modules, err)
	}
	sbatch, err := exec.LookPath("sbatch")
	if err != nil {
		t.Fatal(err)
	}
	bin := harness.SharedDir(t) // qsub calls the sbatch that is beside it
	for name, to := range map[string]string{"qsub": filepath.Join(root, "usr/bin/qsub"), "sbatch": sbatch} {
		if err := os.Symlink(to, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	where := program(t, "tests/hosts/testdata", "where")
	mpirun := filepath.Join(harness.Build(t), "bin/mpirun")
	var want []string
	for rank, node := range []int{1, 1, 2, 2} {
		want = append(want, fmt.Sprintf("rank %d of 4 on %s%d shares with 2, sum 6", rank, c.name, node))
	}
	for _, test := range []struct{ name, line string }{
		{"SLURM_JOB_NODELIST", mpirun + " " + where},
		{"PBS_NODEFILE", fmt.Sprintf("unset SLURM_JOB_ID SLURM_JOBID\nPBS_NODEFILE=$(SLURM_NODELIST=$SLURM_JOB_NODELIST %s/usr/bin/generate_pbs_nodefile) || exit\n"+
			"export PBS_NODEFILE SPX_RSH='%s rsh'\n%s %s\nstatus=$?\nrm \"$PBS_NODEFILE\"\nexit $status", root, filepath.Join(harness.Root(), "scripts/hosts"), mpirun, where)},
	} {
		t.Run(test.name, func(t *testing.T) {
			job, out := filepath.Join(harness.SharedDir(t), "job"), filepath.Join(c.dir, test.name)
			if err := os.WriteFile(job, []byte("#!/bin/sh\n"+test.line+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := c.on(filepath.Join(bin, "qsub"), "-l", "select=2:ncpus=2:mpiprocs=2", "-W", "block=true", "-j", "oe", "-o", out, job)
			cmd.Env = append(cmd.Env, "PERL5LIB="+modules[0]+":"+filepath.Join(root, "usr/share/perl5"), "LD_LIBRARY_PATH="+libraries)
			o := harness.Run(t, cmd)
			printed, err := os.ReadFile(out)
			if got := harness.Lines(string(printed)); o.Status != 0 || err != nil || !slices.Equal(got, want) {
				t.Errorf("want\n%s\n%v\n%s\n%s", strings.Join(want, "\n"), err, printed, o.Text())
			}
		})
	}
}
