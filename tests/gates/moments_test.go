package gates

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// A job whose processes may be killed: spxrun, its agent, a rank; each of them at random moments from before MPI_Init to after MPI_Finalize. With --with-ft the
// job outlives spxrun and ranks, with --detach spxrun and its keeper, else it ends; whatever it was, nothing hangs and nothing stays.
func TestDeathAtRandomMoments(t *testing.T) {
	program := harness.Compile(t, "examples/farm", []string{filepath.Join(harness.Root(), "examples/farm.c")}, "-O2", "-lm")
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	for _, c := range []struct {
		name   string
		option []string
		victim func(spxrun int, mark string) []int
	}{
		{"spxrun", nil, func(spxrun int, _ string) []int { return []int{spxrun} }},
		{"spxrun of a job that outlives it", []string{"--with-ft"}, func(spxrun int, _ string) []int { return []int{spxrun} }},
		{"agent", nil, agents},
		{"agent of a job with failures", []string{"--with-ft"}, agents},
		{"rank", nil, ranks},
		{"spxrun of a detached job", []string{"--detach"}, func(spxrun int, _ string) []int { return []int{spxrun} }},
		{"keeper of a detached job", []string{"--detach"}, keepers},
		{"agent of a detached job", []string{"--detach"}, agents},
		{"rank of a detached job", []string{"--detach", "--with-ft"}, ranks},
		{"rank of a job that outlives it", []string{"--with-ft"}, ranks},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 6 {
				moment := time.Duration(random.IntN(200_000)) * time.Microsecond
				mark := harness.Mark(t)
				cmd := exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), append(slices.Clone(c.option), "-n", "4", program, "3000")...)
				cmd.Env, cmd.Dir = append(os.Environ(), mark), t.TempDir()
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(moment) // what is tested is any moment
				if list := c.victim(cmd.Process.Pid, mark); len(list) > 0 {
					syscall.Kill(list[random.IntN(len(list))], syscall.SIGKILL) //nolint:errcheck // it may have ended
				}
				watchdog := harness.AfterFunc(time.Minute, func() {
					t.Errorf("spxrun hangs, %v after the start of which something was killed", moment)
					cmd.Process.Kill() //nolint:errcheck // it is this test's own
				})
				cmd.Wait() //nolint:errcheck // it may end in any way
				watchdog.Stop()
				harness.NothingLeft(t, mark, 30*time.Second)
			}
		})
	}
}

func agents(spxrun int, mark string) []int {
	return slices.DeleteFunc(harness.Marked(mark, "spx-agent"), func(pid int) bool { return pid == spxrun })
}

func keepers(_ int, mark string) []int { return harness.Marked(mark, "spx-keeper") }

func ranks(spxrun int, mark string) []int {
	agents, keepers := agents(spxrun, mark), keepers(spxrun, mark)
	return slices.DeleteFunc(harness.Marked(mark, ""), func(pid int) bool {
		return pid == spxrun || slices.Contains(agents, pid) || slices.Contains(keepers, pid)
	})
}
