package agent

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/comm"
	"libspx/core/mpierr"
	"libspx/launch/abroad"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// Jobs whose processes are reached over the network are connected here, by their deciding agents:
// one calls the other by the addresses in the name of a port (ways.go), and the resulting link
// stays while both jobs last. It carries the questions of processes that connect at the other's
// ports, and the messages of the machine of launch/abroad about the processes of both. A process of
// the other job gets a number here, on all hosts, in the steps in which spawned ones get theirs.
// When the link ends, the processes of the other job count as dead.

// abroadState is what the agent that decides knows of other jobs.
type abroadState struct {
	machine  *abroad.Machine
	entrance entrance
	links    map[uint64]*jobLink  // by job
	asking   map[uint64]*question // of processes that ask about others, by number
	callers  map[client]*jobLink  // processes of this job that wait at a port of another one
	asked    uint64               // so far
	groups   uint32               // of external processes, so far
	jobs     uint32               // that were linked, so far
}

// ofExternals distinguishes the number of a group of external processes from that of a spawned
// world.
const ofExternals = 1 << 31

// hostsAbroad is where the numbers of hosts of other jobs begin. There is room for 4,096 jobs at a
// time, and hosts of each.
const hostsAbroad, hostsOfJob = 1 << 24, 1 << 12

// jobLink is the way to the agent of another job, or a call of it.
type jobLink struct {
	job   uint64
	id    [16]byte
	conn  *control.Conn
	raw   net.Conn
	box   outbox
	up    bool
	pact  control.Pact
	hosts uint32 // number of its host 0 here

	early   []*question          // to be asked as soon as it is up
	count   uint64               // of questions sent
	numbers map[client]uint64    // of those that are not answered
	clients map[uint64]*question // the same
	callers map[uint64]*stranger // processes of the other job that wait at ports of this one
}

// stranger is a process of another job that connects at a port of this one.
type stranger struct {
	from   *jobLink
	number uint64
	gone   bool
}

func (s *stranger) Send(m *service.Message) error {
	if s.gone {
		return errGone
	}
	s.from.box.put(&control.Message{Answer: &control.Answer{Number: s.number, Text: packed(m)}})
	return nil
}

func (s *stranger) Gone() bool { return s.gone }
func (s *stranger) Close()     { s.gone = true }

// arrivals are processes of another job that get numbers here.
type arrivals struct {
	job    uint64
	batch  uint64
	people []abroad.Person
}

// linkEvent is an event of a link's goroutine.
type linkEvent interface{ happen(a *agent) }

type (
	called struct { // the agent of another job has called
		conn *control.Conn
		raw  net.Conn
		link *control.Link
	}
	answered struct { // a call of another job's agent was answered, or was not
		job  uint64
		conn *control.Conn
		raw  net.Conn
		link *control.Link
		err  error
	}
	linkSaid struct { // nil: the link has ended
		from *jobLink
		m    *control.Message
	}
	crossedOver struct{ of *jobLink } // the other's call has not come
)

func (a *agent) linkTo(number uint64) *jobLink {
	if a.abroad.links == nil {
		a.abroad.links, a.abroad.asking, a.abroad.callers = map[uint64]*jobLink{},
			map[uint64]*question{}, map[client]*jobLink{}
		a.abroad.machine = abroad.New(a.person)
	}
	l := a.abroad.links[number]
	if l == nil {
		l = &jobLink{job: number, numbers: map[client]uint64{}, clients: map[uint64]*question{},
			callers: map[uint64]*stranger{}}
		a.abroad.links[number] = l
	}
	return l
}

// isLinked: it is a process of another job, over a link.
func (a *agent) isLinked(c client) bool {
	_, is := c.(*stranger)
	return is
}

// connectAbroad passes the question of a process that connects on to the job that has opened the
// port.
func (a *agent) connectAbroad(q *question, w way) {
	if !a.several() {
		q.reply(refuse(mpierr.UnsupportedOperation,
			"the processes of this job cannot be reached over the network, and job %016x cannot "+
				"otherwise; start this one with --more-hosts", w.job))
		return
	}
	if answer := a.ending(mpierr.Port); answer != nil {
		q.reply(answer)
		return
	}
	l := a.linkTo(w.job)
	a.abroad.callers[q.conn] = l
	if l.up {
		l.ask(q)
		return
	}
	if l.early = append(l.early, q); len(l.early) > 1 {
		return
	}
	hello := &control.Link{Version: control.Version, Job: a.segment.JobID()}
	rand.Read(hello.Pact.ID[:])
	rand.Read(hello.Pact.Key[:])
	l.pact = hello.Pact
	go func() { a.inbox.put(w.call(hello)) }()
}

// ask sends a question of a process.
func (l *jobLink) ask(q *question) {
	l.count++
	l.numbers[q.conn], l.clients[l.count] = l.count, q
	l.box.put(&control.Message{Question: &control.Question{Number: l.count,
		Text: packed(q.Message)}})
}

// withdrawAbroad is for a process that no longer waits at a port of another job. That job's agent
// decides which came first; true: it does not know of the process yet.
func (a *agent) withdrawAbroad(q *question) bool {
	l := a.abroad.callers[q.conn]
	if l == nil {
		return false
	}
	if n, ok := l.numbers[q.conn]; ok {
		l.box.put(&control.Message{Question: &control.Question{Number: n, Text: packed(q.Message)}})
		return false
	}
	a.leaveAbroad(q.conn)
	return true
}

// leaveAbroad: a process that waited at a port of another job has gone.
func (a *agent) leaveAbroad(conn client) {
	l := a.abroad.callers[conn]
	if l == nil {
		return
	}
	delete(a.abroad.callers, conn)
	for k, q := range l.early {
		if q.conn == conn {
			q.conn = nowhere{} // the call continues for other processes
			l.early[k] = q
		}
	}
	if n, ok := l.numbers[conn]; ok {
		delete(l.numbers, conn)
		delete(l.clients, n)
		l.box.put(&control.Message{Question: &control.Question{Number: n}})
	}
}

// nowhere stands for a process that has gone.
type nowhere struct{}

func (nowhere) Send(*service.Message) error { return errGone }
func (nowhere) Gone() bool                  { return true }
func (nowhere) Close()                      {}

// happen takes a call of another job's agent. If this one calls that at the same time, the call of
// the job with the lower number counts, on both sides.
func (e called) happen(a *agent) {
	number := binary.LittleEndian.Uint64(e.link.Job[:8])
	refused := &control.Link{Version: control.Version, Job: a.segment.JobID()}
	l := a.abroad.links[number]
	switch {
	case e.link.Version != control.Version:
		refused.Off = fmt.Sprintf(
			"libspx of job %016x and that of job %016x are of versions that do not fit each other",
			number, a.jobNumber())
	case number == a.jobNumber() || near(e.link.Job, a.segment.JobID()):
		refused.Off = fmt.Sprintf(
			"jobs %016x and %016x number their communicators alike; start one of the two again",
			number, a.jobNumber())
	case a.machine.Ending():
		refused.Off = "the job is being ended"
	case l != nil && !l.up && len(l.early) > 0 && a.jobNumber() < number:
		refused.Crossed = true
	}
	if refused.Off != "" || refused.Crossed {
		go func() {
			e.conn.Send(&control.Message{Link: refused}) //nolint:errcheck // it may be gone
			e.raw.Close()
		}()
		return
	}
	if l != nil && l.up { // the other end has lost it
		a.endLink(l)
	}
	l = a.linkTo(number)
	l.pact = e.link.Pact
	a.beginLink(l, e.conn, e.raw, e.link.Job, &control.Link{Version: control.Version,
		Job: a.segment.JobID()})
}

// near: two jobs could give two communicators the same number.
func near(x, y [16]byte) bool {
	return comm.Origin(binary.LittleEndian.Uint64(x[8:])).Near(
		comm.Origin(binary.LittleEndian.Uint64(y[8:])))
}

// happen takes the answer to a call of this agent.
func (e answered) happen(a *agent) {
	l := a.abroad.links[e.job]
	switch {
	case l == nil || l.up: // the other's call has come first, or there is no use for it any more
		if e.raw != nil {
			e.raw.Close()
		}
	case e.err != nil:
		a.noLink(l, e.err.Error())
	case e.link.Crossed:
		e.raw.Close()
		time.AfterFunc(linkLimit, func() { a.inbox.put(crossedOver{l}) })
	case e.link.Off != "" || e.link.Version != control.Version ||
		binary.LittleEndian.Uint64(e.link.Job[:8]) != e.job:
		e.raw.Close()
		why := e.link.Off
		if why == "" {
			why = fmt.Sprintf(
				"another job answers in place of job %016x, or libspx of another version", e.job)
		}
		a.noLink(l, why)
	default:
		a.beginLink(l, e.conn, e.raw, e.link.Job, nil)
	}
}

func (e crossedOver) happen(a *agent) {
	if a.abroad.links[e.of.job] == e.of && !e.of.up {
		a.noLink(e.of, fmt.Sprintf(
			"the agent of job %016x, which called at the same time, does not come", e.of.job))
	}
}

// noLink answers the processes that wait for a link: there is none.
func (a *agent) noLink(l *jobLink, why string) {
	delete(a.abroad.links, l.job)
	for _, q := range l.early {
		delete(a.abroad.callers, q.conn)
		q.reply(refuse(mpierr.Port, "%s", why))
	}
}

// beginLink: there is a way to the other job from now on.
func (a *agent) beginLink(l *jobLink, conn *control.Conn, raw net.Conn, id [16]byte,
	first *control.Link) {
	l.conn, l.raw, l.id, l.up = conn, raw, id, true
	l.hosts = hostsAbroad + a.abroad.jobs%(1<<12)*hostsOfJob
	a.abroad.jobs++
	keepAlive(raw)
	l.box.start(conn)
	if first != nil {
		l.box.put(&control.Message{Link: first})
	}
	a.carryAbroad(a.abroad.machine.Up(l.job))
	go func() {
		for {
			m, err := conn.Receive()
			if err != nil {
				a.inbox.put(linkSaid{l, nil})
				return
			}
			a.inbox.put(linkSaid{l, m})
		}
	}()
	early := l.early
	l.early = nil
	for _, q := range early {
		if !q.conn.Gone() {
			l.ask(q)
		}
	}
}

// keepAlive has the kernel end a link whose other host does not answer.
func keepAlive(raw net.Conn) { keepAliveFor(raw, linkLimit) }

// keepAliveFor has it do so after this time.
func keepAliveFor(raw net.Conn, limit time.Duration) {
	tcpConn, ok := raw.(sealed).NetConn().(*net.TCPConn)
	if !ok {
		return
	}
	// else the system's times count
	tcpConn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: int(limit/time.Second) - 2}) //nolint:errcheck
	if of, err := tcpConn.SyscallConn(); err == nil {
		of.Control(func(fd uintptr) { //nolint:errcheck // see above
			// see above
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit/time.Millisecond)) //nolint:errcheck
		})
	}
}

// isKeptAlive: the kernel ends this connection when its other host does not answer.
func isKeptAlive(raw net.Conn) (is bool) {
	tcpConn, ok := raw.(sealed).NetConn().(*net.TCPConn)
	if !ok {
		return false
	}
	if of, err := tcpConn.SyscallConn(); err == nil {
		of.Control(func(fd uintptr) { //nolint:errcheck // see above
			ms, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
			is = err == nil && ms > 0
		})
	}
	return is
}

// endLink draws the consequences of the end of a link.
func (a *agent) endLink(l *jobLink) {
	if a.abroad.links[l.job] != l {
		return
	}
	delete(a.abroad.links, l.job)
	l.up = false
	l.box.close()
	l.raw.Close()
	for _, s := range l.callers {
		a.hungUp(s)
	}
	for _, q := range l.clients {
		delete(a.abroad.callers, q.conn)
		q.reply(refuse(mpierr.Port,
			"job %016x, which has opened the port, has ended, or cannot be reached any more",
			l.job))
	}
	a.carryAbroad(a.abroad.machine.Lost(l.job))
}

// endLinks ends them with this job, when all pending messages have been sent.
func (a *agent) endLinks() {
	if l := a.abroad.entrance.listener; l != nil {
		l.Close()
	}
	for _, l := range a.abroad.links {
		if l.up {
			l.box.close()
			atMost(linkFarewell, func() { <-l.box.done })
			l.raw.Close()
		}
	}
}

func (e linkSaid) happen(a *agent) {
	l, m := e.from, e.m
	switch {
	case m == nil:
		a.endLink(l)
	case a.abroad.links[l.job] != l:
	case m.Question != nil:
		a.askedAbroad(l, m.Question)
	case m.Answer != nil:
		a.answeredAbroad(l, m.Answer)
	case m.Abroad != nil:
		a.carryAbroad(a.abroad.machine.Hear(l.job, *m.Abroad))
	}
}

// askedAbroad takes the question of a process of the other job: to connect at a port, and nothing
// else.
func (a *agent) askedAbroad(l *jobLink, q *control.Question) {
	s := l.callers[q.Number]
	if len(q.Text) == 0 {
		if s != nil {
			delete(l.callers, q.Number)
			a.hungUp(s)
		}
		return
	}
	m, err := service.Decode(q.Text)
	if err != nil || m.Kind != service.Connect && m.Kind != service.Withdraw ||
		m.Kind == service.Connect && m.Peer.ID.Job != l.job {
		return
	}
	if s != nil && m.Kind == service.Connect {
		return // it waits already
	}
	if s == nil {
		s = &stranger{from: l, number: q.Number}
		l.callers[q.Number] = s
	}
	a.serve(&question{m, s})
}

// answeredAbroad passes the answer back. There is no other one: at the other end the process has
// met another one, or does not wait.
func (a *agent) answeredAbroad(l *jobLink, answer *control.Answer) {
	q := l.clients[answer.Number]
	m, err := service.Decode(answer.Text)
	if q == nil || err != nil {
		return
	}
	q.conn.Send(m)        //nolint:errcheck // it may be gone
	a.leaveAbroad(q.conn) // the other end is notified: it forgets the process
}

// linkFarewell is how long the end of the job waits for a link that takes nothing.
const linkFarewell = time.Second

// procFailed is MPIX_ERR_PROC_FAILED.
const procFailed mpierr.Class = 16385

// tellAbroad: process i of this job has ended, as was published.
func (a *agent) tellAbroad(i int, dead bool) {
	if a.abroad.machine == nil {
		return
	}
	how := abroad.Left
	if dead {
		how = abroad.Died
	}
	a.carryAbroad(a.abroad.machine.Ended(a.idOf(i), how))
}

// noteAbort notifies other jobs of a process that ends those it is connected with.
func (a *agent) noteAbort(e job.Event) {
	if e, ok := e.(job.Ended); ok && e.Owner == job.OwnerAborted && a.abroad.machine != nil {
		a.carryAbroad(a.abroad.machine.Ended(a.idOf(e.Proc), abroad.Aborted))
	}
}

// carryAbroad does what the machine has decided.
func (a *agent) carryAbroad(list []abroad.Action) {
	for _, action := range list {
		switch act := action.(type) {
		case abroad.Send:
			if l := a.abroad.links[act.Job]; l != nil {
				l.box.put(&control.Message{Abroad: &act.Message})
			}
		case abroad.Enter:
			a.spawnings = append(a.spawnings,
				&spawning{question: &question{&service.Message{Kind: service.Externals, FD: -1},
					nowhere{}}, held: map[int]bool{},
					arrivals: &arrivals{job: act.Job, batch: act.Batch, people: act.People}})
			if len(a.spawnings) == 1 {
				a.beginSpawning()
			}
		case abroad.Answer:
			a.acquainted(act)
		case abroad.Gone:
			a.externalGone(&control.Parted{Who: act.Who, Proc: int(act.Place.Number),
				Life: act.Place.Life, How: act.How})
		}
	}
}
