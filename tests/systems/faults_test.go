package systems

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// What [failure] says about hosts and networks is done, and it may be something else than for processes: a host is lost with its agent, is cut off for good, or for a
// moment, while a cluster of three hosts computes and saves checkpoints. The one that decides is on the first host.
func TestFaultsOfHosts(t *testing.T) {
	const died = "host %h2 is lost, with its processes: "
	for name, c := range map[string]struct {
		failure, with string
		standbys      int
		victims       string
		done          bool     // all steps, with the right result
		says          []string // patterns, on standard error
		silent        []string
	}{
		"host is replaced":                {`host = "replace", process = "stop"`, "agent", 2, ",2@4,", true, []string{died, "rank 2 of cluster work .*a standby takes its place"}, nil},
		"hosts, one after another":        {`host = "replace", process = "stop"`, "agent", 4, ",2@4,5@8,", true, []string{died, "host %h3 is lost, with its processes: "}, nil},
		"host stops the cluster":          {`host = "stop"`, "agent", 2, ",2@4,", false, []string{died, "cluster work is ended and with it the system"}, []string{"a standby takes its place"}},
		"network is replaced":             {`network = "replace", host = "stop"`, "cut", 2, ",2@4,", true, []string{died, "rank 2 of cluster work .*a standby takes its place"}, nil},
		"network stops the cluster":       {`network = "stop", host = "replace"`, "cut", 2, ",2@4,", false, []string{died, "cluster work is ended and with it the system"}, []string{"a standby takes its place"}},
		"network for a moment: no fault":  {`network = "stop"`, "blink", 2, ",2@4,", true, nil, []string{"is lost", "takes its place"}},
		"process alone, host would stop":  {`process = "replace", host = "stop"`, "", 2, ",2@4,", true, []string{"rank 2 of cluster work .*a standby takes its place"}, []string{"lost"}},
		"host is started elsewhere":       {`process = "restart", restarts = 4`, "agent", 0, ",2@4,", true, []string{died, "rank 2 of cluster work .*a process is started that takes its place", "rank 3 of cluster work .*a process is started that takes its place"}, nil},
		"hosts are, one after another":    {`process = "restart", restarts = 4`, "agent", 0, ",2@4,5@8,", true, []string{died, "host %h3 is lost, with its processes: ", "4 of at most 4"}, nil},
		"network, started elsewhere":      {`network = "restart", host = "stop", process = "restart"`, "cut", 0, ",2@4,", true, []string{died, "rank 2 of cluster work .*a process is started that takes its place"}, nil},
		"process is started where it was": {`process = "restart", host = "stop"`, "", 0, ",2@4,5@8,", true, []string{`rank 2 of cluster work .* on %h2\) .*a process is started`, `rank work.standby\d+ is pid \d+ on %h2`, `rank work.standby\d+ is pid \d+ on %h3`}, []string{"lost"}},
		"host is told to the others only": {`host = "degrade", process = "stop"`, "agent", 2, ",2@4,", true, []string{died, "others of cluster work are told and go on"}, []string{"takes its place"}},
	} {
		t.Run(name, func(t *testing.T) {
			on := newHosts(t, 4)
			names := strings.NewReplacer("%h1", on.name(0), "%h2", on.name(1), "%h3", on.name(2), "%h4", on.name(3))
			dir := t.TempDir()
			text := fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"6\", \"12\", %q, %q]\nranks = 6\nstandbys = %d\nhosts = [\"%%h1:2\", \"%%h2:2\", \"%%h3:2\", \"%%h4:4\"]\nfailure = { %s }\n",
				program(t, "takeover"), c.victims, c.with, c.standbys, c.failure)
			if err := os.WriteFile(filepath.Join(dir, "faults.toml"), []byte(names.Replace(text)), 0o666); err != nil {
				t.Fatal(err)
			}
			limit := "10000" // who is to be found out is found out by an agent's end
			if c.with == "cut" {
				limit = "1000"
			}
			began := time.Now()
			o := harness.Run(t, harness.Command{
				Args:  []string{on.script, "on", on.name(0), filepath.Join(harness.Build(t), "bin/spxrun"), "--verbose", "--timeout", harness.Seconds(50 * time.Second), "--rsh", on.script + " rsh", "--system", "faults.toml"},
				Dir:   dir,
				Env:   []string{"SPX_HEARTBEAT_LIMIT=" + limit},
				Limit: time.Minute,
			})
			done := o.Status == 0 && strings.Contains(o.Stdout, "done 12 ")
			if o.Late || done != c.done || !c.done && o.Status == 0 {
				t.Fatalf("exit status %d, late: %v\n%s", o.Status, o.Late, o.Text())
			}
			for _, want := range c.says {
				if !regexp.MustCompile(names.Replace(want)).MatchString(o.Stderr) {
					t.Errorf("no %q in\n%s", names.Replace(want), o.Text())
				}
			}
			for _, not := range c.silent {
				if strings.Contains(o.Stderr, not) {
					t.Errorf("%q in\n%s", not, o.Text())
				}
			}
			on.empty(t)
			t.Logf("%v; %s", time.Since(began).Round(time.Millisecond), strings.Join(regexp.MustCompile(`takeover .* ms`).FindAllString(o.Stdout, -1), ", "))
		})
	}
}
