package systems

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// whole starts all of a system file by one spxrun.
func (s *apart) whole(options ...string) *running {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(harness.Build(s.t), "bin/spxrun"), append([]string{"-l", "--verbose", "--system", s.file}, options...)...)
	cmd.Env = append(os.Environ(), "SPX_SPIN=0")
	return s.launch("all", cmd)
}

// pid is the process of a name of -l, such as a.0.
func (r *running) pid(name string) int {
	r.t.Helper()
	r.says("rank " + name + " is pid ")
	pid, err := strconv.Atoi(regexp.MustCompile(`rank ` + regexp.QuoteMeta(name) + ` is pid (\d+)`).FindStringSubmatch(r.text())[1])
	if err != nil {
		r.t.Fatal(err)
	}
	return pid
}

// sends is a system in which a sends so many messages, one each millisecond, by two I/O processes to b.
func sends(count int, failure, choice, b string) string {
	return fmt.Sprintf(`
[failure]
hang_limit = "1s"
%s
[[cluster]]
name = "a"
program = "%%P"
args = ["send", "%d", "1", "stop"]
ranks = 1
[[cluster]]
name = "b"
program = "%%P"
args = [%q, "begun"]
ranks = 1
[[link]]
from = "a"
to = "b"
iops = 2
%s
`, failure, count, b, choice)
}

// An I/O process that is stopped is not chosen, whatever the policy, until it goes on: the senders do not wait for it, and nothing is lost. It is said that it
// hangs.
func TestIOPHangs(t *testing.T) {
	for _, c := range []struct {
		choice string
		iop    int
	}{{"round-robin", 0}, {"least-loaded", 1}, {"shortest-queue", 0}, {"tag", 0}, {"tag", 1}, {"key", 0}, {"key", 1}, {"weighted", 1}} {
		if !harness.Full() && (c.choice == "least-loaded" || c.choice == "shortest-queue" || c.choice == "key") {
			continue // as the others: one is chosen, and then another one since that hangs
		}
		t.Run(fmt.Sprintf("%s/%d", c.choice, c.iop), func(t *testing.T) {
			choice := fmt.Sprintf("choice = %q\n", c.choice)
			if c.choice == "weighted" {
				choice += "weights = [1, 9]\n"
				t.Setenv("SPX_KEPT_MAX", "16K") // a send is complete when it was accepted: but not by one that hangs
			}
			const count = 3000 // far more than find room on the way to one that takes nothing
			s := newApart(t, sends(count, "", choice, "receive"))
			r := s.whole()
			pid := r.pid(fmt.Sprintf("a-b.iop%d.0", c.iop))
			s.await("begun")
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it has ended
			r.says(fmt.Sprintf("rank 0 of I/O process a-b.iop%d (pid %d on ", c.iop, pid))
			r.says("hangs: it is stopped, for ")
			r.says("; meanwhile those of its link are chosen that run (iop_hang = \"report\").")
			r.says(fmt.Sprintf("rank 0 sent %d\n", count))
			syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it is there
			r.ends(0, fmt.Sprintf("rank 0 received %d\n", count))
		})
	}
}

// When it goes on while the system works, that is said, and it is chosen again.
func TestIOPGoesOn(t *testing.T) {
	s := newApart(t, sends(90000, "", "", "receive"))
	r := s.whole()
	for range 2 {
		pid := r.pid("a-b.iop0.0")
		s.await("begun")
		before := strings.Count(r.text(), "goes on again")
		syscall.Kill(pid, syscall.SIGSTOP) //nolint:errcheck // it is there
		r.saysTimes("hangs: it is stopped, for ", before+1)
		syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // likewise
		r.saysTimes("goes on again; it had hung for ", before+1)
	}
	s.write("stop", "", "")
	r.ends(0, "rank 0 sent ", "rank 0 received ")
}

// What the file says is done about an I/O process that hangs, besides.
func TestIOPHangsPolicies(t *testing.T) {
	for _, c := range []struct {
		policy string
		status int
		then   string
	}{
		{"restart", 0, "I/O process a-b.iop0 is started again (1 of at most 3 times)."},
		{"degrade", 0, "I/O process a-b.iop0 is gone; the others go on."},
		{"stop", 137, "I/O process a-b.iop0 is ended and with it the system; exit status 137."},
	} {
		t.Run(c.policy, func(t *testing.T) {
			s := newApart(t, sends(3000, "iop_hang = \""+c.policy+"\"", "", "share"))
			r := s.whole()
			pid := r.pid("a-b.iop0.0")
			s.await("begun")
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			said := []string{"rank 0 of I/O process a-b.iop0 (pid " + strconv.Itoa(pid) + " on ", "hangs: it is stopped, for ", "; it is ended.", "was killed by signal 9 (SIGKILL) because it hung", c.then}
			if c.status == 0 {
				said = append(said, "rank 0 sent 3000\n", "rank 0 received ")
			}
			r.ends(c.status, said...)
		})
	}
}

// A rank that is stopped: it is said, and nothing is lost when it goes on; or it is ended, and then its cluster stops, or another process takes its place.
func TestRankHangs(t *testing.T) {
	t.Run("report", func(t *testing.T) {
		s := newApart(t, sends(90000, "", "", "receive"))
		r := s.whole()
		pid := r.pid("b.0")
		s.await("begun")
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it has ended
		r.says("rank 0 of cluster b (pid " + strconv.Itoa(pid) + " on ")
		r.says("; it is left alone (hang = \"report\").")
		syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it is there
		r.says("goes on again; it had hung for ")
		s.write("stop", "", "")
		r.ends(0, "rank 0 sent ", "rank 0 received ")
		sameCount(t, r.text(), r.text())
	})
	t.Run("stop", func(t *testing.T) {
		s := newApart(t, sends(3000, `hang = "stop"`, "", "receive"))
		r := s.whole()
		pid := r.pid("b.0")
		s.await("begun")
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		r.ends(137, "hangs: it is stopped, for ", "because it hung", "cluster b is ended and with it the system; exit status 137.")
	})
	const stop = "19"
	for name, c := range map[string]struct{ failure, more, program, victims, then string }{
		"restart, notified":    {`hang = "restart", process = "restart"`, "", "takeover", ",1@3,", "a process is started that takes its place (1 of at most 3)."},
		"restart, transparent": {`hang = "restart", process = "restart"`, "takeover = \"transparent\"", "transparent", ",1@3.1,", "a process is started that takes its place (1 of at most 3)."},
		"replace, notified":    {`hang = "replace"`, "standbys = 1", "takeover", ",1@3,", "a standby takes its place."},
		"replace, transparent": {`hang = "replace"`, "standbys = 1\ntakeover = \"transparent\"", "transparent", ",1@3.1,", "a standby takes its place."},
	} {
		t.Run(name, func(t *testing.T) {
			o := file(t, fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"3\", \"12\", %q]\nranks = 3\nfailure = { hang_limit = \"400ms\", %s }\nenvironment = { FAULT = %q }\n%s\n",
				program(t, c.program), c.victims, c.failure, stop, c.more))
			if o.Status != 0 || !strings.Contains(o.Stdout, "done 12") {
				t.Errorf("exit status %d", o.Status)
			}
			for _, want := range []string{"rank 1 of cluster work (pid ", "hangs: it is stopped, for ", "because it hung", c.then} {
				if !strings.Contains(o.Stderr, want) {
					t.Errorf("lacks %q", want)
				}
			}
			if t.Failed() {
				t.Log(o.Text())
			}
		})
	}
}

// stops has a process of another host stopped, by its name of -l, and returns how it goes on.
func (o *onHosts) stops(host int, name string) (goOn func()) {
	o.apart.t.Helper()
	pid := o.hosts.Outside(host, o.pid(name))
	if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		o.apart.t.Fatalf("%s cannot be stopped on host %d", name, host)
	}
	goOn = func() { syscall.Kill(pid, syscall.SIGCONT) } //nolint:errcheck // it may have ended
	o.apart.t.Cleanup(goOn)
	return goOn
}

// The same on hosts that have no spxrun: their agents see it, and what is to be done comes from the one that decides. All processes that have to do with each other are on hosts of their own.
func TestHangsOnOtherHosts(t *testing.T) {
	const on = `hosts = ["%1"]`
	system := func(count int, failure, b string) string {
		text := strings.Replace(sends(count, failure, `hosts = ["%3", "%4"]`, b), "name = \"a\"\n", "name = \"a\"\n"+on+"\n", 1)
		return strings.Replace(text, "name = \"b\"\n", "name = \"b\"\nhosts = [\"%2:2\"]\n", 1)
	}
	begin := func(t *testing.T, text string) *onHosts {
		o := startOnWith(t, 4, []string{"--verbose"}, func(*testHosts) {}, text)
		o.await("begun")
		return o
	}
	const stopped = "hangs: it is stopped, for "
	t.Run("iop/report", func(t *testing.T) {
		o := begin(t, system(3000, "", "receive"))
		goOn := o.stops(3, "a-b.iop0.0")
		o.says("rank 0 of I/O process a-b.iop0 (pid ")
		o.says(o.names.Replace(" on %3) ") + stopped)
		o.says("rank 0 sent 3000\n")
		goOn()
		o.ends(0, "rank 0 received 3000\n")
	})
	for policy, then := range map[string]string{
		"restart": "I/O process a-b.iop0 is started again (1 of at most 3 times).",
		"degrade": "I/O process a-b.iop0 is gone; the others go on.",
		"stop":    "I/O process a-b.iop0 is ended and with it the system; exit status 137.",
	} {
		t.Run("iop/"+policy, func(t *testing.T) {
			o := begin(t, system(3000, `iop_hang = "`+policy+`"`, "share"))
			o.stops(3, "a-b.iop0.0")
			if policy == "stop" {
				o.ends(137, stopped, "; it is ended.", "because it hung", then)
				return
			}
			o.ends(0, stopped, "; it is ended.", "because it hung", then, "rank 0 sent 3000\n", "rank 0 received ")
		})
	}
	t.Run("rank/report", func(t *testing.T) {
		o := begin(t, system(500, "", "receive"))
		goOn := o.stops(2, "b.0")
		o.says(o.names.Replace(" on %2) ") + stopped)
		goOn()
		o.says(" on again") // "goes", or "went", if it has ended by then
		o.ends(0, "rank 0 sent 500\n", "rank 0 received 500\n")
	})
	t.Run("rank/stop", func(t *testing.T) {
		o := begin(t, system(3000, `hang = "stop"`, "receive"))
		o.stops(2, "b.0")
		o.ends(137, stopped, "because it hung", "cluster b is ended and with it the system; exit status 137.")
	})
	for name, c := range map[string]struct{ failure, hosts, more, then string }{
		"rank/restart": {`hang = "restart", process = "restart"`, `"%2:30"`, "", "a process is started that takes its place (1 of at most 3)."},
		"rank/replace": {`hang = "replace"`, `"%1:2", "%2:2"`, "standbys = 1", "a standby takes its place."},
	} {
		t.Run(name, func(t *testing.T) {
			o := startOn(t, 2, func(*testHosts) {}, fmt.Sprintf(`
[[cluster]]
name = "work"
program = %q
args = ["3", "12", ",2@3,"]
ranks = 3
hosts = [%s]
failure = { hang_limit = "400ms", %s }
environment = { FAULT = "19" }
%s
`, program(t, "takeover"), c.hosts, c.failure, c.more))
			o.ends(0, "done 12", "rank 2 of cluster work (pid ", o.names.Replace(" on %2) ")+stopped, "because it hung", c.then)
		})
	}
}

// Of a cluster that was started by itself, too: its own agent sees it, and that of the system decides.
func TestHangsInClusterOfItsOwn(t *testing.T) {
	s := newApart(t, sends(90000, "", "", "receive"))
	a := s.start("a", "-l", "--verbose")
	a.says("waiting for cluster b") // it leads
	b := s.start("b", "-l", "--verbose")
	pid := b.pid("0 of cluster b")
	s.await("begun")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it has ended
	b.says("rank 0 of cluster b (pid " + strconv.Itoa(pid) + " on ")
	b.says("; it is left alone (hang = \"report\").")
	syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it is there
	b.says("goes on again; it had hung for ")
	s.write("stop", "", "")
	b.ends(0, "rank 0 received ")
	a.ends(0, "rank 0 sent ")
	sameCount(t, a.text(), b.text())
}

// Its only I/O process is ended because it hangs, and started again, also where one that dies of itself would not be: what is on the way waits for that, and the receivers do, too.
func TestOnlyIOPHangsInClusterOfItsOwn(t *testing.T) {
	s := newApart(t, strings.Replace(sends(90000, "iop = \"degrade\"\niop_hang = \"restart\"", "", "receive"), "iops = 2", "iops = 1", 1))
	a := s.start("a", "-l")
	a.says("waiting for cluster b") // it leads
	b := s.start("b", "-l", "--verbose")
	pid := b.pid("0 of I/O process a-b.iop0")
	s.await("begun")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b.says("because it hung")
	b.says("I/O process a-b.iop0 is started again (1 of at most 3 times).")
	s.write("stop", "", "")
	b.ends(0, "rank 0 received ")
	a.ends(0, "rank 0 sent ")
	sameCount(t, a.text(), b.text())
}

// sameCount: as many messages were received as were sent.
func sameCount(t *testing.T, sender, receiver string) {
	t.Helper()
	count := func(text, word string) (n int) {
		_, rest, _ := strings.Cut(text, "rank 0 "+word+" ")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Errorf("how many messages were %s is not said: %v", word, err)
		}
		return n
	}
	if sent, received := count(sender, "sent"), count(receiver, "received"); sent != received {
		t.Errorf("%d messages were sent, and %d received", sent, received)
	}
}

// What computes is not taken for hanging, unless the file sets a limit, or the program one; what sleeps while messages wait for it is. All of them go on here.
func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		failure, args string
		hangs         string // what is said; empty: it does not hang
	}{
		"computes":                    {`hang_limit = "600ms"`, `"2000"`, ""},
		"computes beyond the limit":   {`hang_limit = "1h", silent_limit = "300ms"`, `"2000"`, "computes and does not communicate, and messages wait for it"},
		"sleeps":                      {`hang_limit = "300ms"`, `"2000", "sleep"`, "does not run, and messages wait for it"},
		"sleeps, and has said so":     {`hang_limit = "300ms", silent_limit = "300ms"`, `"2000", "sleep", "alive=60000"`, ""},
		"computes, and has said so":   {`hang_limit = "300ms", silent_limit = "300ms"`, `"2000", "alive=60000"`, ""},
		"computes longer than said":   {`hang_limit = "1h"`, `"2000", "alive=200"`, "has said by MPISP_Alive that it would communicate again within 200ms, and has not"},
		"takes back what it has said": {`hang_limit = "1h"`, `"1000", "alive=0"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := file(t, fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [%s]\nranks = 2\nfailure = { %s }\n", program(t, "silent"), c.args, c.failure))
			said := strings.Contains(o.Stderr, "rank 0 of cluster work (pid ") && strings.Contains(o.Stderr, "hangs: it "+c.hangs)
			if o.Status != 0 || !strings.Contains(o.Stdout, "done\n") || said != (c.hangs != "") {
				t.Errorf("exit status %d\n%s", o.Status, o.Text())
			}
		})
	}
}

// Whatever says where the processes of a system are says it by the names of the file: ranks of clusters, I/O processes of links, and the special ranks.
func TestTimeoutNames(t *testing.T) {
	for option, want := range map[string][]string{
		"":                    {"spxrun: rank 0 of cluster a: in MPI_Send", " of link a-b: ", "rank 0 of cluster b: in MPI_Recv"},
		"--report-on-timeout": {"rank 0 of cluster a", "dest=MPISP_CLUSTER_OUT, tag=7, comm=MPI_COMM_WORLD"},
	} {
		t.Run(option, func(t *testing.T) {
			s := newApart(t, strings.Replace(sends(90000, "", "", "receive"), "\"1s\"", "\"1h\"", 1))
			options := []string{"--timeout", harness.Seconds(3 * time.Second)}
			if option != "" {
				options = append(options, option)
			}
			r := s.whole(options...)
			s.await("begun")
			for k := range 2 {
				syscall.Kill(r.pid(fmt.Sprintf("a-b.iop%d.0", k)), syscall.SIGSTOP) //nolint:errcheck // it is there
			}
			r.ends(124, want...)
			// They were stopped wherever they were: what both do is said of both, or of each.
			if option == "" && len(regexp.MustCompile(`(?m)^spxrun: I/O process(es 0-1| [01]) of link a-b: `).FindAllString(r.text(), -1)) == 0 {
				t.Error("does not name the I/O processes")
			}
			for _, not := range []string{"ranks 0-", "a communicator of "} {
				if strings.Contains(r.text(), not) {
					t.Errorf("says %q", not)
				}
			}
		})
	}
}
