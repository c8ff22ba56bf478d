package probe

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"libspx/launch/agent"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/net/topo"
)

// Config gives the hosts to be measured, how they are reached, and the cost limits.
type Config struct {
	Hosts    []string // names; the one that is Self is this host
	Self     string
	Rsh      []string // as hosts.Find gives it
	Program  string   // spxrun on this host
	Prefix   string   // where libspx is installed on the other hosts; empty: as here
	Iface    string
	Parallel int           // round-trip times that are measured at once; 0: 64
	Bytes    int64         // that flows may send in all, nearly; 0: 1 GiB
	Limit    time.Duration // for all; 0: two minutes
	Known    *Network      // the part known already; nil: none
	Say      func(text string)
	Progress func(text string) // progress, called repeatedly; nil: not wanted
}

// Presets, and what a flow may send.
const (
	presetParallel = 64
	presetBytes    = 1 << 30
	presetLimit    = 2 * time.Minute
	startLimit     = 40 * time.Second // until a host is ready
	startAtOnce    = 32
	flowWindow     = 160 * time.Millisecond
	shortWindow    = 16 * time.Millisecond
	flowBytes      = 16 << 20 // a window is shorter where a flow would send more in it
)

// run is a measurement under way.
type run struct {
	Config
	machine *topo.Machine
	// those that are ready, in the order of their addresses: their numbers in the machine
	peers    []*peer
	events   chan event
	pings    map[int]int // number of a measurement, its host
	test     *test
	queue    []topo.Output
	tree     *topo.Tree
	doubt    topo.Doubt
	bytes    int64
	fastest  float64 // bytes a second, of a flow
	left     int     // measurements left out, because the bounds were reached
	deadline time.Time
}

// peer is a host.
type peer struct {
	number int // in Config.Hosts
	name   string
	cmd    *exec.Cmd
	conn   *conn
	ready  *ready
	gone   bool
}

type event struct {
	peer *peer
	m    *message // nil: it is gone
}

// test is a measurement of throughput.
type test struct {
	id, begun, watched, ended int
	flows                     map[int]*testFlow // by number
	paths                     int
	failed                    bool
}

type testFlow struct {
	path, from, to    int
	begun, rated, end bool
	rate              float64
}

// Run measures. The error is the reason for having no result; hosts that cannot be reached are
// reported by Say, and are in no switch of the result.
func Run(c Config) (*Network, error) {
	c.Parallel, c.Bytes, c.Limit = cmp.Or(c.Parallel, presetParallel), cmp.Or(c.Bytes, presetBytes),
		cmp.Or(c.Limit, presetLimit)
	if c.Say == nil {
		c.Say = func(string) {}
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	began := time.Now()
	r := &run{Config: c, events: make(chan event, 64), pings: map[int]int{},
		deadline: began.Add(c.Limit)}
	all := r.start()
	defer r.finish(all)
	if len(r.peers) == 0 {
		return nil, errors.New("no host can be reached")
	}
	out := &Network{Hosts: c.Hosts, Measured: began.UTC().Truncate(time.Second)}
	if r.tree = fromSlurm(r.peers); r.tree != nil {
		out.How = "Slurm"
	} else {
		if err := r.measure(); err != nil {
			return nil, err
		}
		out.How = "measured"
		out.Cost = Cost{r.machine.Cost.Pings, r.machine.Cost.Streams, r.bytes, r.left,
			time.Since(began).Seconds()}
	}
	out.Links, out.Switches = r.tree.Links, r.tree.N
	out.Of = slices.Repeat([]int{-1}, len(c.Hosts))
	for i, p := range r.peers {
		out.Of[p.number] = r.tree.Of[i]
	}
	out.GroupsAre, out.LinksAre = Sure, Sure
	if text := r.doubt.Groups; text != "" {
		if d := r.doubt.Hosts; d[0] != d[1] {
			text = fmt.Sprintf("%s (as %s and %s)", text, r.peers[d[0]].name, r.peers[d[1]].name)
		}
		out.GroupsAre, out.Switches, out.Links = text, 0, nil
		out.Of = slices.Repeat([]int{-1}, len(c.Hosts))
	}
	if r.doubt.Links != "" {
		out.LinksAre = r.doubt.Links
	}
	if r.machine != nil {
		out.Within, out.Across = r.machine.Times()
	}
	return out, nil
}

// ---- hosts

// start starts the program on all hosts, and waits until those that can be reached are ready.
func (r *run) start() (all []*peer) {
	spec := control.Job{Hosts: r.Hosts, Near: agent.Addresses(), Iface: r.Iface}
	rand.Read(spec.ID[:])
	rand.Read(spec.Key[:])
	places := make(chan struct{}, startAtOnce)
	var starting sync.WaitGroup
	for i, name := range r.Hosts {
		p := &peer{number: i, name: name}
		all = append(all, p)
		starting.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if err := r.begin(p, spec); err != nil {
				p.ready, p.gone = nil, true
				r.Say(fmt.Sprintf("host %s: %v", name, err))
			}
		})
	}
	starting.Wait()
	for _, p := range all {
		if p.ready != nil {
			r.peers = append(r.peers, p)
		}
	}
	slices.SortFunc(r.peers, func(a, b *peer) int { return a.ready.At.Compare(b.ready.At) })
	at := make([]netip.AddrPort, len(r.Hosts))
	for _, p := range r.peers {
		at[p.number] = p.ready.At
	}
	for _, p := range r.peers {
		p.conn.send(&message{Peers: at}) //nolint:errcheck // its end says so
		go r.hear(p)
	}
	return all
}

// begin starts the program on a host.
func (r *run) begin(p *peer, spec control.Job) error {
	program := r.Program
	words := []string{program, HostWord}
	if p.name != r.Self {
		if r.Prefix != "" {
			program = filepath.Join(r.Prefix, "bin/spxrun")
		}
		words = hosts.Shell(r.Rsh, p.name, "exec "+hosts.Quote(program)+" "+HostWord)
	}
	p.cmd = exec.Command(words[0], words[1:]...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: 0}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("cannot run %s: %w", words[0], err)
	}
	p.conn = newConn(struct {
		io.Reader
		io.WriteCloser
	}{out, in})
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	// it may have ended
	stop := context.AfterFunc(ctx, func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }) //nolint:errcheck
	spec.Self = p.number
	// the answer does not come then
	p.conn.send(&message{Begin: &begin{version, spec, os.Getenv("SPX_PORTS")}}) //nolint:errcheck
	m, err := p.conn.receive()
	stop()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("no answer for %v", startLimit)
	case err != nil:
		return fmt.Errorf(
			"it cannot be reached, or libspx is not installed there as here (--prefix): %w", err)
	case m.Ready == nil:
		return errors.New("its answer cannot be understood")
	case m.Ready.Text != "":
		return errors.New(m.Ready.Text)
	}
	p.ready = m.Ready
	return nil
}

func (r *run) hear(p *peer) {
	for {
		m, err := p.conn.receive()
		if err != nil {
			r.events <- event{p, nil}
			return
		}
		r.events <- event{p, m}
	}
}

// finish ends the programs: they end when their standard input does.
func (r *run) finish(all []*peer) {
	go func() {
		for range r.events { // no sender stays blocked
		}
	}()
	for _, p := range all {
		if p.conn != nil {
			p.conn.rw.Close()
		}
	}
	for _, p := range all {
		if p.cmd == nil || p.cmd.Process == nil {
			continue
		}
		// it may have ended
		late := time.AfterFunc(5*time.Second, func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }) //nolint:errcheck
		// how it ended does not matter any more
		p.cmd.Wait() //nolint:errcheck
		late.Stop()
	}
}

// ---- measuring

// known is the known network of the peers, nil if there is none.
func (r *run) known() *topo.Tree {
	if r.Known == nil {
		return nil
	}
	names := make([]string, len(r.peers))
	for i, p := range r.peers {
		names[i] = p.name
	}
	tree := r.Known.restrict(names)
	if !slices.ContainsFunc(tree.Of, func(s int) bool { return s >= 0 }) {
		return nil
	}
	return tree
}

func (r *run) measure() error {
	cfg := topo.Config{Hosts: len(r.peers), Known: r.known(), MaxPings: r.Parallel}
	if cfg.Known != nil && r.Known.LinksAre != Sure {
		for _, group := range cfg.Known.Hosts() {
			if len(group) > 0 {
				cfg.Groups = append(cfg.Groups, group)
			}
		}
		cfg.Known = nil
	}
	r.machine = topo.New(cfg)
	timer := time.NewTimer(time.Until(r.deadline))
	defer timer.Stop()
	r.act(r.machine.Start())
	for r.tree == nil {
		select {
		case e := <-r.events:
			r.heard(e)
			r.Progress(fmt.Sprintf("%d round-trip times, %d throughputs", r.machine.Cost.Pings,
				r.machine.Cost.Streams))
		case <-timer.C:
			r.giveUp()
		}
	}
	if r.left > 0 {
		r.Say(fmt.Sprintf(
			"%d measurements were left out, since the bounds (%v, %d bytes) were reached: what "+
				"depends on them is unsure", r.left, r.Limit, r.Bytes))
	}
	return nil
}

// act performs the machine's requests, and those that follow.
func (r *run) act(out topo.Output) {
	r.queue = append(r.queue, out)
	if len(r.queue) > 1 { // under way below
		return
	}
	for len(r.queue) > 0 {
		out := r.queue[0]
		for _, p := range out.Pings {
			r.ping(p)
		}
		if out.Stream != nil {
			r.stream(out.Stream)
		}
		if out.Done != nil {
			r.tree, r.doubt = out.Done, out.Doubt
		}
		r.queue = r.queue[1:]
	}
}

// over: the bounds are reached.
func (r *run) over() bool { return !time.Now().Before(r.deadline) }

func (r *run) ping(p topo.Ping) {
	if r.over() || r.peers[p.A].gone || r.peers[p.B].gone {
		r.left++
		r.act(r.machine.Failed(p.ID))
		return
	}
	r.pings[p.ID] = p.A
	// a failure shows by its end
	r.peers[p.A].conn.send(&message{Ping: &ping{p.ID, r.peers[p.B].number, p.Echoes, p.Spaced}}) //nolint:errcheck
}

// stream starts the flows of a measurement of throughput; their numbers are the measurement's, and
// what is below 2^16 of the flow.
func (r *run) stream(s *topo.Stream) {
	t := &test{id: s.ID, flows: map[int]*testFlow{}, paths: len(s.Flows)}
	for path, list := range s.Flows {
		for _, f := range list {
			if r.over() || r.bytes >= r.Bytes || r.peers[f[0]].gone || r.peers[f[1]].gone {
				r.left++
				r.act(r.machine.Failed(s.ID))
				return
			}
			t.flows[s.ID<<16+len(t.flows)] = &testFlow{path: path, from: f[0], to: f[1]}
		}
	}
	r.test = t
	for id, f := range t.flows {
		// a failure shows by its end
		r.peers[f.from].conn.send(&message{Flow: &flow{id, r.peers[f.to].number}}) //nolint:errcheck
	}
}

// window is as long as flows need, and bounded by what they send.
func (r *run) window() time.Duration {
	if r.fastest == 0 {
		return flowWindow
	}
	return min(flowWindow, max(shortWindow,
		time.Duration(flowBytes/r.fastest*float64(time.Second))))
}

func (r *run) heard(e event) {
	switch m := e.m; {
	case m == nil:
		r.lost(e.peer)
	case m.Times != nil:
		if _, ok := r.pings[m.Times.ID]; ok {
			delete(r.pings, m.Times.ID)
			r.act(r.machine.Pinged(m.Times.ID, m.Times.Took))
		}
	case m.Flows != 0:
		r.begun(e.peer, m.Flows)
	case m.Rate != nil:
		r.rated(m.Rate)
	case m.Ended != nil:
		r.bytes += m.Ended.Bytes
		r.ended(m.Ended.ID)
	case m.Fails != nil:
		r.fails(m.Fails)
	}
}

// begun: a flow is under way; when all are, their rates are taken.
func (r *run) begun(p *peer, id int) {
	t := r.test
	if t == nil || t.failed || t.flows[id] == nil {
		p.conn.send(&message{Stop: id}) //nolint:errcheck // its end says so
		return
	}
	t.flows[id].begun = true
	if t.begun++; t.begun < len(t.flows) {
		return
	}
	for id, f := range t.flows {
		// a failure shows by its end
		r.peers[f.to].conn.send(&message{Watch: &watch{id, r.window()}}) //nolint:errcheck
	}
}

// rated: when the rates of all flows are known, they are stopped.
func (r *run) rated(m *rate) {
	t := r.test
	if t == nil || t.flows[m.ID] == nil || t.flows[m.ID].rated {
		return
	}
	t.flows[m.ID].rated, t.flows[m.ID].rate = true, m.Bytes
	r.fastest = max(r.fastest, m.Bytes)
	if t.watched++; t.watched == len(t.flows) {
		r.stop(t)
	}
}

func (r *run) stop(t *test) {
	for id, f := range t.flows {
		if f.begun {
			r.peers[f.from].conn.send(&message{Stop: id}) //nolint:errcheck // its end says so
		}
	}
}

// ended: when all flows have left the network, the next measurement may begin.
func (r *run) ended(id int) {
	t := r.test
	if t == nil || t.flows[id] == nil || t.flows[id].end {
		return
	}
	t.flows[id].end = true
	if !t.flows[id].rated { // by itself
		t.failed = true
	}
	t.ended++
	r.conclude(t)
}

// conclude notifies the machine when a measurement is over.
func (r *run) conclude(t *test) {
	for _, f := range t.flows {
		if f.begun && !f.end && !r.peers[f.from].gone && !r.peers[f.to].gone || !f.begun &&
			!t.failed {
			return
		}
	}
	r.test = nil
	if t.failed {
		r.left++
		r.act(r.machine.Failed(t.id))
		return
	}
	rates := make([]float64, t.paths)
	for _, f := range t.flows {
		rates[f.path] += f.rate
	}
	r.act(r.machine.Streamed(t.id, rates))
}

func (r *run) fails(m *fails) {
	if a, ok := r.pings[m.ID]; ok {
		r.Say(fmt.Sprintf("host %s: %s", r.peers[a].name, m.Text))
		delete(r.pings, m.ID)
		r.act(r.machine.Failed(m.ID))
		return
	}
	if t := r.test; t != nil && t.flows[m.ID] != nil && !t.failed {
		f := t.flows[m.ID]
		r.Say(fmt.Sprintf("from host %s to %s: %s", r.peers[f.from].name, r.peers[f.to].name,
			m.Text))
		t.failed = true
		r.stop(t)
		r.conclude(t)
	}
}

// lost: the program of a host has ended.
func (r *run) lost(p *peer) {
	if p.gone {
		return
	}
	p.gone = true
	r.Say(fmt.Sprintf("host %s: its program has ended", p.name))
	number := slices.Index(r.peers, p)
	for id, a := range r.pings {
		if a == number {
			delete(r.pings, id)
			r.act(r.machine.Failed(id))
		}
	}
	if t := r.test; t != nil {
		for _, f := range t.flows {
			t.failed = t.failed || f.from == number || f.to == number
		}
		if t.failed {
			r.stop(t)
			r.conclude(t)
		}
	}
	if r.tree == nil {
		r.act(r.machine.Leave(number))
	}
}

// giveUp answers all open measurements at the time limit.
func (r *run) giveUp() {
	for id := range r.pings {
		delete(r.pings, id)
		r.left++
		r.act(r.machine.Failed(id))
	}
	if t := r.test; t != nil {
		r.stop(t)
		r.test = nil
		r.left++
		r.act(r.machine.Failed(t.id))
	}
}
