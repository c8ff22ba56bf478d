package systems

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"libspx/tests/harness"
)

func transparent(t *testing.T, ranks, standbys, steps int, victims string, env ...string) harness.Outcome {
	t.Helper()
	text := fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"%d\", \"%d\", %q]\nranks = %[2]d\nstandbys = %[5]d\ntakeover = \"transparent\"\n",
		program(t, "transparent"), ranks, steps, victims, standbys)
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		text += fmt.Sprintf("environment = { %s = %q }\n", name, value)
	}
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
		env             []string
	}{
		"nobody":            {4, 1, ",", nil},
		"rank 0":            {4, 1, ",0@3.1,", nil},
		"at the beginning":  {4, 1, ",2@0.1,", nil},
		"long messages":     {4, 1, ",3@1.3,", nil},
		"one after another": {4, 4, ",0@2.5,0@3.0,1@5.1,1@6.2,", nil},
		"at the same time":  {4, 2, ",1@4.1,3@4.1,", nil},
		"all":               {4, 4, ",0@1.1,1@1.2,2@1.3,3@1.4,", nil},
		"at the end":        {4, 2, ",0@11.5,3@11.2,", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := transparent(t, c.ranks, c.standbys, 12, c.victims, c.env...)
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

// More deaths than standbys: the cluster stops, and says why.
func TestTransparentWithoutStandby(t *testing.T) {
	o := transparent(t, 3, 1, 12, ",1@3.1,2@7.2,")
	if o.Status == 0 || !strings.Contains(o.Stderr, "a standby takes its place") || !strings.Contains(o.Stderr, "cluster work is ended") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}

// Over sockets it is not dependable, and is refused.
func TestTransparentOverSockets(t *testing.T) {
	o := transparent(t, 2, 1, 12, ",", "SPX_TRANSPORTS=tcp")
	if o.Status == 0 || !strings.Contains(o.Stderr, "is for systems whose processes share memory on one host") || strings.Contains(o.Stdout, "done") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}
