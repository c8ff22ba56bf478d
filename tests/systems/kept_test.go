package systems

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// I/O processes die while messages that are kept go through them: what was sent arrives, once. Messages of all lengths; one and several I/O processes; those
// that come again, and those whose link goes on with the others.
func TestNothingIsLost(t *testing.T) {
	kept := program(t, "kept")
	relay := filepath.Join(harness.Build(t), "bin/spx-iop")
	for name, c := range map[string]struct {
		count, bytes, iops, kills int
		failure                   string
		env                       []string
	}{
		"short":       {3000, 100, 2, 6, "restarts = 20\n", nil},
		"one":         {2000, 1000, 1, 6, "restarts = 20\n", nil},
		"long":        {60, 300_000, 2, 4, "restarts = 20\n", nil},
		"tcp":         {300, 20_000, 2, 4, "restarts = 20\n", []string{"-x", "SPX_TRANSPORTS=tcp"}},
		"others left": {300, 1000, 3, 2, "iop = \"degrade\"\n", nil},
		// Longer ones stay with their senders, and go on from there.
		"announced":        {30, 2_000_000, 2, 4, "restarts = 20\n", nil},
		"announced, one":   {20, 1_000_000, 1, 3, "restarts = 20\n", nil},
		"announced, tcp":   {30, 2_000_000, 2, 3, "restarts = 20\n", []string{"-x", "SPX_TRANSPORTS=tcp"}},
		"announced, other": {30, 1_000_000, 3, 2, "iop = \"degrade\"\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := "[system]\nmessages = \"kept\"\n[failure]\n" + c.failure + link(fmt.Sprintf("program = %q\nargs = [\"send\", \"%d\", \"%d\"]\nranks = 2", kept, c.count, c.bytes),
				fmt.Sprintf("program = %q\nargs = [\"receive\", \"%d\", %q, \"%d\"]\nranks = 2", kept, c.count, dir, c.kills),
				fmt.Sprintf("iops = %d\nchoice = \"key\"\nprogram = %q\nargs = [\"relay\", %q, %q, \"--route\", \"tag\"]", c.iops, kept, dir, relay))
			checkKept(t, file(t, text, c.env...), 2*c.count, c.kills)
		})
	}
}

// I/O processes die that had dealt out messages to several receivers, be it to clusters or to ranks, in turn or as they take them: those that deal out the rest give none that one has to another one. And
// what goes in turn is shared out evenly, be it all that a rank sends or the part that goes by one link.
func TestNothingComesTwice(t *testing.T) {
	kept := program(t, "kept")
	relay := filepath.Join(harness.Build(t), "bin/spx-iop")
	const count, senders = 1500, 2
	for name, c := range map[string]struct {
		options []string
		to      []int // ranks of the clusters that messages go to
		iops    int
		kills   int
		even    float64 // by how much of what each should get it may differ
		other   bool    // another link takes every second message, or so
	}{
		"to one":         {[]string{"--to", "one"}, []int{1, 1, 1}, 2, 6, 0.01, false},
		"spread":         {[]string{"--route", "spread"}, []int{3}, 2, 6, 0.01, false},
		"spread, to one": {[]string{"--route", "spread", "--to", "one"}, []int{2, 3}, 1, 6, 0.01, false},
		"demand":         {[]string{"--route", "demand"}, []int{3}, 2, 6, 0, false},
		"demand, to one": {[]string{"--route", "demand", "--to", "one"}, []int{2, 2}, 2, 6, 0, false},
		"demand, to all": {[]string{"--route", "demand", "--to", "all"}, []int{3}, 2, 6, 0, false}, // of one cluster
		"a part":         {[]string{"--to", "one"}, []int{1, 1}, 1, 0, 0.12, true},
		"a part, spread": {[]string{"--route", "spread"}, []int{2}, 1, 0, 0.12, true},
		"one rank":       {[]string{"--route", "spread"}, []int{1}, 3, 6, 0.01, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := fmt.Sprintf("[system]\nmessages = \"kept\"\n[failure]\nrestarts = 20\n[[cluster]]\nname = \"a\"\nprogram = %q\nargs = [\"send\", \"%d\", \"100\"]\nranks = %d\n", kept, count, senders)
			var names []string
			for i, ranks := range c.to {
				kills := 0
				if i == 0 {
					kills = c.kills
				}
				names = append(names, fmt.Sprintf("to%d", i))
				text += fmt.Sprintf("[[cluster]]\nname = %q\nprogram = %q\nargs = [\"share\", \"%d\", %q, \"%d\", \"%d\"]\nranks = %d\n", names[i], kept, count, dir, kills, senders, ranks)
			}
			if c.other {
				text += fmt.Sprintf("[[cluster]]\nname = \"other\"\nprogram = %q\nargs = [\"share\", \"%d\", %q, \"0\", \"%d\"]\nranks = 1\n[[link]]\nfrom = \"a\"\nto = \"other\"\nprogram = %q\nargs = [\"relay\", %q, %q]\n",
					kept, count, dir, senders, kept, dir, relay)
			}
			args := strings.Join(append([]string{"relay", dir, relay}, c.options...), `", "`)
			text += fmt.Sprintf("[[link]]\nfrom = \"a\"\nto = [\"%s\"]\niops = %d\nprogram = %q\nargs = [\"%s\"]\n", strings.Join(names, `", "`), c.iops, kept, args)
			o := file(t, text)
			checkShares(t, o, filepath.Join(dir, "taken"), count*senders, c.kills)
			if c.even > 0 {
				checkEven(t, o, c.to, count*senders, c.other, c.even)
			}
		})
	}
}

// checkShares: each message was taken once, and the I/O processes were killed.
func checkShares(t *testing.T, o harness.Outcome, file string, count, kills int) {
	t.Helper()
	taken, err := os.ReadFile(file)
	lost, twice, killed := count-len(taken), 0, 0
	for _, n := range taken {
		if n == 0 {
			lost++
		}
		if n > 1 {
			twice++
		}
	}
	for _, m := range shareLine.FindAllStringSubmatch(o.Stdout, -1) {
		n, _ := strconv.Atoi(m[4])
		killed += n
	}
	if killed < min(kills, 2) || killed > kills {
		t.Errorf("%d of %d I/O processes were killed", killed, kills)
	}
	if err != nil || o.Status != 0 || lost != 0 || twice != 0 {
		t.Errorf("exit status %d; of %d messages %d were lost, %d came twice (%v)\n%s--- again: go test ./tests/systems -count=1 -run '%s'",
			o.Status, count, lost, twice, err, o.Text(), strings.ReplaceAll(t.Name(), " ", "_"))
	}
}

var shareLine = regexp.MustCompile(`cluster to(\d+) rank (\d+) took (\d+), \d+ wrong, (\d+) killed`)

// checkEven: each cluster has the same share, or of one cluster each rank.
func checkEven(t *testing.T, o harness.Outcome, to []int, count int, part bool, even float64) {
	t.Helper()
	took, all := map[[2]int]int{}, 0
	for _, m := range shareLine.FindAllStringSubmatch(o.Stdout, -1) {
		cluster, _ := strconv.Atoi(m[1])
		rank, _ := strconv.Atoi(m[2])
		n, _ := strconv.Atoi(m[3])
		took[[2]int{cluster, rank}] = n
		all += n
	}
	if !part && all != count || part && (all < count/4 || all > count*3/4) {
		t.Errorf("%d of %d messages came by that link", all, count)
	}
	for who, n := range took {
		want := float64(all) / float64(len(to)*to[who[0]])
		if float64(n) < want*(1-even)-2 || float64(n) > want*(1+even)+2 {
			t.Errorf("rank %d of cluster %d took %d messages, and has a share of %.0f", who[1], who[0], n, want)
		}
	}
}

// An I/O process of a user's dies at its first send, with all that had come for it: the one that is started in its place gets that.
// One that has called MPI_Abort, and has not ended yet, has not left either: its receivers wait for the next one.
func TestAFirstSendThatKills(t *testing.T) {
	kept := program(t, "kept")
	for _, how := range []string{"once", "slowly"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			o := file(t, "[system]\nmessages = \"kept\"\n"+link(fmt.Sprintf("program = %q\nargs = [\"send\", \"40\", \"100\"]\nranks = 2", kept), fmt.Sprintf("program = %q\nargs = [\"receive\", \"40\", %q, \"0\"]\nranks = 1", kept, dir),
				fmt.Sprintf("program = %q\nargs = [%q, %q]", kept, how, dir)))
			checkKept(t, o, 80, 0)
		})
	}
}

// A cluster is started again, and its new process asks the I/O process, which was stopped meanwhile, for what it has before that one has heard which process it is: it gets each long message once, in order.
func TestLongForClusterStartedAgain(t *testing.T) {
	kept, count := program(t, "kept"), 60
	s := newApart(t, "messages = \"kept\"\n"+fmt.Sprintf(`
[[cluster]]
name = "a"
program = %q
args = ["send", "%d", "300000"]
ranks = 1
[[cluster]]
name = "b"
program = %q
args = ["heir", "%d", %q]
ranks = 1
failure = { process = "stop", cluster = "restart" }
[[link]]
from = "a"
to = "b"
`, kept, count, kept, count, t.TempDir()))
	r := s.whole()
	first, relay := r.pid("b.0"), r.pid("a-b.iop0.0")
	await := func(what string, looks int, is func() bool) { // at so many looks in a row
		limit := time.Now().Add(harness.Patience(10 * time.Second))
		for n := 0; n < looks; time.Sleep(time.Millisecond) {
			if n++; !is() {
				n = 0
			}
			if time.Now().After(limit) {
				t.Fatalf("not so: %s", what)
			}
		}
	}
	await("the rank has died", 1, func() bool { return state(first) == "Z" || state(first) == "" })
	defer syscall.Kill(relay, syscall.SIGCONT) //nolint:errcheck // it has ended
	if err := syscall.Kill(relay, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.says("cluster b is started again (1 of at most 3 times).")
	next := r.pid("0 of cluster b")
	await("the next one waits in MPI_Recv", 100, func() bool { return state(next) == "S" })
	syscall.Kill(relay, syscall.SIGCONT) //nolint:errcheck // it is there
	r.ends(0, fmt.Sprintf("the last was %d; 0 out of order", count-1))
}

// state is that of a process, as /proc says it; empty: there is none.
func state(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:min(1, len(rest))]
}

// Messages come faster than a rank takes them: they wait at their senders, and neither in the message log of a rank that is taken over transparently, nor in its commits. What it looks for is found all the same.
func TestBacklog(t *testing.T) {
	backlog := program(t, "backlog")
	const count = 500
	for name, c := range map[string]struct{ how, policy string }{
		"transparent":         {"slow", "standbys = 1\ntakeover = \"transparent\"\nenvironment = { SPX_REPLAY_MAX = \"1M\" }"},
		"kept":                {"slow", ""},
		"behind, transparent": {"behind", "standbys = 1\ntakeover = \"transparent\""},
		"behind, kept":        {"behind", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := file(t, "[system]\nmessages = \"kept\"\n"+link(fmt.Sprintf("program = %q\nargs = [\"send\", \"%d\", \"12000\"]\nranks = 1", backlog, count),
				fmt.Sprintf("program = %q\nargs = [%q]\nranks = 1\n%s", backlog, c.how, c.policy), ""))
			if o.Status != 0 || !strings.Contains(o.Stdout, fmt.Sprintf("got %d\n", count+1)) {
				t.Errorf("exit status %d\n%s--- again: go test ./tests/systems -count=1 -run '%s'", o.Status, o.Text(), t.Name())
			}
		})
	}
}

// A receiver has died and is back: a sender stays in MPI_Finalize until it has asked for the last message. It may leave earlier as long as the receiver is awaited.
func TestSenderStays(t *testing.T) {
	kept := program(t, "kept")
	for name, failure := range map[string]string{
		"started": "failure = { process = \"restart\" }",
		"cluster": "failure = { process = \"stop\", cluster = \"restart\" }",
		"standby": "standbys = 3\nfailure = { process = \"replace\" }",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := file(t, "[system]\nmessages = \"kept\"\n[failure]\nrestarts = 10\n"+link(fmt.Sprintf("program = %q\nargs = [\"stays\", %q]\nranks = 1", kept, dir),
				fmt.Sprintf("program = %q\nargs = [\"again\", %q]\nranks = 1\n%s", kept, dir, failure), ""))
			if o.Status != 0 || !strings.Contains(o.Stdout, "the sender has left: asked for") || !strings.Contains(o.Stdout, "its receiver has got ") {
				t.Errorf("exit status %d\n%s--- again: go test ./tests/systems -count=1 -run '%s'", o.Status, o.Text(), t.Name())
			}
		})
	}
}

// The receiver dies, and a standby has its rank, which is told so, or a process that is started in its place: it receives what the dead one had not accepted, to the last message.
func TestKeptForWhoTakesTheRank(t *testing.T) {
	kept := program(t, "kept")
	for name, c := range map[string]struct {
		count, bytes int
		receiver     string
	}{
		"standby":            {3000, 8, "standbys = 1\nfailure = { process = \"replace\" }"},
		"started":            {3000, 8, "failure = { process = \"restart\" }"},
		"cluster":            {3000, 8, "failure = { process = \"stop\", cluster = \"restart\" }"},
		"announced, standby": {60, 2_000_000, "standbys = 1\nfailure = { process = \"replace\" }"},
		"announced, cluster": {60, 2_000_000, "failure = { process = \"stop\", cluster = \"restart\" }"},
		"announced, started": {60, 2_000_000, "failure = { process = \"restart\" }"},
	} {
		t.Run(name, func(t *testing.T) {
			count := c.count
			o := file(t, "[system]\nmessages = \"kept\"\n"+link(fmt.Sprintf("program = %q\nargs = [\"send\", \"%d\", \"%d\"]\nranks = 1", kept, count, c.bytes),
				fmt.Sprintf("program = %q\nargs = [\"heir\", \"%d\", %q]\nranks = 1\n%s", kept, count, t.TempDir(), c.receiver), "iops = 2\nchoice = \"key\""))
			var got, last, of int
			i := strings.Index(o.Stdout, "the heir received")
			if i >= 0 {
				fmt.Sscanf(o.Stdout[i:], "the heir received %d of %d, the last was %d; 0 out of order", &got, &of, &last) //nolint:errcheck // seen below
			}
			// What the dead one had accepted and not looked at is lost with it, which is bounded, and what it had received may come again.
			if o.Status != 0 || last != count-1 || got < count-count/3-200 || got > count {
				t.Errorf("exit status %d\n%s--- again: go test ./tests/systems -count=1 -run '%s'", o.Status, o.Text(), t.Name())
			}
		})
	}
}

var receivedLine = regexp.MustCompile(`rank \d+ received (\d+), (\d+) twice, (\d+) wrong, (\d+) out of order, (\d+) killed`)

func checkKept(t *testing.T, o harness.Outcome, want, kills int) {
	t.Helper()
	var sum [5]int
	for _, m := range receivedLine.FindAllStringSubmatch(o.Stdout, -1) {
		for i, text := range m[1:] {
			n, _ := strconv.Atoi(text)
			sum[i] += n
		}
	}
	if killed := sum[4]; killed < min(kills, 2) || killed > kills {
		t.Errorf("%d of %d I/O processes were killed", killed, kills)
	}
	if sum[4] = 0; o.Status != 0 || sum != [5]int{want} {
		t.Errorf("exit status %d; %d of %d received, %d twice, %d wrong, %d out of order\n%s--- again: go test ./tests/systems -count=1 -run '%s'",
			o.Status, sum[0], want, sum[1], sum[2], sum[3], o.Text(), strings.ReplaceAll(t.Name(), " ", "_"))
	}
}

// A cluster that is taken over transparently has lost all its processes, and is gone for good: nothing more is kept for it, so that those who send go on to the other one, and what it might have sent is not waited for at the end.
func TestTransparentClusterIsGone(t *testing.T) {
	const gone = `ranks = 1
standbys = 1
takeover = "transparent"
failure = { process = "replace", cluster = "degrade" }
`
	ends := func(t *testing.T, r *running, cluster string) {
		t.Helper()
		syscall.Kill(r.pid(cluster+".0"), syscall.SIGKILL) //nolint:errcheck // it is there
		r.says("a standby takes its place")
		syscall.Kill(r.pid(cluster+".standby0"), syscall.SIGKILL) //nolint:errcheck // likewise
		r.says("cluster " + cluster + " is gone; the others go on.")
	}
	t.Run("it receives", func(t *testing.T) {
		t.Setenv("SPX_KEPT_MAX", "16K")
		s := newApart(t, `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 1
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
`+gone+`
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c", "each"]
ranks = 1
[[link]]
from = "a"
to = ["b", "c"]
args = ["--to", "all"]
`)
		r := s.whole()
		s.await("b")
		ends(t, r, "b")
		for range 60 { // far more than is kept
			os.Remove(filepath.Join(s.dir, "c")) //nolint:errcheck // it need not be there
			s.await("c")
		}
		s.write("stop", "", "")
		r.ends(0, "[a.0] rank 0 sent ", "[c.0] c: 1 ranks\n")
	})
	t.Run("it sends", func(t *testing.T) {
		s := newApart(t, `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
`+gone+`
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
ranks = 1
[[link]]
from = "a"
to = "b"
`)
		r := s.whole()
		s.await("b")
		ends(t, r, "a")
		r.ends(0, "[b.0] b: 1 ranks\n")
	})
}
