package agent

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"libspx/ft/detect"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/reach"
)

// The other hosts of a job, on the side of the deciding agent. Each has an agent of its own
// (remote_agent.go), started by ssh or its like, whose standard input and output carry the messages
// of launch/control. Its reports become events of the machine; the machine's decisions are sent to
// all.

// elsewhere is the agent of another host.
type remoteHost struct {
	number int
	name   string
	// by which this one has had it started; nil: it has come by itself (join.go)
	link    *link
	starter int           // number of the host whose agent starts this one's
	wait    func() string // for its end: how it came
	conn    connection
	box     outbox
	ended   chan struct{} // closed when the command has ended
	how     string        // then: how
	failure error         // of the connection, before wait is called
	fate    string        // how it was lost
	beat    netip.AddrPort
	mesh    netip.AddrPort // where its agent hears those of other hosts; not valid: nowhere
	reach   *reach.Host    // what it has said of its interfaces; nil: nothing yet
	at      netip.Addr     // where its processes listen, as was chosen from that
	ready   bool
	begins  bool // it was ordered to make its processes
	made    bool // all its processes have been made
	gone    bool

	attached *externalCluster // it runs a cluster that was started by itself
	// it is one of the other hosts of such a cluster: the agent of this one reaches it
	of *remoteHost
	// it is one of the other hosts of a cluster whose spxrun was lost with the host that led: this
	// agent reaches it
	kin *externalCluster
	// the number of the first host of its cluster, in a system whose clusters are started one by
	// one
	home   int
	copies bool        // in such a system: its agent keeps a copy of what decides, or is to
	behind passages    // to those, and to other ones
	via    *remoteHost // it has come through the agent of this one

	// it was sent away, and is heard until it is no member of those any more that keep copies of
	// what decides
	votes bool

	led    bool        // it had another one that decides before
	unsaid []job.Say   // for its user, since this agent has come to decide
	stands atomic.Bool // and has said since how its processes are

	joining *addition // it is to be added to the running job, and is not yet
	removed bool      // it was sent away, and has gone or is going
	leaving *removal  // it is going

	window *window // of standard input
	room   room
	askers map[uint64]*remote

	asked atomic.Int32 // comparisons of its clock that are still to come

	belowMu   sync.Mutex
	below     map[int]*link // guarded by belowMu: to hosts whose agents its agent has started
	belowOver bool          // guarded by belowMu: it starts no more
}

// fromHost is a message, or the end, of another host's agent.
type fromHost struct {
	from *remoteHost
	m    *control.Message // nil: it has gone
}

// Limits on the end of other hosts, in time.
const (
	surveyLimit  = time.Second      // for an answer; hosts without one are left aside
	dismissLimit = 15 * time.Second // between Finish and their ends
)

func newRemoteHost(number int, name string) *remoteHost {
	return &remoteHost{number: number, name: name, ended: make(chan struct{}), window: newWindow(),
		askers: map[uint64]*remote{}}
}

// waitsFor: some other host that is there is so.
func (a *agent) waitsFor(is func(*remoteHost) bool) bool {
	return slices.ContainsFunc(a.others, func(h *remoteHost) bool { return !h.gone && is(h) })
}

// introduceTo sends a host the job, and begins to read its messages.
func (a *agent) introduceTo(h *remoteHost, key [32]byte) {
	spec := *a.spec
	spec.Self, spec.ID, spec.Key, spec.Near = h.number, a.segment.JobID(), key, ownAddresses()
	spec.Join, spec.System = nil, nil
	if a.meeting != nil {
		a.forExternal(&spec, h)
	}
	if h.isExternal() || spec.Joined { // its processes have their variables from elsewhere
		conceal(&spec)
	}
	if spec.Late = h.joining != nil; spec.Late {
		spec.Hosts, spec.Slots = append(slices.Clone(spec.Hosts), h.name),
			append(slices.Clone(spec.Slots), h.joining.slots)
		spec.Era, spec.Decider, spec.Lost = a.succession.era, a.self, nil
		for _, o := range a.others {
			if o.gone {
				spec.Lost = append(spec.Lost, o.number)
			}
		}
	}
	h.box.start(h.conn)
	h.box.put(&control.Message{Job: &spec})
	go a.hearFrom(h)
}

// hearFrom reads the messages of a host, prints its output, and passes the rest to the main thread.
func (a *agent) hearFrom(h *remoteHost) {
	var printers [3]*printer
	for {
		m, err := h.conn.Receive()
		if err != nil {
			h.failure = err
			break
		}
		switch {
		case m.Output != nil && (m.Output.Stream == 1 || m.Output.Stream == 2):
			p := &printers[m.Output.Stream]
			if *p == nil {
				*p = a.newPrinter(h, m.Output.Stream)
			}
			(*p).put(m.Output.Text)
		case m.Taken != nil:
			h.window.allow(m.Taken.Bytes)
		case m.Clock != nil:
			a.tracing.compare(h, m.Clock)
		case m.Trace != nil:
			a.tracing.take(h, m.Trace)
		case m.Branch != nil:
			h.fromBelow(m.Branch)
		case m.Relayed != nil:
			a.handedUp(h, m.Relayed)
		case m.Lead != nil:
			if s := a.copies.Load(); s != nil { // the main thread may wait for what does not come
				s.superseded(m.Lead)
			}
		case m.Stand == nil && h.led && !h.stands.Load(): // said before it knew of this one
		default:
			h.stands.Store(true)
			a.inbox.hear(&h.room, place{from: h}, m, fromHost{h, m})
		}
	}
	for _, p := range printers {
		if p != nil {
			p.close()
		}
	}
	h.window.close()
	if h.link != nil {
		h.link.up.Close() // the writer of this link does not wait for this reader
	}
	h.how = h.wait()
	close(h.ended)
	h.behind.lose(fmt.Sprintf("host %s is lost, through which its agent was reached", h.name))
	a.inbox.put(fromHost{h, nil})
	h.loseBelow()
}

// heard handles a message of another host.
func (a *agent) heard(h *remoteHost, m *control.Message) {
	switch {
	case m == nil:
		a.lost(h)
	case m.Reach != nil:
		a.describedBy(h, m.Reach)
	case m.Ready != nil:
		a.isReady(h, m.Ready)
	case m.Facts != nil:
		a.answered(h, m.Facts)
	case m.Event != nil:
		a.happened(h, m.Event)
	case m.Question != nil:
		a.asked(h, m.Question)
	case m.Made != nil:
		a.madeThere(h, m.Made)
	case m.Managed != nil:
		a.hearTree(h, m.Managed)
	case m.Master != nil:
		a.tree.mastered(h.number, m.Master.Pid)
	case m.Inspected != nil:
		a.inspectedThere(h, m.Inspected)
	case m.Copy != nil:
		a.answersRoll(h, m.Copy)
	case m.Stand != nil:
		a.standing(h, m.Stand)
	}
}

func (a *agent) isReady(h *remoteHost, r *control.Ready) {
	if r.Text != "" && h.joining != nil {
		a.cannotJoin(h, r.Text)
		return
	}
	if r.Text != "" {
		a.step(job.NotStarted{Text: fmt.Sprintf("host %s: %s", h.name, r.Text),
			Status: cmp.Or(r.Status, job.StatusFailed)})
		return
	}
	h.ready, h.beat, h.mesh = true, r.Beat, r.Mesh
	a.tracing.ask(h)
	if h.joining != nil {
		a.mayJoin(h)
		return
	}
	for _, addr := range r.Addresses {
		if a.isAt(addr.Proc, h) {
			if at := a.seen(a.self, h.number, addr.At); at.IsValid() {
				a.segment.SetAddress(addr.Proc, at)
			}
			a.addresses = append(a.addresses, addr)
		}
	}
}

// isAt: process i is one of host h.
func (a *agent) isAt(i int, h *remoteHost) bool {
	return i >= 0 && i < len(a.ranks) && a.ranks[i].host == h.number
}

// happened takes over what another host's agent has seen. That agent may be broken: what cannot
// have happened there is left aside.
func (a *agent) happened(h *remoteHost, e job.Event) {
	switch e := e.(type) {
	case job.Started:
		if a.isAt(e.Proc, h) && !a.ranks[e.Proc].begun {
			r := &a.ranks[e.Proc]
			r.pid, r.alive, r.begun = e.Pid, true, true
			a.step(e)
		}
	case job.Spawned:
		if a.isAt(e.Proc, h) && (a.ranks[e.Proc].spawned || a.ranks[e.Proc].part > 0) &&
			!a.ranks[e.Proc].begun {
			r := &a.ranks[e.Proc]
			r.pid, r.alive, r.begun = e.Pid, true, true
			a.step(e)
		}
	case job.AllStarted:
		if !h.made {
			h.made = true
			a.allMade()
		}
	case job.Ended:
		if a.isAt(e.Proc, h) && a.ranks[e.Proc].alive {
			a.ranks[e.Proc].alive = false
			e.Connected = nil // not known across hosts
			e.Spawning = e.Spawning && a.ranks[e.Proc].spawned
			a.judge(e)
		}
	case job.NotStarted:
		e.Status = cmp.Or(e.Status, job.StatusFailed)
		a.step(e)
	case job.Signalled:
		if h.attached != nil {
			a.step(job.PartSignalled{Part: h.attached.parts[0], Signal: e.Signal})
			return
		}
		a.step(e)
	case job.Joined:
		a.step(e)
	case job.ExternalAborted:
		a.externalAborted(e.Name)
	case job.Hung:
		a.seenAt(h, e.Proc, e)
	case job.Slowed:
		a.seenAt(h, e.Proc, e)
	case job.WentOn:
		a.seenAt(h, e.Proc, e)
	}
}

// seenAt takes what another host's agent has seen of one of its processes that lives.
func (a *agent) seenAt(h *remoteHost, proc int, e job.Event) {
	if a.isAt(proc, h) && a.ranks[proc].alive {
		a.step(e)
	}
}

// allMade notifies the machine when the processes of all hosts have been made.
func (a *agent) allMade() {
	if a.made && !a.waitsFor(func(h *remoteHost) bool { return !h.made }) {
		a.step(job.AllStarted{})
		a.tellTable()
		if !a.machine.Ending() {
			a.tell(&control.Message{Running: true})
		}
	}
}

// lost: the agent of a host has gone. Its processes have died with it.
func (a *agent) lost(h *remoteHost) {
	if h.lostWith() {
		return
	}
	if h.joining != nil {
		a.cannotJoin(h, h.how)
		return
	}
	if h.removed {
		a.hasLeft(h)
		return
	}
	if h.gone { // it had fallen silent before
		return
	}
	h.gone = true
	fault := job.FaultHost
	if a.beating != nil && a.beating.machine != nil {
		// it has ended its processes since it was cut off
		if a.beating.wasQuiet(h.number) || h.wasQuiet() {
			fault = job.FaultNetwork
		}
		a.beating.hasGone(h.number, h.goneFor())
	}
	a.hostFailed(h, h.how, fault)
}

// wasQuiet: the agent through which this one's is reached had not heard of it for some time.
func (h *remoteHost) wasQuiet() bool {
	way, through := h.conn.(*passage)
	return through && way.quiet()
}

// goneFor is the reason for which a host whose connection has ended is excluded.
func (h *remoteHost) goneFor() detect.Reason {
	if errors.Is(h.failure, errChanged) {
		return detect.OutChanged
	}
	return detect.OutClosed
}

// hostFailed draws the consequences of the loss of a host.
func (a *agent) hostFailed(h *remoteHost, how string, fault job.Fault) {
	a.loseHosts([]*remoteHost{h}, how, fault)
}

// hasMade counts the processes of a lost host as started: its agent was ordered to start them, and
// its report may have been lost with it. They may have been in MPI, so that their deaths are
// treated as those on a host that is lost later.
func (a *agent) hasMade(h *remoteHost) {
	for i := range a.ranks {
		if r := &a.ranks[i]; r.host == h.number && !r.away && !r.begun &&
			(r.called || !a.isSpare(i)) {
			a.happened(h, a.asStarted(i, 0, h.name))
		}
	}
	a.happened(h, job.AllStarted{})
}

// loseHosts does what follows when hosts are lost, perhaps all of a switch at once.
func (a *agent) loseHosts(list []*remoteHost, how string, fault job.Fault) {
	for _, h := range list {
		h.fate = how
		h.box.close()
	}
	a.treeLost(list...)
	a.tellMesh()
	for _, h := range list {
		defer a.losesMembers(h, fault)()
	}
	if a.dismissed {
		return
	}
	var ends []job.Ended
	for _, h := range list {
		switch {
		case h.made:
		case h.begins:
			a.hasMade(h)
		default:
			a.step(job.NotStarted{Text: fmt.Sprintf("host %s: %s", h.name, how),
				Status: job.StatusFailed})
		}
		told := false
		for i := range a.ranks {
			// it was about to be there
			if r := &a.ranks[i]; r.host == h.number && r.called && !r.begun {
				a.happened(h, a.asStarted(i, 0, h.name))
			}
			if r := &a.ranks[i]; r.host == h.number && r.alive {
				if !told && !a.machine.Ending() {
					told = true
					a.sayToAll(fmt.Sprintf("host %s is lost, with its processes: %s", h.name, how))
				}
				r.alive = false
				ends = append(ends, job.Ended{Proc: i, Wait: job.Wait{Signal: job.SIGKILL},
					Owner: job.OwnerInit, Fault: fault, OtherMPI: true})
			}
		}
	}
	a.judgeAll(ends)
	for _, h := range list {
		for _, j := range slices.Clone(a.judging) {
			a.answered(h, &control.Facts{Survey: j.number})
		}
	}
	a.allMade()
	for _, h := range list {
		a.forgetAskers(h)
		a.madeThere(h, nil)
	}
	a.stood()
}

// toAll hands a decision down.
func (a *agent) toAll(act job.Action) {
	if p, ok := act.(job.Publish); ok && a.succession.inherited {
		a.succession.ends = append(a.succession.ends, p)
	}
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Action: act})
		}
	}
}

// allToAll hands several decisions down together.
func (a *agent) allToAll(list []job.Action) {
	if len(list) == 0 {
		return
	}
	for _, act := range list {
		if p, ok := act.(job.Publish); ok && a.succession.inherited {
			a.succession.ends = append(a.succession.ends, p)
		}
	}
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Actions: list})
		}
	}
}

// begin sends all hosts the address of every process: they start theirs.
func (a *agent) begin() {
	for i := range a.ranks {
		if at, ok := a.segment.Address(i); ok && a.ranks[i].host == a.self {
			a.addresses = append(a.addresses, control.Address{Proc: i, At: at})
		}
	}
	a.noteListens(a.addresses)
	a.beginBeats()
	a.beginSequence()
	for _, h := range a.others {
		if !h.gone {
			h.begins = true
			h.box.put(&control.Message{Start: a.seenFrom(h.number, a.addresses, a.hostOf)})
		}
	}
	a.meet(a.seenFrom(a.self, a.addresses, a.hostOf))
}

func (a *agent) hostOf(proc int) int { return a.ranks[proc].host }

// meet enters the processes of other hosts: they may be called from now on, and wait in the queues
// of their sockets until they are there. One without an address is there, but not for this host.
func (a *agent) meet(list []control.Address) {
	for _, at := range list {
		if i := at.Proc; i >= 0 && i < len(a.ranks) && a.ranks[i].host != a.self {
			if at.At.IsValid() {
				a.segment.SetAddress(i, at.At)
			}
			if a.isSpare(i) && !a.ranks[i].spare && !a.ranks[i].called {
				continue
			}
			a.segment.MarkStarted(i, 0)
		}
	}
}

// dismiss ends the agents of the other hosts, and waits for what they still have to say.
func (a *agent) dismiss() {
	a.dismissed = true
	for _, h := range a.others {
		switch {
		case h.gone:
		case h.ready:
			a.tracing.ask(h)
		case h.link != nil && !h.link.hasAnswered(): // there is nothing to wait for
			h.hangUp()
		}
	}
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Action: job.Finish{Status: a.statusAt(h)}})
		}
	}
	limit, hurry := time.Now().Add(dismissLimit), a.machine.Hurried()
	for a.waitsFor(func(*remoteHost) bool { return true }) && time.Now().Before(limit) {
		if at := a.tracing.latest(); at.Add(dismissLimit).After(limit) && !hurry {
			limit = at.Add(dismissLimit) // what they have written down is still coming
		}
		if hurry {
			limit, hurry = time.Now().Add(drainHurry), false
		}
		// the loop looks again
		unix.Poll([]unix.PollFd{{Fd: int32(a.inbox.fd), Events: unix.POLLIN}}, int(time.Until(limit)/time.Millisecond)+1) //nolint:errcheck
		for _, e := range a.inbox.take() {
			switch e := e.(type) {
			case fromHost:
				a.heard(e.from, e.m)
			case silence:
				a.fellSilent(e)
			case hasCalled:
				a.begins(e)
			case job.Signalled, job.FrontLost:
				hurry = true
			case pinged:
				a.answerPing(e)
			}
		}
	}
	a.awaitDismissed(hurry)
	for _, h := range a.others {
		if !h.gone {
			a.say(fmt.Sprintf(
				"the agent of host %s does not end; it is left to itself, and ends its "+
					"processes when it learns that this one is gone", h.name))
		}
		h.box.close()
		if h.conn != nil {
			h.conn.Close()
		}
		if h.link != nil {
			h.link.finish(h.how)
		}
	}
}

// ownAddresses are those by which this host may be reached.
func ownAddresses() (out []netip.Addr) {
	for _, l := range interfaceAddresses() {
		if reach.Usable(l.Addr) && !l.Inner {
			out = append(out, l.Addr)
		}
	}
	return out
}
