package systems

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// cluster is a system file of one cluster with standbys, whose ranks die as the program is told.
func cluster(t *testing.T, ranks, standbys, steps int, victims string, env ...string) harness.Outcome {
	t.Helper()
	return clusterWith(t, ranks, standbys, steps, victims, "", env...)
}

// clusterWith is cluster, and says what happens beside the death.
func clusterWith(t *testing.T, ranks, standbys, steps int, victims, with string, env ...string) harness.Outcome {
	t.Helper()
	text := fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"%d\", \"%d\", %q, %q]\nranks = %[2]d\nstandbys = %[6]d\n",
		program(t, "takeover"), ranks, steps, victims, with, standbys)
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		text += fmt.Sprintf("environment = { %s = %q }\n", name, value)
	}
	return file(t, text)
}

// worked tells whether all steps were done, and how long takeovers took.
func worked(t *testing.T, o harness.Outcome, steps int) (times []float64) {
	t.Helper()
	if o.Status != 0 || !strings.Contains(o.Stdout, fmt.Sprintf("done %d ", steps)) {
		t.Fatalf("exit status %d\n%s", o.Status, o.Text())
	}
	for _, line := range strings.Split(o.Stdout, "\n") {
		if text, ok := strings.CutPrefix(line, "takeover "); ok {
			ms, err := strconv.ParseFloat(strings.TrimSuffix(text, " ms"), 64)
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, ms)
		}
	}
	return times
}

// A standby takes the rank of one that dies, in MPI_COMM_WORLD and in every communicator made of it, while the system runs: also that of rank 0, several
// at once, and one after another.
func TestTakeover(t *testing.T) {
	for name, c := range map[string]struct {
		ranks, standbys, takeovers int
		victims                    string
		env                        []string
	}{
		"nobody":            {3, 1, 0, ",", nil},
		"one":               {4, 1, 1, ",2@3,", nil},
		"rank 0":            {4, 1, 1, ",0@3,", nil},
		"two at once":       {4, 2, 1, ",1@4,3@4,", nil},
		"one after another": {4, 3, 3, ",1@2,0@5,3@9,", nil},
		"tcp":               {4, 2, 2, ",0@2,2@6,", []string{"SPX_TRANSPORTS=tcp"}},
	} {
		t.Run(name, func(t *testing.T) {
			times := worked(t, cluster(t, c.ranks, c.standbys, 12, c.victims, c.env...), 12)
			t.Logf("takeovers in %.1f ms", times)
			if len(times) < c.takeovers {
				t.Errorf("%d takeovers, there should be %d", len(times), c.takeovers)
			}
		})
	}
}

// The agent to which MPISP_Repair says who has which rank gets no processor for longer than a few seconds: it lives, and is waited for.
func TestTakeoverWaitsForAgent(t *testing.T) {
	began := time.Now()
	worked(t, clusterWith(t, 3, 1, 6, ",2@3,", "busy"), 6)
	if took := time.Since(began); took < 6*time.Second {
		t.Errorf("%v: the agent did not stand still", took)
	}
}

// When there is no standby left, the cluster stops.
func TestNoStandbyLeft(t *testing.T) {
	o := cluster(t, 3, 1, 12, ",1@3,2@7,")
	if o.Status == 0 || !strings.Contains(o.Stderr, "rank 1 of cluster work") || !strings.Contains(o.Stderr, "a standby takes its place") || !strings.Contains(o.Stderr, "cluster work is ended") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}

// A communicator that not all of its members have made, at one of which it has come to be only when the revocation of MPI_COMM_WORLD had come as well, is revoked at all that have it when they have met: they would wait in it for one that makes another one.
func TestHalfMadeIsRevoked(t *testing.T) {
	o := file(t, fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nranks = 3\nstandbys = 1\n", program(t, "halfmade")))
	if o.Status != 0 || !strings.Contains(o.Stdout, "made again\n") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}
