package systems

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// fixedStorms are seeds of which make test runs each: they have the kinds of clusters and faults between them.
var fixedStorms = []uint64{38, 60, 84, 112}

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
			t.Run(fmt.Sprint(seed), func(t *testing.T) { weather(t, storm.Draw(seed)) })
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
	stopped []int           // agents that stand still
	undone  sync.WaitGroup  // what goes on again
	word    string          // what the system had said when it ended: who goes on again then, and finds the others gone, says so, too
}

// weather carries out a plan, and holds what comes of it against what its policies promise.
func weather(t *testing.T, plan *storm.Plan) {
	t.Helper()
	s := &tempest{t: t, plan: plan, began: time.Now(), taken: map[int]bool{}}
	s.model = storm.NewModel(s.plan)
	s.begin()
	t.Cleanup(s.keep)
	s.note("%v", s.plan)
	for _, g := range s.plan.Groups {
		if s.flows(g.Messages); s.spent() {
			break
		}
		s.group(g)
		if s.model.Ended {
			break
		}
	}
	if !s.model.Ended {
		s.flows(10)
		s.note("stop")
		if err := os.WriteFile(filepath.Join(s.folder, "stop"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	status := s.end()
	s.note("ended, status %d", status)
	for _, w := range storm.Judge(s.model, &storm.Report{Files: s.files(), Said: s.word, Status: status, HostOf: s.host}) {
		t.Error(w)
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
	cmd := exec.Command(hosts.script, "on", hosts.name(0), filepath.Join(harness.Build(s.t), "bin/spxrun"), "--timeout", harness.Seconds(120*time.Second), "--rsh", hosts.script+" rsh", "-l", "--system", a.file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SPX_SPIN=0", "SPX_AGENT_LIMIT=0", fmt.Sprint("SPX_HEARTBEAT_LIMIT=", s.plan.SilenceMS))
	s.onHosts = &onHosts{a, a.launch("storm", cmd), hosts, strings.NewReplacer()}
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
	if len(s.model.Arriving()) == 0 { // those that receive may have ended
		return
	}
	var missing storm.Rank
	for _, r := range s.living() {
		missing = r
		s.until(func() string {
			return fmt.Sprintf("rank %d of cluster %d is there: %+v", missing.Rank, missing.Cluster, s.last(missing))
		}, func() bool { return s.here(s.last(r)) > 0 })
	}
	watched := s.model.Arriving()
	for _, o := range s.model.Origins() {
		if slices.ContainsFunc(watched, func(r storm.Rank) bool { return r.Cluster != o.Cluster }) && s.model.Free(o.Cluster) {
			watched = append(watched, o)
		}
	}
	before := map[storm.Rank]life{}
	for _, r := range watched {
		before[r] = s.last(r)
	}
	for _, r := range watched {
		missing = r
		s.until(func() string {
			return fmt.Sprintf("rank %d of cluster %d goes on by %d messages: %+v, before %+v", missing.Rank, missing.Cluster, messages, s.last(missing), before[missing])
		}, func() bool {
			now, was := s.last(r), before[r]
			if now.life > was.life && s.plan.Clusters[r.Cluster].Kind != storm.Transparent {
				was.number = 0
			}
			return now.number >= was.number+messages || s.spent()
		})
	}
}

// group does what happens at once.
func (s *tempest) group(g storm.Group) {
	s.t.Helper()
	again := map[storm.Rank]int{}
	was := map[int]int{}
	for c := range s.plan.Clusters {
		was[c] = s.model.Again(c)
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
		if f.IsHost() && s.model.Said[len(s.model.Said)-1] {
			s.until(func() string { return fmt.Sprintf("it is said that host %d is lost", f.Host) }, func() bool { return storm.SaysLost(s.all(), s.host(f.Host)) })
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
func (s *tempest) processes(h int, is func(comm string, args []string) bool) (out []int) {
	if slices.Contains(s.model.Lost, h) {
		return nil
	}
	for _, pid := range s.hosts.Pids(h) {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if !s.taken[pid] && is(strings.TrimSpace(string(comm)), strings.Split(string(line), "\x00")) {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// chosen waits for processes of all hosts, or of one, and chooses one of them.
func (s *tempest) chosen(f storm.Fault, is func(comm string, args []string) bool) (pid int) {
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

func isAgent(comm string, _ []string) bool { return comm == service.AgentName }

// standby is what a standby of a cluster is known by: that it has no rank.
func (s *tempest) standby(c int) func(string, []string) bool {
	return func(comm string, args []string) bool {
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
		for _, pid := range s.processes(f.Host, func(comm string, _ []string) bool { return comm == service.MasterName }) {
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
	case storm.HangIOP:
		s.hangs(s.chosen(f, s.iop(f.Link)), s.plan.Clusters[s.plan.Links[f.Link].From[0]].IOPHang == "report")
	}
}

func (s *tempest) iop(link int) func(string, []string) bool {
	return func(comm string, args []string) bool {
		return comm == "spx-iop" && slices.Contains(args, strconv.Itoa(storm.Queue(link)))
	}
}

// hangs stops a process until that is said, or until it was ended for it.
func (s *tempest) hangs(pid int, reported bool) {
	s.t.Helper()
	said := func() int { return len(regexp.MustCompile(`hangs: it is stopped`).FindAllString(s.all(), -1)) }
	before := said()
	s.signal(pid, syscall.SIGSTOP)
	s.until(func() string { return "it is said that a process hangs" }, func() bool { return said() > before })
	if reported {
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

// keep keeps what there is to see of a system that failed: what was done when, what it has said, and where its processes are.
func (s *tempest) keep() {
	if !s.t.Failed() {
		return
	}
	dir := filepath.Join(harness.Build(s.t), "storm", fmt.Sprintf("%d-%s", s.plan.Seed, time.Now().Format("150405")))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		s.t.Log(err)
		return
	}
	write := func(name, text string) { os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666) } //nolint:errcheck // to be seen, no more
	var where strings.Builder
	for h := 1; h <= s.plan.Hosts; h++ {
		for _, words := range [][]string{{"system", "status"}, {"ps", "."}, {"hosts", "."}} {
			text, _ := exec.Command("timeout", append([]string{"5", s.hosts.script, "on", s.host(h), filepath.Join(harness.Build(s.t), "bin/spxctl")}, words...)...).CombinedOutput()
			fmt.Fprintf(&where, "== %s: spxctl %v\n%s\n", s.host(h), words, text)
		}
		for _, pid := range s.hosts.Pids(h) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			fmt.Fprintf(&where, "== %s: %d %s\n", s.host(h), pid, strings.ReplaceAll(string(line), "\x00", " "))
			if base := filepath.Base(program); base == "storm" || base == "spx-iop" {
				text, _ := exec.Command("timeout", "20", "gdb", "-batch", "-ex", fmt.Sprintf("set sysroot /proc/%d/root", pid), "-ex", "file "+program, "-ex", fmt.Sprintf("attach %d", pid), "-ex", "bt").CombinedOutput()
				fmt.Fprintf(&where, "%s\n", text)
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
