package systems

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"libspx/launch/service"
	"libspx/tests/harness"
	"libspx/tests/systems/storm"
)

// fixedStorms are seeds of which make test runs each: they have the kinds of clusters and faults between them; the last four were not as they should be once.
var fixedStorms = []uint64{4, 207, 1795969347684773, 1795969347684774, 1795972508066262, 1795972508066268, 1795972508066287, 1795999513618628}

// Systems that are drawn from a seed, with clusters of all kinds, policies and faults on hosts of scripts/hosts: what the policies promise is so (package storm). SPX_STORM_SECONDS says for how long such systems are run, one after another;
// with SPX_STORM_SEED it is this one again and again. Without, some seeds are run.
func TestStorm(t *testing.T) {
	seconds, seed, one := 0, uint64(time.Now().UnixNano()/1000), os.Getenv("SPX_STORM_SEED") != ""
	for name, v := range map[string]any{"SPX_STORM_SECONDS": &seconds, "SPX_STORM_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			if _, err := fmt.Sscan(text, v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if seconds == 0 && !one {
		for _, seed := range fixedStorms {
			t.Run(fmt.Sprint(seed), func(t *testing.T) { weather(t, storm.DrawBefore(seed)) })
		}
		return
	}
	var failed []uint64
	n := 0
	for began := time.Now(); n == 0 || time.Since(began) < time.Duration(seconds)*time.Second; n++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { weather(t, storm.Draw(seed)) }) {
			failed = append(failed, seed)
		}
		if !one {
			seed++
		}
	}
	t.Logf("%d systems; failed: %d: make storm SECONDS=1 SEED=... repeats one", n, failed)
}

// What storms have found, as the smallest plans that show it.
func TestStormsFound(t *testing.T) {
	for name, p := range map[string]*storm.Plan{
		"a cluster ends without a rank": {
			Hosts: 1,
			Clusters: []storm.Cluster{
				{Role: storm.Send, Kind: storm.Told, Ranks: 2, Home: 1, Other: 1, Process: "degrade", Host: "stop", Network: "stop", Hang: "report", Whole: "restart", IOP: "restart", IOPHang: "report"},
				{Role: storm.Take, Kind: storm.Plain, Ranks: 1, Home: 1, Other: 1, Process: "stop", Host: "stop", Network: "stop", Hang: "report", Whole: "stop", IOP: "restart", IOPHang: "report"},
			},
			Links:  []storm.Link{{From: []int{0}, To: []int{1}, IOPs: 1, Hosts: []int{1}, Choice: "tag", Route: "same"}},
			Groups: []storm.Group{{Messages: 5, Faults: []storm.Fault{{What: storm.KillRank, Cluster: 0, Rank: 0}}}},
		},
		"a rank is not replaced, nobody waits for it": {
			Hosts: 1,
			Clusters: []storm.Cluster{
				{Role: storm.Send, Kind: storm.Transparent, Ranks: 2, Standbys: 1, Home: 1, Other: 1, Process: "replace", Host: "stop", Network: "stop", Hang: "report", Whole: "stop", IOP: "restart", IOPHang: "report"},
				{Role: storm.Take, Kind: storm.Told, Ranks: 2, Home: 1, Other: 1, Process: "degrade", Host: "stop", Network: "stop", Hang: "report", Whole: "restart", IOP: "restart", IOPHang: "report"},
			},
			Links:  []storm.Link{{From: []int{0}, To: []int{1}, IOPs: 1, Hosts: []int{1}, Choice: "tag", Route: "same"}},
			Groups: []storm.Group{{Messages: 5, Faults: []storm.Fault{{What: storm.KillRank, Cluster: 1, Rank: 0}}}},
		},
		"the last way is lost while who sends stands still": {
			Hosts: 1,
			Clusters: []storm.Cluster{
				{Role: storm.Send, Kind: storm.Told, Ranks: 1, Home: 1, Other: 1, Process: "degrade", Host: "stop", Network: "stop", Hang: "report", Whole: "stop", IOP: "degrade", IOPHang: "report"},
				{Role: storm.Take, Kind: storm.Plain, Ranks: 1, Home: 1, Other: 1, Process: "stop", Host: "stop", Network: "stop", Hang: "report", Whole: "stop", IOP: "restart", IOPHang: "report"},
			},
			Links:  []storm.Link{{From: []int{0}, To: []int{1}, IOPs: 1, Hosts: []int{1}, Choice: "tag", Route: "same"}},
			Groups: []storm.Group{{Messages: 20, Faults: []storm.Fault{{What: storm.KillIOP}, {What: storm.HangRank, Cluster: 0, Rank: 0}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.Messages, p.SilenceMS, p.PaceUS, p.Bytes = "kept", 3000, 1000, 1000
			weather(t, p)
		})
	}
}

// A tempest is a plan that is carried out.
type tempest struct {
	*onHosts
	t       *testing.T
	plan    *storm.Plan
	model   *storm.Model
	folder  string
	began   time.Time
	mu      sync.Mutex
	log     strings.Builder // guarded by mu
	taken   map[int]bool    // processes that were ended, or will be, by their numbers here
	goesOn  map[int]int     // processes that hung and were let go on: how often that had been said of any before
	stopped []int           // agents that stand still
	undone  sync.WaitGroup  // what goes on again
	runs    []*running      // of clusters that are started one by one
	anew    bool            // a cluster was started again for a death while it started: the plan could not know
	kept    bool            // keep was called for a system that failed
	word    string          // what the system had said when it ended: who goes on again then, and finds the others gone, says so, too
}

// weather carries out a plan, and holds what comes of it against what its policies promise.
func weather(t *testing.T, plan *storm.Plan) {
	t.Helper()
	s := &tempest{t: t, plan: plan, began: time.Now(), taken: map[int]bool{}, goesOn: map[int]int{}}
	s.model = storm.NewModel(s.plan)
	s.begin()
	t.Cleanup(s.keep)
	s.note("%v", s.plan)
	early := s.early()
	for i, g := range s.plan.Groups {
		if early {
			break
		}
		if s.flows(g.Messages); s.spent() {
			break
		}
		if i == 0 {
			s.anew = s.model.CameAnew(s.all())
		}
		s.group(g)
		if s.model.Ended {
			break
		}
	}
	if !s.model.Ended && !early {
		s.flows(10)
		s.note("stop")
		s.write("stop", "")
		s.leave()
	}
	status := s.end()
	s.note("ended, status %d", status)
	for _, w := range storm.Judge(s.model, &storm.Report{Files: s.files(), Said: s.word, Status: status, HostOf: s.host, Early: early}) {
		t.Error(w)
	}
}

// write makes a file in the folder of the programs.
func (s *tempest) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o666); err != nil {
		s.t.Fatal(err)
	}
}

// early does what happens while the system starts. It may have ended for that, where its policies let it; or all are there soon.
func (s *tempest) early() (ended bool) {
	s.t.Helper()
	s.model.Begin()
	for _, f := range s.plan.Early {
		is := s.iop(f.Link)
		if f.What == storm.KillRank {
			is = s.comes(f.Cluster, f.Rank)
		}
		var pid int
		s.until(func() string { return fmt.Sprintf("%v: there is such a process", f) }, func() bool {
			for h := 1; h <= s.plan.Hosts && pid == 0; h++ {
				if list := s.processes(h, is); len(list) > 0 {
					pid = list[f.Index%len(list)]
				}
			}
			return pid > 0
		})
		time.Sleep(time.Duration(f.AfterMS) * time.Millisecond) // some moment of its beginning
		s.note("%v", f)
		s.taken[pid] = true
		s.signal(pid, syscall.SIGKILL)
		if !s.model.ApplyEarly(f) {
			s.t.Fatalf("%v has no outcome", f)
		}
	}
	if s.model.MayEnd {
		began := time.Now()
		for _, r := range s.living() {
			for s.here(s.last(r)) == 0 {
				select {
				case <-s.ended:
					return true
				default:
				}
				if time.Since(began) > harness.Patience(30*time.Second) {
					s.t.Fatalf("rank %d of cluster %d is not there, and the system has not ended", r.Rank, r.Cluster)
				}
				time.Sleep(3 * time.Millisecond)
			}
		}
	}
	return false
}

// comes is what the first process that is a rank is known by, before it has said so itself.
func (s *tempest) comes(c, rank int) func(int, string, []string) bool {
	return func(pid int, comm string, args []string) bool {
		if comm != "storm" || len(args) < 4 || args[3] != strconv.Itoa(c) {
			return false
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return slices.Contains(strings.Split(string(env), "\x00"), "SPX_RANK="+strconv.Itoa(rank))
	}
}

// leave does what happens at the end: to ranks when they have said all that they have to say, in MPI_Finalize or right before it or behind it.
func (s *tempest) leave() {
	s.t.Helper()
	s.model.Begin()
	for _, f := range s.plan.Last {
		pid := 0
		switch f.What {
		case storm.KillRank:
			r := storm.Rank{Cluster: f.Cluster, Rank: f.Rank}
			s.until(func() string { return fmt.Sprintf("%+v comes to its end", r) }, func() bool {
				l := s.last(r)
				_, err := os.Stat(filepath.Join(s.folder, fmt.Sprintf("end.%d.%d.%d", f.Cluster, f.Rank, l.life)))
				if pid = s.here(l); err == nil {
					return true
				}
				select {
				case <-s.ended:
					return true
				default:
					return false
				}
			})
		case storm.KillIOP:
			for h := 1; h <= s.plan.Hosts && pid == 0; h++ {
				if list := s.processes(h, s.iop(f.Link)); len(list) > 0 {
					pid = list[f.Index%len(list)]
				}
			}
		case storm.KillMaster:
			if list := s.processes(f.Host, isMaster); len(list) > 0 {
				pid = list[0]
			}
		}
		time.Sleep(time.Duration(f.AfterMS) * time.Millisecond) // some moment
		s.note("%v (%d)", f, pid)
		s.signal(pid, syscall.SIGKILL)
		if !s.model.ApplyLast(f) {
			s.t.Fatalf("%v has no outcome", f)
		}
	}
}

func (s *tempest) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.log, "%7.3f %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

func (s *tempest) host(h int) string { return s.hosts.name(h - 1) }

func (s *tempest) begin() {
	hosts := newHosts(s.t, s.plan.Hosts)
	if s.plan.TwoNetworks {
		apartNetworks(hosts)
	}
	dir := s.t.TempDir()
	s.folder = filepath.Join(dir, "said")
	if err := os.Mkdir(s.folder, 0o777); err != nil {
		s.t.Fatal(err)
	}
	text := s.plan.Text(func(h int) string { return hosts.name(h - 1) }, program(s.t, "storm"), s.folder)
	a := &apart{t: s.t, dir: dir, file: filepath.Join(dir, "storm.toml")}
	if err := os.WriteFile(a.file, []byte(text), 0o666); err != nil {
		s.t.Fatal(err)
	}
	if s.plan.Apart {
		a.key("key")
		s.onHosts = &onHosts{apart: a, hosts: hosts, names: strings.NewReplacer()}
		for c := range s.plan.Clusters {
			s.runs = append(s.runs, s.attach(c))
		}
		s.running = s.runs[0]
		return
	}
	cmd := exec.Command(hosts.script, "on", hosts.name(0), filepath.Join(harness.Build(s.t), "bin/spxrun"), "--timeout", harness.Seconds(120*time.Second), "--rsh", hosts.script+" rsh", "-l", "--system", a.file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SPX_SPIN=0", "SPX_AGENT_LIMIT=0", fmt.Sprint("SPX_HEARTBEAT_LIMIT=", s.plan.SilenceMS))
	s.onHosts = &onHosts{a, a.launch("storm", cmd), hosts, strings.NewReplacer()}
}

// attach starts a cluster that is started by itself.
func (s *tempest) attach(c int) *running {
	s.t.Helper()
	cmd := exec.Command(s.hosts.script, "on", s.host(s.plan.Clusters[c].Home), filepath.Join(harness.Build(s.t), "bin/spxrun"), "--rsh", s.hosts.script+" rsh", "-l", "--system", s.file, "--cluster", storm.Name(c))
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "SPX_SPIN=0", "SPX_AGENT_LIMIT=0", fmt.Sprint("SPX_HEARTBEAT_LIMIT=", s.plan.SilenceMS))
	r := s.launch(storm.Name(c), cmd)
	s.t.Cleanup(s.keep)
	return r
}

// spent: those that send have no numbers left.
func (s *tempest) spent() bool {
	for _, o := range s.model.Origins() {
		if l := s.last(o); l.number >= 29900 {
			s.note("rank %d of cluster %d has sent all it can", o.Rank, o.Cluster)
			return true
		}
	}
	return false
}

// A life is a process that is a rank, as it says itself.
type life struct {
	number, process, host int // messages; its number on its host; from 1
	life                  int // the first is 0; -1: there is none
}

// last is the last process that has been a rank.
func (s *tempest) last(r storm.Rank) life {
	l := life{life: -1}
	for {
		text, err := os.ReadFile(filepath.Join(s.folder, fmt.Sprintf("at.%d.%d.%d", r.Cluster, r.Rank, l.life+1)))
		if err != nil {
			return l
		}
		l.life++
		var host string
		var generation int
		l.host, l.number, l.process = 0, 0, 0
		fmt.Sscan(string(text), &host, &l.process, &generation, &l.number) //nolint:errcheck // it has not written yet
		for h := 1; h <= s.plan.Hosts; h++ {
			if s.host(h) == host {
				l.host = h
			}
		}
	}
}

// living are the ranks that are to be there.
func (s *tempest) living() (out []storm.Rank) {
	for c, p := range s.plan.Clusters {
		for r := range p.Ranks {
			if k := s.model.Clusters[c]; !k.Gone && !slices.Contains(k.Dead, r) {
				out = append(out, storm.Rank{Cluster: c, Rank: r})
			}
		}
	}
	return out
}

// here is the number that the process of a rank has here; 0: it is not there, or was ended.
func (s *tempest) here(l life) int {
	if l.host == 0 || l.process == 0 || slices.Contains(s.model.Lost, l.host) {
		return 0
	}
	if pid := s.hosts.Outside(l.host, l.process); !s.taken[pid] {
		return pid
	}
	return 0
}

// until waits for something that must come.
func (s *tempest) until(what func() string, done func() bool) {
	s.t.Helper()
	limit := time.Now().Add(harness.Patience(15 * time.Second))
	for !done() {
		select {
		case <-s.ended:
			if !slices.Contains(s.model.Lost, 1) {
				s.t.Fatalf("the system has ended; not so: %s", what())
			}
		default:
		}
		if time.Now().After(limit) {
			s.t.Fatalf("not so: %s", what())
		}
		time.Sleep(3 * time.Millisecond)
	}
}

// flows waits until all ranks are there, and so many messages have come to each that some can come to, and from all that send.
func (s *tempest) flows(messages int) {
	s.t.Helper()
	watched := s.model.Arriving()
	if len(watched) == 0 { // those that receive may have ended
		return
	}
	var missing storm.Rank
	for _, r := range s.living() {
		missing = r
		s.until(func() string {
			return fmt.Sprintf("rank %d of cluster %d is there: %+v", missing.Rank, missing.Cluster, s.last(missing))
		}, func() bool { return s.here(s.last(r)) > 0 })
	}
	for _, o := range s.model.Origins() {
		if slices.ContainsFunc(watched, func(to []storm.Rank) bool { return to[0].Cluster != o.Cluster }) && s.model.Free(o.Cluster) {
			watched = append(watched, []storm.Rank{o})
		}
	}
	before := map[storm.Rank]life{}
	for _, to := range watched {
		for _, r := range to {
			before[r] = s.last(r)
		}
	}
	for _, to := range watched {
		s.until(func() string {
			text := fmt.Sprintf("%+v go on by %d messages:", to, messages)
			for _, r := range to {
				text += fmt.Sprintf(" %+v, before %+v;", s.last(r), before[r])
			}
			return text
		}, func() bool {
			more := 0
			for _, r := range to {
				now, was := s.last(r), before[r]
				if now.life > was.life && s.plan.Clusters[r.Cluster].Kind != storm.Transparent {
					was.number = 0
				}
				more += now.number - was.number
			}
			return more >= messages || s.spent()
		})
	}
}

// group does what happens at once.
func (s *tempest) group(g storm.Group) {
	s.t.Helper()
	again := map[storm.Rank]int{}
	was, gone := map[int]int{}, map[int]bool{}
	for c := range s.plan.Clusters {
		was[c], gone[c] = s.model.Again(c), s.model.Clusters[c].Gone
	}
	for _, r := range s.living() {
		again[r] = s.last(r).life
	}
	if slices.ContainsFunc(g.Faults, storm.Fault.IsHost) {
		s.settled()
	}
	s.model.Begin()
	for _, f := range g.Faults {
		time.Sleep(time.Duration(f.AfterMS) * time.Millisecond) // some moment
		if s.anew && !s.model.Has(f) {
			s.note("left out: %v", f)
			continue
		}
		s.note("%v", f)
		s.do(f)
		if !s.model.Apply(f) {
			s.t.Fatalf("%v has no outcome", f)
		}
	}
	s.undone.Wait()
	if s.model.Ended {
		return
	}
	for _, f := range g.Faults { // until then it may be on the way to be taken for lost, and that is no state of which the policies speak
		if i := slices.Index(s.model.Lost, f.Host); f.IsHost() && i >= 0 && s.model.Said[i] {
			s.until(func() string { return fmt.Sprintf("it is said that host %d is lost", f.Host) }, func() bool { return storm.SaysLost(s.all(), s.host(f.Host)) })
		}
	}
	for c := range s.plan.Clusters {
		if s.model.Clusters[c].Gone && !gone[c] {
			s.until(func() string { return fmt.Sprintf("it is said that cluster %d is gone", c) }, func() bool {
				return strings.Contains(s.all(), fmt.Sprintf("cluster %s is gone; the others go on.", storm.Name(c)))
			})
			s.write(storm.GoneFile(c), s.progress())
		}
	}
	for _, r := range s.living() { // a cluster that is started again is other processes
		if s.model.Again(r.Cluster) > was[r.Cluster] {
			s.until(func() string {
				return fmt.Sprintf("cluster %d is started again: rank %d %+v", r.Cluster, r.Rank, s.last(r))
			}, func() bool { return s.last(r).life > again[r] })
		}
	}
}

// progress is how far those are that send, as programs note it.
func (s *tempest) progress() string {
	var b strings.Builder
	for _, o := range s.model.Origins() {
		text, _ := os.ReadFile(filepath.Join(s.folder, fmt.Sprintf("at.%d.%d.%d", o.Cluster, o.Rank, s.last(o).life)))
		var host string
		var pid, generation, number int
		fmt.Sscan(string(text), &host, &pid, &generation, &number) //nolint:errcheck // it has not begun
		fmt.Fprintf(&b, "%d %d %d %d\n", o.Cluster, o.Rank, generation, number)
	}
	return b.String()
}

// settled waits until all hosts that are left know what was decided.
func (s *tempest) settled() {
	s.t.Helper()
	hosts := s.model.Alive()
	asks, alive := hosts[len(hosts)-1], len(hosts)
	if alive+len(s.model.Lost) < 3 || s.plan.TwoNetworks || alive < 2 {
		return
	}
	var list []service.Host
	s.until(func() string { return fmt.Sprintf("all %d hosts have the same copy: %+v", alive, list) }, func() bool {
		out, err := exec.Command(s.hosts.script, "on", s.host(asks), filepath.Join(harness.Build(s.t), "bin/spxctl"), "hosts", ".", "--json").Output()
		if list = nil; err != nil || json.Unmarshal(out, &list) != nil {
			return false
		}
		n, original := 0, ""
		for _, h := range list {
			if h.Copy != nil && h.Copy.Original != "" {
				original = h.Copy.Original
			}
		}
		for _, h := range list {
			if h.Copy != nil && h.Copy.Events > 0 && h.Copy.Digest == original {
				n++
			}
		}
		return n == alive
	})
}

// processes are those of a host that a test of their command lines finds.
func (s *tempest) processes(h int, is func(pid int, comm string, args []string) bool) (out []int) {
	if slices.Contains(s.model.Lost, h) {
		return nil
	}
	for _, pid := range s.hosts.Pids(h) {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if !s.taken[pid] && is(pid, strings.TrimSpace(string(comm)), strings.Split(string(line), "\x00")) {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// chosen waits for processes of all hosts, or of one, and chooses one of them.
func (s *tempest) chosen(f storm.Fault, is func(pid int, comm string, args []string) bool) (pid int) {
	s.t.Helper()
	s.until(func() string { return fmt.Sprintf("%v: there is such a process", f) }, func() bool {
		var list []int
		for h := 1; h <= s.plan.Hosts; h++ {
			if f.Host == 0 || f.Host == h {
				list = append(list, s.processes(h, is)...)
			}
		}
		if len(list) > 0 {
			pid = list[f.Index%len(list)]
		}
		return len(list) > 0
	})
	return pid
}

func isAgent(_ int, comm string, _ []string) bool { return comm == service.AgentName }

func isMaster(_ int, comm string, _ []string) bool { return comm == service.MasterName }

// standby is what a standby of a cluster is known by: that it has no rank.
func (s *tempest) standby(c int) func(int, string, []string) bool {
	return func(_ int, comm string, args []string) bool {
		return comm == "storm" && len(args) > 3 && args[3] == strconv.Itoa(c)
	}
}

func (s *tempest) signal(pid int, number syscall.Signal) {
	if pid > 0 {
		syscall.Kill(pid, number) //nolint:errcheck // it may have ended
	}
}

// moment stops processes for a while.
func (s *tempest) moment(pids []int, f storm.Fault) {
	for _, pid := range pids {
		s.signal(pid, syscall.SIGSTOP)
	}
	s.later(f, func() {
		for _, pid := range pids {
			s.signal(pid, syscall.SIGCONT)
		}
	})
}

func (s *tempest) later(f storm.Fault, back func()) {
	s.undone.Add(1)
	time.AfterFunc(time.Duration(f.ForMS)*time.Millisecond, func() {
		back()
		s.undone.Done()
	})
}

func (s *tempest) rank(r storm.Rank) (pid int) {
	s.t.Helper()
	s.until(func() string { return fmt.Sprintf("rank %+v is there", r) }, func() bool { pid = s.here(s.last(r)); return pid > 0 })
	return pid
}

func (s *tempest) switches() []string {
	if s.plan.TwoNetworks {
		return []string{"br0", "br1"}
	}
	return []string{"br0"}
}

// link sets a port or a switch of the network.
func (s *tempest) link(name, to string) {
	s.hosts.run("ip", "-n", s.hosts.prefix+"sw", "link", "set", name, to)
}

func (s *tempest) do(f storm.Fault) {
	s.t.Helper()
	is := storm.Rank{Cluster: f.Cluster, Rank: f.Rank}
	switch f.What {
	case storm.KillRank:
		pid := s.rank(is)
		s.taken[pid] = true
		s.signal(pid, syscall.SIGKILL)
	case storm.KillStandby:
		for _, r := range s.living() {
			if l := s.last(r); l.host > 0 && r.Cluster == f.Cluster {
				s.taken[s.hosts.Outside(l.host, l.process)] = true // for the moment
				defer delete(s.taken, s.hosts.Outside(l.host, l.process))
			}
		}
		pid := s.chosen(f, s.standby(f.Cluster))
		s.signal(pid, syscall.SIGKILL)
		defer func() { s.taken[pid] = true }()
	case storm.KillIOP:
		pid := s.chosen(f, s.iop(f.Link))
		s.taken[pid] = true
		s.signal(pid, syscall.SIGKILL)
	case storm.KillMaster:
		for _, pid := range s.processes(f.Host, isMaster) {
			s.signal(pid, syscall.SIGKILL)
		}
	case storm.KillAgent:
		s.signal(s.chosen(f, isAgent), syscall.SIGKILL)
	case storm.KillHost:
		s.signal(s.chosen(f, isAgent), syscall.SIGKILL)
		for _, pid := range s.hosts.Pids(f.Host) {
			s.signal(pid, syscall.SIGKILL)
		}
	case storm.StopAgent:
		pid := s.chosen(f, isAgent)
		s.stopped = append(s.stopped, pid)
		s.signal(pid, syscall.SIGSTOP)
	case storm.Unplug:
		s.link(fmt.Sprint("port", f.Host), "down")
	case storm.Blink:
		s.link(fmt.Sprint("port", f.Host), "down")
		s.later(f, func() { s.link(fmt.Sprint("port", f.Host), "up") })
	case storm.BlinkAll:
		for _, b := range s.switches() {
			s.link(b, "down")
		}
		s.later(f, func() {
			for _, b := range s.switches() {
				s.link(b, "up")
			}
		})
	case storm.Pause:
		s.moment([]int{s.rank(is)}, f)
	case storm.PauseIOP:
		s.moment([]int{s.chosen(f, s.iop(f.Link))}, f)
	case storm.Stand:
		var pids []int
		for _, r := range s.living() {
			if r.Cluster == f.Cluster {
				pids = append(pids, s.rank(r))
			}
		}
		s.moment(pids, f)
	case storm.HangRank:
		s.hangs(s.rank(is), s.plan.Clusters[f.Cluster].Hang == "report")
	case storm.KillRun:
		s.runDies(f)
	case storm.Detach:
		s.detaches(f.Cluster)
	case storm.HangIOP:
		s.hangs(s.chosen(f, s.iop(f.Link)), s.plan.Clusters[s.plan.Links[f.Link].From[0]].IOPHang == "report")
	}
}

func (s *tempest) iop(link int) func(int, string, []string) bool {
	return func(_ int, comm string, args []string) bool {
		return comm == "spx-iop" && slices.Contains(args, strconv.Itoa(storm.Queue(link)))
	}
}

// runDies kills the spxrun of a cluster, or the agent of its host; where it is awaited it is started again.
func (s *tempest) runDies(f storm.Fault) {
	s.t.Helper()
	away := fmt.Sprintf("cluster %s is away; it may be attached again", storm.Name(f.Cluster))
	n, was, ends := strings.Count(s.all(), away), s.lives(f.Cluster), s.model.EndsBy(f)
	if f.Index > 0 {
		s.signal(s.chosen(storm.Fault{What: f.What, Host: s.plan.Clusters[f.Cluster].Home}, isAgent), syscall.SIGKILL)
	} else {
		s.hosts.signal(s.t, s.plan.Clusters[f.Cluster].Home, "spxrun", syscall.SIGKILL)
	}
	if s.plan.Clusters[f.Cluster].Whole != "restart" || ends {
		return
	}
	s.until(func() string { return "it is said that " + away }, func() bool { return strings.Count(s.all(), away) > n })
	s.runs[f.Cluster] = s.attach(f.Cluster)
	s.comesAgain(f.Cluster, was)
}

// detaches has a cluster leave, and starts it again.
func (s *tempest) detaches(c int) {
	s.t.Helper()
	was := s.lives(c)
	out, err := exec.Command(s.hosts.script, "on", s.host(1), filepath.Join(harness.Build(s.t), "bin/spxctl"), "system", "detach", storm.Name(c), storm.SystemName, "--within", harness.Seconds(20*time.Second)+"s").CombinedOutput()
	if err != nil {
		s.t.Fatalf("cluster %d does not leave: %v\n%s", c, err, out)
	}
	s.until(func() string { return fmt.Sprintf("the spxrun of cluster %d ends", c) }, func() bool {
		select {
		case <-s.runs[c].ended:
			return true
		default:
			return false
		}
	})
	if status := s.runs[c].cmd.ProcessState.ExitCode(); status != 0 {
		s.t.Errorf("cluster %d has left with status %d", c, status)
	}
	s.runs[c] = s.attach(c)
	s.comesAgain(c, was)
}

// lives are those of a cluster's ranks now.
func (s *tempest) lives(c int) (out []int) {
	for rank := range s.plan.Clusters[c].Ranks {
		out = append(out, s.last(storm.Rank{Cluster: c, Rank: rank}).life)
	}
	return out
}

// comesAgain waits until all ranks of a cluster are others.
func (s *tempest) comesAgain(c int, was []int) {
	s.t.Helper()
	for rank := range was {
		r := storm.Rank{Cluster: c, Rank: rank}
		s.until(func() string { return fmt.Sprintf("rank %d of cluster %d comes again", rank, c) }, func() bool { return s.last(r).life > was[rank] && s.here(s.last(r)) > 0 })
	}
}

// hangs stops a process until that is said, or until it was ended for it.
func (s *tempest) hangs(pid int, reported bool) {
	s.t.Helper()
	said := func() int { return strings.Count(s.all(), "hangs: it is stopped") }
	goesOn := func() int { return strings.Count(s.all(), "goes on again") }
	// One that is stopped again before it was seen to go on hangs all the time: nothing is said anew.
	if was, ok := s.goesOn[pid]; ok {
		s.until(func() string { return "it is said that a process goes on again" }, func() bool { return goesOn() > was })
	}
	before := said()
	s.signal(pid, syscall.SIGSTOP)
	s.until(func() string { return fmt.Sprintf("process %d stands still, or has ended", pid) }, func() bool { return state(pid) == "" || state(pid) == "T" || said() > before })
	if state(pid) == "" && said() == before { // it has ended first, since what it receives is over
		s.taken[pid] = true
		return
	}
	s.until(func() string { return "it is said that a process hangs" }, func() bool { return said() > before })
	if reported {
		s.goesOn[pid] = goesOn()
		s.signal(pid, syscall.SIGCONT)
		return
	}
	s.taken[pid] = true
}

// end waits for the end of the system, and of all that there was; the status, or -1.
func (s *tempest) end() (status int) {
	s.t.Helper()
	lost := slices.Contains(s.model.Lost, 1)
	status = -1
	if !lost {
		select {
		case <-s.ended:
			status = s.cmd.ProcessState.ExitCode()
		case <-harness.After(15 * time.Second):
			s.t.Fatal("the system does not end")
		}
	} else {
		pattern := regexp.MustCompile(`spxrun: job [0-9a-f]{16} has ended, exit status (\d+)\n`)
		s.until(func() string { return "the system ends" }, func() bool {
			found := pattern.FindStringSubmatch(s.all())
			if found != nil {
				status, _ = strconv.Atoi(found[1])
			}
			return found != nil
		})
	}
	for c, r := range s.runs {
		select {
		case <-r.ended:
			if k := s.model.Clusters[c]; !s.model.Ended && !k.Gone && r.cmd.ProcessState.ExitCode() != 0 {
				s.t.Errorf("the spxrun of cluster %d has ended with status %d", c, r.cmd.ProcessState.ExitCode())
			}
		case <-harness.After(15 * time.Second):
			s.t.Errorf("the spxrun of cluster %d does not end", c)
		}
	}
	s.word = s.all()
	for _, pid := range s.stopped {
		s.signal(pid, syscall.SIGCONT)
	}
	s.hosts.empty(s.t)
	for _, name := range s.hosts.Left() {
		host, _, _ := strings.Cut(name, ":")
		if !slices.ContainsFunc(s.model.Lost, func(h int) bool { return s.host(h) == host }) {
			s.t.Errorf("%s is left", name)
		}
	}
	return status
}

func (s *tempest) files() map[string]string {
	out := map[string]string{}
	list, _ := os.ReadDir(s.folder)
	for _, e := range list {
		text, _ := os.ReadFile(filepath.Join(s.folder, e.Name()))
		out[e.Name()] = string(text)
	}
	return out
}

// keep keeps what there is to see of a system that failed: what was done when, what it has said, and where its processes are. It is to be called before any of the system is ended: again for each spxrun
// that is started later.
func (s *tempest) keep() {
	if !s.t.Failed() || s.kept {
		return
	}
	s.kept = true
	dir := filepath.Join(harness.Build(s.t), "storm", fmt.Sprintf("%d-%s", s.plan.Seed, time.Now().Format("150405")))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		s.t.Log(err)
		return
	}
	write := func(name, text string) { os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666) } //nolint:errcheck // to be seen, no more
	var where strings.Builder
	tool := filepath.Join(harness.Build(s.t), "bin/spxctl")
	for h := 1; h <= s.plan.Hosts; h++ {
		for _, words := range [][]string{{"system", "status"}, {"ps", "."}, {"hosts", "."}} {
			text, _ := exec.Command("timeout", append([]string{"5", s.hosts.script, "on", s.host(h), tool}, words...)...).CombinedOutput()
			fmt.Fprintf(&where, "== %s: spxctl %v\n%s\n", s.host(h), words, text)
		}
	}
	for _, agents := range []bool{false, true} { // who looks at them stops them, and without agents nothing else is left to be seen
		for h := 1; h <= s.plan.Hosts; h++ {
			for _, pid := range s.hosts.Pids(h) {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
				if agent := filepath.Base(program) == "spxrun"; agent == agents {
					fmt.Fprintf(&where, "== %s: %d %s\n%s\n", s.host(h), pid, strings.ReplaceAll(string(line), "\x00", " "), stacks(pid, program, agent))
				}
			}
		}
	}
	write("where", where.String())
	write("said", s.all())
	write("done", s.log.String())
	if text, err := os.ReadFile(s.file); err == nil {
		write("storm.toml", string(text))
	}
	files := s.files()
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&all, "%s: %s\n", name, files[name])
	}
	write("files", all.String())
	s.t.Logf("make storm SECONDS=1 SEED=%d; what there is to see: %s\n%s\n%s", s.plan.Seed, dir, s.log.String(), s.all())
}

// stacks are what a process does, as gdb shows it: all goroutines of an agent, or the main thread of a process of a cluster.
func stacks(pid int, program string, agent bool) string {
	attach := []string{"20", "gdb", "-batch", "-ex", fmt.Sprintf("set sysroot /proc/%d/root", pid), "-ex", "file " + program}
	switch base := filepath.Base(program); {
	case agent:
		attach = append(attach, "-ex", "source "+filepath.Join(runtime.GOROOT(), "src/runtime/runtime-gdb.py"), "-ex", fmt.Sprintf("attach %d", pid), "-ex", "goroutine all bt")
	case base == "storm" || base == "spx-iop":
		attach = append(attach, "-ex", fmt.Sprintf("attach %d", pid), "-ex", "bt", "-ex", "p 'replay.c'::x", "-ex", "p 'copies.c'::x", "-ex", "p *'copies.c'::x.kept.first", "-ex", "p spx_replay_core.first[0]@spx_replay_core.parties", "-ex", "p 'replay.c'::x.away[0]@spx_replay_core.parties", "-ex", "p 'replay.c'::x.wire->peer[0]@spx_replay_core.parties", "-ex", "p 'replay.c'::x.iop[0]@spx_replay_core.parties", "-ex", "p spx_places[0]@40", "-ex", "p *'replay.c'::x.held", "-ex", "p spx_replay_core", "-ex", "p spx_due")
	default:
		return ""
	}
	text, _ := exec.Command("timeout", attach...).CombinedOutput()
	return string(text)
}
