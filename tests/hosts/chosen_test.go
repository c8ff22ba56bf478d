package hosts

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/core/coll"
	"libspx/tests/harness"
)

// On several hosts, with and without switches, spxctl explain says what a job does (tests/chosen has the program, and the same for one host).
func TestChosen(t *testing.T) {
	b := newBed(t, 3)
	program := harness.Compile(t, "chosen/chosen", []string{filepath.Join(harness.Root(), "tests/chosen/testdata/chosen.c")})
	spxctl := filepath.Join(harness.Build(t), "bin/spxctl")
	for _, c := range []struct {
		name string
		env  []string
		want []string
	}{
		{"hosts", nil, []string{"bcast levels", "barrier levels", "allreduce levels", "alltoall by_host", "gather by_host", "scan by_host", "alltoallv linear"}},
		{"switches", []string{"SPX_TOPOLOGY=0,0,1"}, []string{"bcast levels", "alltoall by_host"}},
		{"relays", []string{"SPX_CONNECTIONS=topology:1", "SPX_TOPOLOGY=0,0,1"}, []string{"bcast levels"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := b.list(6, 6, 6)
			command := b.spxrun("-host", list, "-n", "18", program, spxctl) // which rank 0 asks of the job itself, too
			command.Env, command.Limit = append(command.Env, c.env...), 2*time.Minute
			o := harness.Run(t, command)
			if o.Status != 0 {
				t.Fatalf("status %d\n%s", o.Status, o.Text())
			}
			known, seen, n := map[string]*coll.Explanation{}, []string{}, 0
			asked, used := map[string]string{}, map[string]string{} // algorithms by operation: what spxctl says of the job, and what that does
			for _, line := range strings.Split(strings.TrimSpace(o.Stdout), "\n") {
				part := strings.Split(line, " | ")
				w := strings.Fields(part[0])
				if w[0] == "job" {
					asked[w[1]] = w[2]
				}
				if w[0] != "call" {
					continue
				}
				n++
				kind, form, bytes, comm := w[1], w[2], w[3], w[4]
				if form == "blocking" && (comm == "world" || comm == "ring") && (bytes == "8200" || bytes == "64") {
					used[kind] = part[1]
				}
				seen = append(seen, kind+" "+part[1])
				words := []string{spxctl, "explain", kind, bytes, "--json", "-n", "18", "--host", list}
				if form == "persistent" {
					words = append(words, "--persistent")
				}
				switch comm {
				case "half":
					words = append(words, "--ranks", "0-8")
				case "inter":
					words = append(words, "--ranks", "0-8", "--remote", "9")
				}
				key := strings.Join(words, " ")
				if known[key] == nil {
					known[key] = &coll.Explanation{}
					said := harness.Run(t, harness.Command{Args: b.On(1, words...), Env: append([]string{"SPX_TUNING=none"}, c.env...)})
					if err := json.Unmarshal([]byte(said.Stdout), known[key]); err != nil {
						t.Fatalf("%s: %v\n%s", key, err, said.Text())
					}
				}
				if e := known[key]; e.Algorithm != part[1] || e.Reason != part[2] {
					t.Errorf("%s: spxctl says %s (%s)", line, e.Algorithm, e.Reason)
				}
			}
			if !maps.Equal(asked, used) || len(used) != int(coll.Kinds) {
				t.Errorf("spxctl says of the job %v\nit uses %v\n%s", asked, used, o.Stderr)
			}
			if n < 400 {
				t.Errorf("only %d calls", n)
			}
			for _, want := range c.want {
				if !slices.Contains(seen, want) {
					t.Errorf("no %s: %s", want, fmt.Sprint(slices.Compact(slices.Sorted(slices.Values(seen)))))
				}
			}
		})
	}
}
