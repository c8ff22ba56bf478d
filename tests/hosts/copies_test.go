package hosts

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/launch/service"
)

// Copies of what decides about a job, at the agents of several hosts (docs/decisions/leaders.md).

// copies waits until spxctl, on host 1, shows what is wanted of the job's hosts.
func (r *running) copies(what string, wanted func([]service.Host) bool) (list []service.Host) {
	r.t.Helper()
	text := ""
	until(r.t, what, func() bool {
		text = r.b.ctl(r.t, 0, "", "", "hosts", ".", "--json")
		list = nil
		return json.Unmarshal([]byte(text), &list) == nil && wanted(list)
	})
	return list
}

// alike: hosts by number, from 1, have the same copy, which is what host 1 decides by, of more events than before; one of them leads, and so many vote; no others have one.
func alike(events uint64, voters int, hosts ...int) func([]service.Host) bool {
	return func(list []service.Host) bool {
		leaders, votes, have := 0, 0, map[int]*service.Copy{}
		for i, h := range list {
			if h.Copy == nil {
				continue
			}
			have[i+1] = h.Copy
			leaders += truth(h.Copy.Leads)
			votes += truth(h.Copy.Votes)
		}
		if leaders != 1 || votes != voters || len(have) != len(hosts) {
			return false
		}
		first := have[hosts[0]]
		if first == nil || list[0].Copy == nil || list[0].Copy.Original != first.Digest {
			return false
		}
		for _, n := range hosts {
			if have[n] == nil || have[n].Digest != first.Digest || have[n].Events != first.Events || have[n].Events <= events {
				return false
			}
		}
		return true
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A job of four hosts that survives failures: all have the same copy, of what happened on any host, when a rank dies, when a host is lost and when one is added. The agent of spxrun's host is held for a
// moment: another host leads the sequence then, and the events of the one that decides go on to all.
func TestCopiesOfJob(t *testing.T) {
	t.Setenv("SPX_HEARTBEAT", "0")
	b := newBed(t, 5)
	r := b.talks(t, []string{"--with-ft", "-host", b.list(1, 1, 1, 1), "-n", "4"}, program(t, "shrink"), "3").running
	if line := r.line(); line != "all are there" {
		t.Fatalf("%q\n%s", line, &r.stderr)
	}
	list := r.copies("the same copy on four hosts", alike(4, 3, 1, 2, 3, 4))
	seen := list[0].Copy.Events

	kill := func(host int, name string) {
		t.Helper()
		pids := b.findOn(host, name)
		if len(pids) != 1 {
			t.Fatalf("%s on host %d: %v", name, host, pids)
		}
		syscall.Kill(pids[0], syscall.SIGKILL) //nolint:errcheck // seen below
	}
	kill(4, "shrink")
	r.recovered(3)
	list = r.copies("the copy with a death", alike(seen, 3, 1, 2, 3, 4))
	seen = list[0].Copy.Events

	lead := r.b.findOn(1, "spx-agent")
	if len(lead) != 1 {
		t.Fatalf("agents of host 1: %v", lead)
	}
	leads := func(list []service.Host) (host int) {
		for i, h := range list {
			if h.Copy != nil && h.Copy.Leads {
				host = i + 1
			}
		}
		return host
	}
	for hold := time.Second; leads(list) == 1; hold *= 2 { // nothing tells from outside when the others have elected one
		if hold > time.Minute {
			t.Fatalf("host 1 leads again and again: %+v", list)
		}
		syscall.Kill(lead[0], syscall.SIGSTOP) //nolint:errcheck // seen by who leads
		time.Sleep(hold)
		syscall.Kill(lead[0], syscall.SIGCONT) //nolint:errcheck // likewise
		list = r.copies("a leader", alike(seen-1, 3, 1, 2, 3, 4))
	}
	t.Logf("host %d leads now", leads(list))

	b.ctl(t, 0, "(?s)"+b.host(5)+" .*done in", "", "hosts", ".", "add", b.host(5))
	list = r.copies("the copy on a host that was added", alike(seen-1, 5, 1, 2, 3, 4, 5))
	kill(3, "spx-host-agent")
	r.recovered(2)
	list = r.copies("the copy without a host that was lost", alike(seen, 3, 1, 2, 4, 5))
	seen = list[0].Copy.Events
	kill(2, "shrink")
	r.recovered(1)
	r.ends(0, "host "+b.host(3)+" is lost")
	b.deserted(t, 1, 2, 3, 4, 5)
}

// Jobs that end with a host, and those of two hosts, are as they were: no agent listens for others, and none has a copy.
func TestNoCopies(t *testing.T) {
	b := newBed(t, 3)
	for _, c := range []struct {
		hosts   int
		options []string
		ports   int // that agents have on all hosts
	}{
		{3, []string{"--on-death", "continue"}, 0},
		{2, []string{"--with-ft"}, 0},
		{3, []string{"--with-ft"}, 3},
	} {
		r := b.begin(t, c.hosts, c.options)
		if line := r.line(); line != "all are there" {
			t.Fatalf("%q\n%s", line, &r.stderr)
		}
		ports := 0
		for n := 1; n <= c.hosts; n++ {
			for _, name := range []string{"spx-agent", "spx-host-agent"} {
				for _, pid := range b.findOn(n, name) {
					ports += listensAt(t, pid)
				}
			}
		}
		if ports != c.ports {
			t.Errorf("%v on %d hosts: agents listen at %d ports, want %d", c.options, c.hosts, ports, c.ports)
		}
		if text := b.ctl(t, 0, "", "", "hosts", "."); c.ports == 0 && strings.Contains(text, "copy") {
			t.Errorf("%v on %d hosts:\n%s", c.options, c.hosts, text)
		}
		b.ctl(t, 0, "", "", "end", ".")
		for range r.lines {
		}
		r.cmd.Wait() //nolint:errcheck // it was ended
	}
}

// listensAt counts the TCP sockets at which a process listens.
func listensAt(t *testing.T, pid int) (n int) {
	t.Helper()
	own := map[string]bool{}
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	for _, fd := range fds {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		if rest, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(rest, "]")] = true
		}
	}
	for _, file := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, file))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			const listening, state, inode = "0A", 3, 9
			if f := strings.Fields(line); len(f) > inode && f[state] == listening && own[f[inode]] {
				n++
			}
		}
	}
	return n
}
