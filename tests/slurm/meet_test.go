package slurm

import (
	"os"
	"path/filepath"
	"testing"

	"libspx/tests/harness"
)

// Jobs of srun's on two nodes meet one of spxrun's, and one of srun's on one node, over the network. The name service is on the first node.
func TestMeets(t *testing.T) {
	c, run := newCluster(t), spxrun(t)
	server := filepath.Join(c.dir, "names")
	harness.ServeNames(t, c.on().Args, server)
	bySrun := func(options ...string) func([]string, ...string) harness.Command {
		return func(env []string, words ...string) harness.Command {
			out, err := os.MkdirTemp(c.dir, "step-") // as in step
			if err == nil {
				err = os.Chmod(out, 0o777)
			}
			if err != nil {
				t.Fatal(err)
			}
			line := `d=$0; srun -Q -o "$d/%t.out" "$@"; s=$?; cat "$d"/*.out; exit $s`
			cmd := c.on(append(append([]string{"sh", "-c", line, out}, options...), words...)...)
			cmd.Env = append(cmd.Env, env...)
			return cmd
		}
	}
	bySpxrun := func(env []string, words ...string) harness.Command {
		cmd := c.on(append([]string{run, "--more-hosts", "-n", "2"}, words...)...)
		cmd.Env = append(cmd.Env, env...)
		return cmd
	}
	two := bySrun("--mpi=pmi2", "-N", "2", "-n", "2")
	t.Run("accept", func(t *testing.T) {
		(&harness.Meeting{Accepts: two, Connects: bySpxrun, Dir: c.dir, Server: server}).Run(t)
	})
	t.Run("connect", func(t *testing.T) {
		(&harness.Meeting{Accepts: bySpxrun, Connects: two, Dir: c.dir, Server: server}).Run(t)
	})
	t.Run("PMIx", func(t *testing.T) {
		harness.Need(t, "launchers", "/usr/lib/*/libpmix.so")
		one := bySrun("--mpi=pmix", "--export=ALL,SPX_MORE_HOSTS=1", "-N", "1", "-n", "2")
		(&harness.Meeting{Accepts: one, Connects: two, Dir: c.dir, Server: server}).Run(t)
	})
}
