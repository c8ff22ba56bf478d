package systems

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// copied runs the program of TestTransparent on hosts, with copies of what its ranks need on other ones. In the text %1 stands for the first host, and so on.
func copied(t *testing.T, hosts int, fault, victims, text string, env ...string) (*testHosts, harness.Outcome) {
	t.Helper()
	on := newHosts(t, hosts)
	var pairs []string
	for i := range hosts {
		pairs = append(pairs, fmt.Sprintf("%%%d", i+1), on.name(i))
	}
	text = strings.NewReplacer(pairs...).Replace(fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"4\", \"12\", %q]\nranks = 4\ntakeover = \"transparent\"\ncopies = \"other host\"\nenvironment = { FAULT = %q }\n",
		program(t, "transparent"), victims, fault) + text)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "copies.toml"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	limit := "20000" // who is to be found out is found out by an agent's end
	if fault == "cut" {
		limit = "1000"
	}
	o := harness.Run(t, harness.Command{
		Args:  []string{on.script, "on", on.name(0), filepath.Join(harness.Build(t), "bin/spxrun"), "--timeout", harness.Seconds(100 * time.Second), "--rsh", on.script + " rsh", "--system", "copies.toml"},
		Dir:   dir,
		Env:   append([]string{"SPX_HEARTBEAT_LIMIT=" + limit}, env...),
		Limit: 2 * time.Minute,
	})
	return on, o
}

// Hosts are lost, with all that ran there, in the middle of whatever their ranks do: with their agents, or cut off. Standbys on other hosts go on from the copies of what those ranks had, which hosts that
// are left have. All numbers come out as without a death.
func TestHostsOfCopiesLost(t *testing.T) {
	const mixed = "hosts = [\"%2:2\", \"%3:4\", \"%4:4\"]\nstandbys = 6\n" // of the ranks on the first the second has the copies, where standbys wait, too
	const two, three = "hosts = [\"%2:2\", \"%3:2\", \"%4:4\"]\nstandbys = 4\n", "hosts = [\"%2:4\", \"%3:4\", \"%4:4\"]\nstandbys = 8\n"
	const started = "hosts = [\"%2:2\", \"%3:2\", \"%4:4\"]\nfailure = { process = \"restart\", restarts = 6 }\n"
	for name, c := range map[string]struct {
		fault, victims, text string
		hosts, lost          int
	}{
		"none waits, a process":     {"9", ",1@3.1,", started, 4, 0},
		"none waits, a host":        {"agent", ",1@3.1,", started, 4, 1},
		"none waits, long messages": {"agent", ",2@4.3,", started, 4, 1},
		"none waits, two hosts":     {"agent", ",0@2.5,2@7.1,", started, 4, 2},
		"none waits, cut off":       {"cut", ",1@3.2,", started, 4, 1},
		"no death":                  {"agent", ",", two, 4, 0},
		"a process":                 {"9", ",1@3.1,", two, 4, 0},
		"in its first step":         {"agent", ",0@0.1,", two, 4, 1},
		"with wildcards":            {"agent", ",1@3.1,", two, 4, 1},
		"with long messages":        {"agent", ",2@4.3,", two, 4, 1},
		"at the end":                {"agent", ",0@11.5,", two, 4, 1},
		"hosts, one after another":  {"agent", ",0@2.5,2@7.1,", two, 4, 2},
		"all ranks":                 {"agent", ",0@2.2,", three, 4, 1},
		"all ranks, and once again": {"agent", ",0@2.2,1@7.4,", three, 4, 2},
		"who has copies, then all":  {"agent", ",2@2.5,0@7.1,", mixed, 4, 2},
		"cut off":                   {"cut", ",1@3.2,", two, 4, 1},
		"off for a moment":          {"blink", ",1@3.2,", two, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			on, o := copied(t, c.hosts, c.fault, c.victims, c.text)
			if o.Status != 0 || !strings.Contains(o.Stdout, "done 12\n") {
				t.Fatalf("exit status %d, late: %v\n%s", o.Status, o.Late, o.Text())
			}
			if n := strings.Count(o.Stderr, "is lost, with its processes"); n != c.lost {
				t.Errorf("%d hosts were lost, there should be %d\n%s", n, c.lost, o.Text())
			}
			on.empty(t)
			t.Logf("takeovers in %.1f ms", takeovers(t, o.Stdout))
		})
	}
}

// Two hosts behind one switch are lost in the same step, at once or nearly so: the ranks of one would have had their copies with the standbys of the other, if SPX_TOPOLOGY did not say so.
func TestSwitchOfCopiesLost(t *testing.T) {
	on, o := copied(t, 5, "agent", ",0@3.1,2@3.1,", "hosts = [\"%2:2\", \"%3:4\", \"%4:4\", \"%5:1\"]\nstandbys = 7\n", "SPX_TOPOLOGY=0,1,1,2,3") // three of five hosts are left to decide
	if o.Status != 0 || !strings.Contains(o.Stdout, "done 12\n") {
		t.Fatalf("exit status %d, late: %v\n%s", o.Status, o.Late, o.Text())
	}
	if n := strings.Count(o.Stderr, "is lost, with its processes"); n != 2 {
		t.Errorf("%d hosts were lost, there should be 2\n%s", n, o.Text())
	}
	on.empty(t)
}

// What cannot be is refused before anything is started, and said.
func TestCopiesRefused(t *testing.T) {
	const cluster = "[[cluster]]\nname = \"work\"\nprogram = \"true\"\nranks = 2\ncopies = \"other host\"\n"
	for text, want := range map[string]string{
		cluster + "standbys = 2\ntakeover = \"transparent\"\n": "all of them are on one; name another one in hosts",
		cluster + "standbys = 2\n":                             "cluster \"work\" needs takeover = \"transparent\"",
	} {
		if o := file(t, text); o.Status == 0 || !strings.Contains(o.Stderr, want) {
			t.Errorf("exit status %d, no %q\n%s", o.Status, want, o.Text())
		}
	}
}

// Two clusters with a link, all of whose ranks are lost with their hosts, first the senders and then the receivers: what goes through the I/O processes comes complete, in order, and nothing twice.
func TestLinkOfCopiesLost(t *testing.T) {
	text := "[failure]\niop = \"restart\"\n"
	for k, what := range []string{"send", "receive"} {
		hosts := fmt.Sprintf(`"%%%d:2", "%%4:2"`, 2+k)
		text += fmt.Sprintf("[[cluster]]\nname = %[1]q\nprogram = %[2]q\nargs = [%[1]q, \"4000\"]\nranks = 2\nstandbys = 2\ntakeover = \"transparent\"\ncopies = \"other host\"\nhosts = [%[3]s]\n", what, program(t, "order"), hosts)
	}
	o := startOnHosts(t, 4, text+"[[link]]\nfrom = \"send\"\nto = \"receive\"\niops = 2\nchoice = \"tag\"\nhosts = [\"%1:2\"]\n")
	for _, rank := range []string{"receive 0", "receive 1", "send 0", "send 1"} {
		o.says("here " + rank + " ")
	}
	o.loses("%2", "host %2 is lost, with its processes")
	o.saysTimes("here send 0 ", 2) // in the place of the first
	o.saysTimes("here send 1 ", 2)
	o.loses("%3", "host %3 is lost, with its processes")
	o.saysTimes("here receive 0 ", 2)
	o.saysTimes("here receive 1 ", 2)
	o.ends(0, "[receive.standby0] 4000 messages, all of 1 senders\n", "[receive.standby1] 4000 messages, all of 1 senders\n")
	o.hosts.empty(t)
}
