package systems

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

func transparent(t *testing.T, ranks, standbys, steps int, victims string, env ...string) harness.Outcome {
	t.Helper()
	return transparently(t, fmt.Sprintf("standbys = %d\n", standbys), ranks, steps, victims, env...)
}

// policy: what is done about deaths, as lines of the cluster's table.
func transparently(t *testing.T, policy string, ranks, steps int, victims string, env ...string) harness.Outcome {
	t.Helper()
	text := fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"%d\", \"%d\", %q]\nranks = %[2]d\ntakeover = \"transparent\"\n%[5]s",
		program(t, "transparent"), ranks, steps, victims, policy)
	var set []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		set = append(set, fmt.Sprintf("%s = %q", name, value))
	}
	text += "environment = { " + strings.Join(set, ", ") + " }\n"
	return file(t, text)
}

// takeovers reads how long they took from what programs print.
func takeovers(t *testing.T, out string) (ms []float64) {
	t.Helper()
	for _, line := range strings.Split(out, "\n") {
		if text, ok := strings.CutPrefix(line, "takeover "); ok {
			v, err := strconv.ParseFloat(strings.TrimSuffix(text, " ms"), 64)
			if err != nil {
				t.Fatal(err)
			}
			ms = append(ms, v)
		}
	}
	slices.Sort(ms)
	return ms
}

// Ranks die in the middle of wildcards, tests, probes, long messages and reductions, before the first commit that they take part in and after others, one after another,
// at the same time, all of them, and one again and again. Their program does nothing about it but to commit; all numbers come out as if nobody had died.
func TestTransparent(t *testing.T) {
	for name, c := range map[string]struct {
		ranks, standbys int
		victims         string
	}{
		"nobody":            {4, 1, ","},
		"rank 0":            {4, 1, ",0@3.1,"},
		"at the beginning":  {4, 1, ",2@0.1,"},
		"long messages":     {4, 1, ",3@1.3,"},
		"one after another": {4, 4, ",0@2.5,0@3.0,1@5.1,1@6.2,"},
		"at the same time":  {4, 2, ",1@4.1,3@4.1,"},
		"all":               {4, 4, ",0@1.1,1@1.2,2@1.3,3@1.4,"},
		"at the end":        {4, 2, ",0@11.5,3@11.2,"},
	} {
		for _, transport := range []string{"all", "tcp"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				var env []string
				if transport == "tcp" {
					env = []string{"SPX_TRANSPORTS=tcp"}
				}
				o := transparent(t, c.ranks, c.standbys, 12, c.victims, env...)
				if o.Status != 0 || !strings.Contains(o.Stdout, "done 12\n") {
					t.Fatalf("exit status %d\n%s", o.Status, o.Text())
				}
				died := strings.Count(c.victims, "@")
				if n := strings.Count(o.Stderr, "was killed by signal 9"); n != died {
					t.Errorf("%d ranks have died, there should be %d\n%s", n, died, o.Text())
				}
				t.Logf("takeovers in %.1f ms", takeovers(t, o.Stdout))
			})
		}
	}
}

// While a rank is taken over, another one dies, at whatever that one, the standby and the others do then.
func TestTransparentMeanwhile(t *testing.T) {
	for i := range 24 {
		later := time.Duration(i) * 700 * time.Microsecond
		slow := time.Duration(0)
		if i >= 12 { // the standby is behind the others
			later, slow = time.Duration(i-11)*3*time.Millisecond, 3*time.Millisecond
		}
		t.Run(later.String(), func(t *testing.T) {
			env := []string{"LATER=" + strconv.Itoa(int(later)), "SLOW=" + strconv.Itoa(int(slow))}
			if i%4 == 3 {
				env = append(env, "SPX_TRANSPORTS=tcp")
			}
			o := transparent(t, 4, 2, 60, ",0@1.3,2@1.6,", env...) // long enough for the second one to die before the end
			if !strings.Contains(o.Stdout, "done 60\n") || o.Status != 0 {
				t.Fatalf("exit status %d\n%s", o.Status, o.Text())
			}
		})
	}
}

// A process has been started in the place of a rank, and while the ranks agree on it another one dies, for which they wait: another process is started in its place, too.
func TestTransparentStartedMeanwhile(t *testing.T) {
	for i := range 24 {
		later := 12*time.Millisecond + time.Duration(i)*500*time.Microsecond
		t.Run(later.String(), func(t *testing.T) {
			o := transparently(t, "failure = { process = \"restart\", restarts = 6 }\n", 3, 60, ",0@1.3,2@1.6,", "LATER="+strconv.Itoa(int(later)), "LAG=4000000")
			if !strings.Contains(o.Stdout, "done 60\n") || o.Status != 0 {
				t.Fatalf("exit status %d\n%s", o.Status, o.Text())
			}
		})
	}
}

// A rank dies somewhere in MPI_Finalize, when others may have gone on to leave it. Nobody has left before all are done; who dies then need not be replaced, and
// ends as one that dies after MPI_Finalize does.
func TestTransparentLeaves(t *testing.T) {
	for i := range 40 {
		later := time.Duration(i)*25*time.Microsecond + 1
		t.Run(later.String(), func(t *testing.T) {
			env := []string{"LATER=" + strconv.Itoa(int(later))}
			if i%4 == 3 {
				env = append(env, "SPX_TRANSPORTS=tcp")
			}
			o := transparent(t, 3, 1, 4, ",2@4.7,", env...)
			left := o.Status == 128+9 && strings.Contains(o.Stderr, "after MPI_Finalize")
			if !strings.Contains(o.Stdout, "done 4\n") || o.Status != 0 && !left {
				t.Fatalf("exit status %d\n%s", o.Status, o.Text())
			}
		})
	}
}

// More deaths than standbys: the cluster stops, and says why.
func TestTransparentWithoutStandby(t *testing.T) {
	o := transparent(t, 3, 1, 12, ",1@3.1,2@7.2,")
	if o.Status == 0 || !strings.Contains(o.Stderr, "a standby takes its place") || !strings.Contains(o.Stderr, "cluster work is ended") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}

// Who takes a rank over begins elsewhere in the program than where that one has committed: it is told so before it sends anything that the others would take for what follows. One that knows where
// it was goes on.
func TestTransparentStrays(t *testing.T) {
	for right, name := range []string{"begins anew", "goes on"} {
		t.Run(name, func(t *testing.T) {
			o := file(t, fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"%d\", \"6\"]\nranks = 3\nstandbys = 1\ntakeover = \"transparent\"\n", program(t, "strays"), right))
			if !strings.Contains(o.Stderr, "a standby takes its place") {
				t.Errorf("no rank was taken over\n%s", o.Text())
			}
			if told := strings.Contains(o.Stderr, "makes other calls since the last MPISP_Commit"); told != (right == 0) || (o.Status == 0) != (right == 1) {
				t.Errorf("exit status %d, told: %v\n%s", o.Status, told, o.Text())
			}
		})
	}
}

// A standby on another host than the ranks cannot have what they have received.
func TestTransparentOnSeveralHosts(t *testing.T) {
	o := file(t, "[[cluster]]\nname = \"work\"\nprogram = \"true\"\nranks = 2\nstandbys = 2\ntakeover = \"transparent\"\nhosts = [\"nowhere1:2\", \"nowhere2:2\"]\n")
	if o.Status == 0 || !strings.Contains(o.Stderr, "is for ranks and standbys on one host") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}
