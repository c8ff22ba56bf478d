package agent

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"libspx/ft/replica"
	"libspx/launch/control"
	"libspx/launch/follow"
	"libspx/launch/job"
	"libspx/launch/service"
)

// Copies of what decides about a job (docs/decisions/leaders.md). The deciding agent steps the
// job's machine, and writes each event into a sequence that the agents of several hosts keep
// (packages ft/replica and launch/follow): so their copies of the machine lag by a moment. In some
// jobs another agent continues from its copy when the deciding one is lost (succession.go); there
// the deciding agent waits before each action until a majority has its event.
//
// All of it runs beside the main thread: a clock, and goroutines that read the messages of other
// agents (mesh.go). The deciding agent publishes which hosts are there.

const (
	sequencePeriod = 100 * time.Millisecond // as hosts say that they are there

	// By half of it a new leader is there in time to decide by its copy, and it costs more.
	successionPeriod = 50 * time.Millisecond
	// of these, beside the time in which a host may be silent, an agent waits for another one to
	// decide, or for a majority: about twice the longest that an election takes
	leadTicks     = 80
	sequenceLeast = 3        // hosts; of fewer none can be lost without all being lost
	mostNotes     = 1 << 14  // events that no majority has taken over; then none will
	mostNoted     = 64 << 20 // the same in bytes
	copiesLimit   = time.Second
)

// decidingHost is the number of the host whose agent steps the job's machine.
const decidingHost = 0

// sequence is this agent's part. nil: the job has none.
type sequence struct {
	mesh  *mesh
	self  int
	began time.Time

	mu       sync.Mutex
	machine  *replica.Machine // guarded by mu, as all below; nil: it has not begun
	mirror   *follow.Mirror
	hopeless bool // of the agent that decides: no majority takes events over any more
	open     int  // likewise: bytes of events since a majority had taken over all
	office   *follow.Office
	applied  sync.Cond     // entries may have been, or the office has changed
	ahead    time.Duration // the job's time before that of this agent
	closed   bool
	left     string // why this host is out
	// host that decides now, as one has said that goes on with it; 0: not known, or the first
	next int

	// for which a host may be silent now; nil: as long as in a job that ends with a host
	allowed  func() time.Duration
	succeeds bool         // another agent decides when the one that does is lost
	era      uint64       // when this one began
	tell     func(any)    // then: notifies the main thread
	told     control.Mesh // by the main thread alone: what was last sent to all
}

// keepsCopies: the agents of this job keep copies of what decides. It was started by spxrun, on at
// least three hosts, and something of it is to survive a failure. Of a system whose clusters are
// started one by one the first agent begins alone.
func keepsCopies(spec *control.Job) bool {
	if spec.Join != nil {
		return true
	}
	return len(spec.Hosts) >= sequenceLeast && !spec.Joined &&
		(spec.WithFT || spec.Detached || len(spec.Parts) > 0)
}

// openSequence makes the port at which the agents of other hosts are heard. Without one this host
// keeps no copy.
func (a *agent) openSequence() error {
	at, err := a.beatAddress()
	if err != nil {
		return err
	}
	ports, err := portsOf(a.spec.Programs[0].Env)
	if err != nil {
		return err
	}
	fd, port, err := ports.listen(a.listenAt(at), linkQueue)
	if err != nil {
		return err
	}
	s := &sequence{self: a.self, began: a.began, succeeds: a.spec.Succeeds, era: a.spec.Era,
		tell: func(e any) { a.inbox.put(e) }}
	if s.mesh, err = openMesh(fd, netip.AddrPortFrom(at, port), a.segment.JobID(), a.segment.Key(),
		a.self, s.hear); err != nil {
		return err
	}
	if a.beating != nil {
		s.allowed = a.beating.silence
	}
	if s.succeeds {
		s.mesh.expect(func(from int, said control.Lead, conn *control.Conn) {
			a.inbox.put(calledBy{from, said.Era, said.Meets, conn})
		}, s.expelled)
	}
	a.sequence = s
	a.copies.Store(s)
	return nil
}

// beginSequence sends all hosts the list of those that keep copies, and begins this one's part.
func (a *agent) beginSequence() {
	notes := a.notes
	a.notes = nil
	// hosts that are in no network all together do not all reach each other
	if a.spec.Sequence = a.spec.Sequence && !a.machine.Ending() &&
		(a.places.pairs == nil || a.meeting != nil); !a.spec.Sequence {
		a.spec.Succeeds = false
		return
	}
	err := a.openSequence()
	first := a.membersOf()
	if err == nil && len(first) < sequenceLeast && a.meeting == nil {
		a.endSequence()
		a.sequence = nil
		err = fmt.Errorf("only %d of %d agents can be reached by the others", len(first),
			len(a.spec.Hosts))
	}
	if err != nil {
		if a.spec.Verbose {
			a.say(fmt.Sprintf("no host but this one knows what decides about the job: %v", err))
		}
		a.spec.Sequence, a.spec.Succeeds = false, false
		return
	}
	s := a.sequence
	a.tellMesh()
	s.begin(replica.Config{Self: a.self, First: s.told.First, Seed: rand.Uint64()},
		a.jobConfig(a.host), a.meshFor(a.self, &s.told))
	for _, text := range notes {
		s.note(text)
	}
}

// membersOf are the hosts that can keep copies now, the one that decides first.
func (a *agent) membersOf() (out []int) {
	if a.sequence == nil {
		return nil
	}
	for _, h := range a.others {
		if !h.gone && h.mesh.IsValid() && (a.meeting == nil || h.copies) {
			out = append(out, h.number)
		}
	}
	slices.Sort(out)
	return append([]int{a.self}, out...)
}

// tellMesh sends all hosts the list of hosts, when that has changed.
func (a *agent) tellMesh() {
	s := a.sequence
	if s == nil || a.up != nil || a.dismissed {
		return
	}
	members := a.membersOf()
	m := control.Mesh{At: make([]netip.AddrPort, len(a.spec.Hosts)), First: s.told.First,
		Members: members, Name: cmp.Or(s.told.Name, a.host)}
	if m.First == nil {
		m.First = members
	}
	m.At[a.self] = s.mesh.at
	for _, h := range a.others {
		if !h.gone || h.votes {
			m.At[h.number] = h.mesh
		}
	}
	if a.meeting != nil {
		a.tellSeats(&m)
	}
	if slices.Equal(members, s.told.Members) && slices.Equal(m.At, s.told.At) &&
		slices.Equal(m.By, s.told.By) && slices.Equal(m.Home, s.told.Home) {
		return
	}
	s.told = m
	for _, h := range a.others {
		if !h.gone || h.votes {
			h.box.put(&control.Message{Mesh: a.meshFor(h.number, &m)})
		}
	}
	s.meet(a.meshFor(a.self, &m))
}

// heedMesh stores the deciding agent's list of those that keep copies.
func (a *agent) heedMesh(m *control.Mesh) {
	a.succession.keepers = len(m.Members)
	s := a.sequence
	if s == nil || len(m.At) > mostHosts || !numbersOf(m.First, len(m.At)) ||
		!numbersOf(m.Members, len(m.At)) {
		return
	}
	s.told = *m
	if a.spec.Beside {
		s.mesh.meet(m.At) // it may be called from there
		return
	}
	if s.begun() {
		s.meet(m)
		return
	}
	cfg := replica.Config{Self: a.self, First: m.First, Seed: rand.Uint64()}
	if a.spec.Late {
		cfg.First = nil
	} else if !slices.Contains(m.First, a.self) {
		return
	}
	s.begin(cfg, a.jobConfig(m.Name), m)
}

// numbersOf: a list is one of different numbers below n.
func numbersOf(list []int, n int) bool {
	seen := map[int]bool{}
	for _, x := range list {
		if x < 0 || x >= n || seen[x] {
			return false
		}
		seen[x] = true
	}
	return len(list) > 0
}

// note writes an event into the sequence with which this agent steps the job's machine now. A Tick
// counts when the machine has waited for it.
func (a *agent) note(e job.Event, now time.Duration) {
	if !a.spec.Sequence || a.up != nil {
		return
	}
	if _, tick := e.(job.Tick); tick {
		if at, ok := a.machine.Deadline(); !ok || now < at {
			return
		}
	}
	if a.sequence == nil {
		a.notes = append(a.notes, follow.Note(e, now))
		return
	}
	a.sequence.note(follow.Note(e, now))
}

func (s *sequence) now() int64 { return int64(time.Since(s.began)) }

// begin begins the machine, and its clock.
func (s *sequence) begin(cfg replica.Config, of job.Config, m *control.Mesh) {
	s.mu.Lock()
	s.mirror = follow.NewMirror(of, decidingHost)
	cfg.State = s.mirror
	s.machine = replica.New(cfg)
	s.office, s.applied.L = follow.NewOffice(s.mirror, s.self, leadTicks), &s.mu
	s.office.Begin(s.era)
	s.mu.Unlock()
	s.meet(m)
	period := sequencePeriod
	if s.succeeds {
		period = successionPeriod
	}
	go func() {
		// of periods that have passed while this process was stopped, it reports one
		clock := time.NewTicker(period)
		defer clock.Stop()
		for {
			select {
			case <-s.mesh.ctx.Done():
				return
			case <-clock.C:
				s.step(replica.Tick{})
				s.tick()
			}
		}
	}()
}

func (s *sequence) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine != nil
}

// meet stores which hosts are there.
func (s *sequence) meet(m *control.Mesh) {
	s.mesh.meet(m.At)
	s.step(replica.Members{Agents: m.Members})
}

// hear takes a message of another agent. Before this one has begun it is lost: it is sent again.
func (s *sequence) hear(msg replica.Message) { s.step(replica.Received{Message: msg}) }

// note proposes an event.
func (s *sequence) note(text []byte) {
	if s.takes(len(text)) {
		s.mu.Lock()
		s.office.Noted()
		s.mu.Unlock()
		s.step(replica.Propose{Data: text})
	}
}

// takes reports whether an event of so many bytes is still to be written down.
func (s *sequence) takes(size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine == nil || s.hopeless {
		return false
	}
	open := s.machine.Open()
	if open == 0 {
		s.open = 0
	}
	s.open += size
	s.hopeless = open >= mostNotes || s.open > mostNoted
	return !s.hopeless
}

// step steps the machine, and sends its messages.
func (s *sequence) step(e replica.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine == nil {
		return
	}
	events := s.mirror.Events
	out, _ := s.machine.Step(e, s.now()) // what cannot be has changed nothing
	for _, act := range out {
		if send, ok := act.(replica.Send); ok {
			s.mesh.send(&send.Message)
		}
	}
	if s.mirror.Events > events {
		s.ahead = max(s.ahead, s.mirror.Machine.Now()-time.Since(s.began))
	}
	if s.succeeds {
		s.obey(s.office.Look())
	}
}

// tick lets a period of the election pass.
func (s *sequence) tick() {
	if !s.succeeds {
		return
	}
	silence := calmLimit
	if s.allowed != nil && s.allowed() > 0 {
		silence = s.allowed()
	}
	s.mu.Lock()
	s.office.Allow(leadTicks + int(silence/successionPeriod))
	v := s.office.Tick(s.machine.Leads())
	s.obey(v)
	claim := s.office.Claim()
	s.mu.Unlock()
	if v == follow.Claims {
		s.step(replica.Propose{Data: claim})
	}
}

// obey does what the office asks for. Called with mu held.
func (s *sequence) obey(v follow.Verdict) {
	switch v {
	case follow.Decides:
		s.tell(mayDecide{})
	case follow.Leaves:
		s.left = fmt.Sprintf(
			"it has not heard of a majority of those that keep copies of what decides for %v, "+
				"and others may go on", time.Duration(s.office.Limit())*successionPeriod)
		if s.mirror.Era > s.office.Era() {
			s.left = "another host decides about the job"
		}
		s.tell(mustLeave{why: s.left})
	}
	s.applied.Broadcast()
}

// outlives reports whether other hosts may continue when a host is lost: of those that keep copies
// it is not the only one that votes.
func (s *sequence) outlives(host int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine != nil && !slices.ContainsFunc(s.machine.Councils(), func(voters []int) bool {
		return !slices.ContainsFunc(voters, func(v int) bool { return v != host })
	})
}

// without waits until a host is none of those any more that keep copies. One that ended before
// would count as one that may come back: two of three that end at once would take the majority
// along.
func (s *sequence) without(host int, limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine == nil {
		return
	}
	over := false
	defer time.AfterFunc(limit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		over = true
		s.applied.Broadcast()
	}).Stop()
	for !over && !s.closed && !s.office.Left() && (slices.Contains(s.machine.Voters(), host) ||
		slices.Contains(s.machine.Followers(), host)) {
		s.applied.Wait()
	}
}

// memberLimit is how long that takes at most; an election may come in between.
const memberLimit = 2 * time.Second

// whyLeft is why this host is out, and the host that decides, if one has said so; 0: none has.
func (s *sequence) whyLeft() (why string, next int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left, s.next
}

// settled waits until a majority has all that this agent has noted; false: that does not come any
// more.
func (s *sequence) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine == nil || s.hopeless {
		// without that no other agent takes over
		return s.machine == nil || !s.mirror.Machine.Started()
	}
	for !s.office.Settled() && !s.office.Left() && !s.closed {
		s.applied.Wait()
	}
	return s.office.Settled()
}

// lose, called and expelled report events to the office.
func (s *sequence) lose(era uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.office.Lose(era)
}

func (s *sequence) called(era uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.office != nil && s.office.Called(era)
}

func (s *sequence) expelled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.office != nil && s.office.Expel() == follow.Leaves {
		s.left = "the other hosts of the job have given it up, and go on without it"
		s.tell(mustLeave{why: s.left})
		s.applied.Broadcast()
	}
}

// superseded handles the notice of another host, by the connection on which it got its orders from
// here, that another agent decides now. An agent that gets this is, as a rule, cut off from the
// others, and has no other way to learn it.
func (s *sequence) superseded(said *control.Lead) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.office != nil && s.office.Superseded(said.Era) == follow.Leaves {
		s.left, s.next = "another host decides about the job", said.Host
		s.tell(mustLeave{})
		s.applied.Broadcast()
	}
}

// legacy is what an agent takes over that comes to decide.
type legacy struct {
	machine *job.Machine
	ends    []job.Publish
	era     uint64
	now     time.Duration // the job's time
	told    control.Mesh
}

func (s *sequence) inherit() (*legacy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.mirror.Inherit()
	if err != nil {
		return nil, err
	}
	return &legacy{machine: m, ends: s.mirror.Ends(), era: s.office.Era(),
		now: max(time.Since(s.began)+s.ahead, m.Now()), told: s.told}, nil
}

// state is how far this host's copy has come.
func (s *sequence) state() *control.Copy {
	c := &control.Copy{Leader: -1, Refused: s.mesh.refusals()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine == nil {
		return c
	}
	c.Leader, c.Votes = s.machine.Leader(), slices.Contains(s.machine.Voters(), s.self)
	if c.Has = (c.Votes || slices.Contains(s.machine.Followers(), s.self)) &&
		s.mirror.Err == nil; c.Has {
		c.Events, c.Digest = s.mirror.Events, shortDigest(s.mirror.Digest())
	}
	return c
}

// shortDigest is a digest as it is shown.
func shortDigest(d [32]byte) string { return hex.EncodeToString(d[:8]) }

// endSequence ends this agent's part.
func (a *agent) endSequence() {
	if s := a.sequence; s != nil {
		s.mesh.close()
		s.mu.Lock()
		s.closed = true
		s.applied.Broadcast()
		s.mu.Unlock()
	}
}

// A roll asks all hosts how far their copies have come.
type roll struct {
	open map[*remoteHost]bool // hosts that have not answered
	all  map[int]*control.Copy
	done func(map[int]*control.Copy) // on the main thread
}

// rolled: a host's answer has had its time.
type rolled int

// callRoll asks the hosts, and calls done with what they have said.
func (a *agent) callRoll(done func(map[int]*control.Copy)) {
	a.surveys++
	n := a.surveys
	r := &roll{open: map[*remoteHost]bool{}, all: map[int]*control.Copy{a.self: a.sequence.state()},
		done: done}
	for _, h := range a.others {
		if !h.gone && h.mesh.IsValid() {
			r.open[h] = true
			h.box.put(&control.Message{Copies: n})
		}
	}
	if len(r.open) == 0 {
		done(r.all)
		return
	}
	if a.rolls == nil {
		a.rolls = map[int]*roll{}
	}
	a.rolls[n] = r
	time.AfterFunc(copiesLimit, func() { a.inbox.put(rolled(n)) })
}

// answersRoll takes the answer of a host.
func (a *agent) answersRoll(h *remoteHost, c *control.Copy) {
	if r := a.rolls[c.Number]; r != nil && r.open[h] {
		delete(r.open, h)
		if r.all[h.number] = c; len(r.open) == 0 {
			a.endRoll(rolled(c.Number))
		}
	}
}

func (a *agent) endRoll(n rolled) {
	if r := a.rolls[int(n)]; r != nil {
		delete(a.rolls, int(n))
		r.done(r.all)
	}
}

// describeCopies adds what the hosts have said of their copies to a list of hosts.
func (a *agent) describeCopies(list []service.Host, all map[int]*control.Copy) {
	for n := range list {
		c := all[n]
		if c == nil || !c.Has || list[n].State != "" || n >= len(a.sequence.told.At) {
			continue
		}
		list[n].Copy = &service.Copy{Leads: c.Leader == n, Votes: c.Votes, Events: c.Events,
			Digest: c.Digest, At: a.sequence.told.At[n].String(), Refused: c.Refused}
		if m, decides := a.machine.(*job.Machine); decides && n == a.self {
			list[n].Copy.Original = shortDigest(m.Digest())
		}
	}
}
