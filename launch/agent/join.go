package agent

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/mpierr"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
	"libspx/net/tcp"
)

// Jobs that another launcher has started (PMI, PMIx). The first process of a host that comes to
// MPI_Init starts the agent there; all processes of the host join it, pass the launcher's barrier,
// and say so (Settle): then it knows that all have come. The agent of rank 0's host decides, as
// spxrun's does. It has made an Offer, which rank 0 has put into the launcher's key space, and the
// agents of the other hosts call it there. From then on the job is like any other (joined.go).

// Limits on the beginning of such a job.
const (
	// for all processes to call MPI_Init; service.EnvJoinTimeout
	joinLimit   = 5 * time.Minute
	joinWarning = 30 * time.Second // after which the missing ranks are reported
	// then, for the agents of all hosts to find each other
	gatherLimit = 30 * time.Second
	// for an agent to reach that of rank 0: that one knows more, and reports it before
	callLimit = gatherLimit + 3*time.Second
	// in which other processes may ask about a message that one printed before it ended
	spokenGrace = 200 * time.Millisecond
	giveUpLimit = 2 * time.Second // for the processes to end, when that fails
)

// callee is the number under which the other agents, whose numbers are ranks, call the deciding
// one.
const callee = 1 << 31

// gathering is a host's part of such a job before it begins.
type gathering struct {
	host    string
	name    string // the launcher's, for the job
	size    int
	members map[int]*member // of this host, by rank
	offer   *service.Offer
	mine    bool // this host has rank 0
	events  chan any
	over    chan struct{} // closed when no goroutine takes events any more
	early   []came
	arrived net.Listener // where the agents of other hosts arrive
	server  *tcp.Server

	sayings sayings // before the job begins: docs/errors.md, "Once in a job"
	spoken  bool    // one of the processes has said why it fails
	told    bool    // the launcher was requested to end the job
	// it cannot be requested, and has launcherNotice to end the job by itself
	noticing bool
	lost     bool           // it is gone
	leaving  sync.WaitGroup // processes whose launcher has not answered finalize
}

// member is a process that has joined.
type member struct {
	rank       int
	conn       *service.Conn
	pid, pidfd int
	launcher   int // socket; -1: none
	parent     int // without one: pidfd of the process that has started it; -1: unknown
	near       []int
	program    service.Program
}

// What happens before the job begins.
type (
	said struct { // by a process of this host
		conn *service.Conn
		m    *service.Message // nil: it is gone
	}
	came struct { // the agent of another host
		conn  *control.Conn
		hello *control.Hello
	}
	told struct { // by the agent of rank 0's host
		conn *control.Conn
		job  *control.Job
		err  error
		off  bool // that agent has said err
	}
)

// The process that reports why a job does not begin.
type teller int

const (
	oneRank     teller = iota // a process of this host
	thisAgent                 // the processes wait for the launcher, not for this agent, and cannot
	anotherHost               // it is said on another host
)

// join is Main for an agent that a process of such a job has started.
func join() int {
	g := &gathering{members: map[int]*member{}, events: make(chan any), over: make(chan struct{})}
	g.host, _ = os.Hostname()
	unbind()
	go g.takeLocal()
	if text := g.meet(); text != "" {
		return g.giveUp(text, thisAgent, g.early)
	}
	if g.mine {
		return g.lead()
	}
	return g.follow()
}

// takeLocal hears the processes of this host.
func (g *gathering) takeLocal() {
	for {
		conn, err := service.Take(ControlFD)
		if err != nil {
			return
		}
		if conn != nil {
			go g.hear(conn)
		}
	}
}

func (g *gathering) hear(conn *service.Conn) {
	var held service.Held
	defer func() { held.Close() }()
	for {
		m, err := conn.Receive()
		if err != nil {
			g.post(said{conn, nil})
			return
		}
		if held.Take(m) {
			continue
		}
		if !g.post(said{conn, m}) && m.Kind == service.Join { // the job has begun
			answer := refuse(mpierr.Other,
				"all ranks are there: a program that a process of the job starts is not in the "+
					"job; unset PMI_FD, or PMIX_RANK, in its environment to run it alone")
			answer.Kind = m.Kind
			conn.Send(answer) //nolint:errcheck // it may be gone
			conn.Close()
			return
		}
	}
}

// post reports an event; false: no goroutine takes it.
func (g *gathering) post(e any) bool {
	select {
	case g.events <- e:
		return true
	case <-g.over:
		return false
	}
}

func limitOf(p *service.Program) time.Duration {
	if s, err := strconv.ParseFloat(variableOf(p.Env, service.EnvJoinTimeout), 64); err == nil &&
		s > 0 {
		return time.Duration(s * float64(time.Second))
	}
	return joinLimit
}

// variableOf is the value of a variable, "" if it is not there.
func variableOf(environ []string, name string) string {
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// meet waits until all processes of the job have called MPI_Init. The text is the reason if they
// will not.
func (g *gathering) meet() (failure string) {
	began, limit, patient := time.Now(), joinLimit, false
	warning, end := time.NewTimer(joinWarning), time.NewTimer(joinLimit)
	for {
		select {
		case e := <-g.events:
			if c, ok := e.(came); ok { // it knows already that all are there
				g.early = append(g.early, c)
			}
			s, ok := e.(said)
			if !ok {
				continue
			}
			switch {
			case s.m == nil:
				tellSayers(g.sayings.forget(s.conn, false))
				// other processes may be about to ask
				if r := g.memberOn(s.conn); r != nil && g.spoken {
					delete(g.members, r.rank)
					end.Reset(spokenGrace)
				} else if r != nil {
					return fmt.Sprintf(
						"rank %d (pid %d on %s) has ended before all processes of the job had "+
							"called MPI_Init", r.rank, r.pid, g.host)
				}
				s.conn.Close()
			case s.m.Kind == service.Join:
				first := len(g.members) == 0
				answer := g.enter(s)
				answer.Kind = s.m.Kind
				s.conn.Send(answer) //nolint:errcheck // if it is gone, its end reports that
				if first && len(g.members) == 1 {
					limit = limitOf(&s.m.Programs[0])
					end.Reset(limit - time.Since(began))
					warning.Reset(min(joinWarning, limit/2))
				}
			case s.m.Kind == service.Say && g.memberOn(s.conn) != nil:
				tellSayers(g.sayings.ask(s.m.Name,
					speaking{sayer{rank: uint32(g.memberOn(s.conn).rank)}, s.conn, s.m.Text}))
			case s.m.Kind == service.Said:
				g.spoken = true
				tellSayers(g.sayings.said(s.conn))
			case s.m.Kind == service.Settle && g.memberOn(s.conn) != nil:
				offer, err := service.ParseOffer(s.m.Text)
				if err != nil {
					return err.Error()
				}
				if g.mine && offer.ID != g.offer.ID {
					return "the launcher's key space holds another job's offer"
				}
				if !g.mine {
					g.offer = offer
				}
				return ""
			}
		case <-warning.C:
			fmt.Fprintf(os.Stderr, "libspx: %s have not called MPI_Init yet; waiting\n",
				g.missing())
		case <-end.C:
			if g.spoken {
				return "another process of the job has failed before MPI_Init"
			}
			// the agent of the host where they should be can name them
			if len(g.away()) == 0 && !patient {
				patient = true
				end.Reset(time.Second)
				continue
			}
			return fmt.Sprintf("%s have not called MPI_Init within %v (%s, in s); the job is ended",
				g.missing(), limit, service.EnvJoinTimeout)
		}
	}
}

// missing lists the ranks that have not come, as far as this host knows.
func (g *gathering) missing() string {
	if len(g.members) == 0 {
		return "the processes of host " + g.host
	}
	if away := g.away(); len(away) > 0 {
		return fmt.Sprintf("of %d processes, ranks %s on host %s", g.size, ranges(away), g.host)
	}
	here := slices.Sorted(maps.Keys(g.members))
	return fmt.Sprintf("of %d processes, some on other hosts than %s (where ranks %s have)", g.size,
		g.host, ranges(here))
}

// away are the ranks that should be on this host, by the launcher's word, and have not come.
func (g *gathering) away() []int {
	for _, m := range g.members {
		return slices.DeleteFunc(slices.Clone(m.near),
			func(r int) bool { return g.members[r] != nil })
	}
	return nil
}

func (g *gathering) memberOn(conn *service.Conn) *member {
	for _, m := range g.members {
		if m.conn == conn {
			return m
		}
	}
	return nil
}

// enter takes a process in.
func (g *gathering) enter(s said) *service.Message {
	q := s.m
	rank := int(q.Number)
	pid, _, err := s.conn.Peer()
	if len(g.members) == 0 {
		g.size, g.name = int(q.World), q.Name
	}
	switch {
	case err != nil || pid <= 0:
		return refuse(mpierr.Other, "the agent of host %s does not see this process (%v)", g.host,
			err)
	case g.name != q.Name || int(q.World) != g.size || q.Number >= uint64(g.size) ||
		len(q.Programs) != 1:
		return refuse(mpierr.Other,
			"rank %d of %d of the job %q cannot join the job %q of %d processes", q.Number, q.World,
			q.Name, g.name, g.size)
	case g.members[rank] != nil:
		return refuse(mpierr.Other,
			"rank %d has joined already (pid %d); a program that a process of the job starts is "+
				"not in the job: unset PMI_FD, or PMIX_RANK, in its environment to run it alone",
			rank, g.members[rank].pid)
	}
	m := &member{rank: rank, conn: s.conn, pid: pid, launcher: q.FD, parent: -1,
		program: q.Programs[0]}
	for _, r := range q.Slots {
		m.near = append(m.near, int(r))
	}
	if m.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		return refuse(mpierr.Other, "process %d cannot be watched (pidfd_open): %v", pid, err)
	}
	if m.launcher < 0 {
		m.parent = parentOf(pid)
	}
	answer := &service.Message{FD: -1}
	if rank == 0 {
		if err := g.makeOffer(m); err != nil {
			return refuse(mpierr.Other, "host %s: %v", g.host, err)
		}
		answer.Text = g.offer.String()
	}
	g.members[rank] = m
	return answer
}

// parentOf is a pidfd of a process's parent, -1 if it has none that can be seen.
func parentOf(pid int) int {
	ppid := func() (id int) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, _ := strings.Cut(string(text), "\nPPid:")
		line, _, _ := strings.Cut(rest, "\n")
		id, _ = strconv.Atoi(strings.TrimSpace(line))
		return id
	}
	parent := ppid()
	if parent <= 1 {
		return -1
	}
	fd, err := unix.PidfdOpen(parent, 0)
	if err != nil {
		return -1
	}
	if ppid() != parent { // it has ended meanwhile, and the number may be another's
		unix.Close(fd)
		return -1
	}
	return fd
}

// makeOffer gives the job its identity, and opens a door for the agents of other hosts.
func (g *gathering) makeOffer(zero *member) (err error) {
	g.offer, g.mine = &service.Offer{}, true
	rand.Read(g.offer.ID[:])
	rand.Read(g.offer.Key[:])
	if g.size == 1 {
		return nil
	}
	at := append(ownAddresses(), netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	if iface := variableOf(zero.program.Env, service.EnvIface); iface != "" {
		one, err := named(iface, interfaceAddresses())
		if err != nil {
			return err
		}
		at = []netip.Addr{one}
	}
	ports, err := portsOf(zero.program.Env)
	if err != nil {
		return err
	}
	every := netip.IPv6Unspecified()
	fd, port, err := ports.listen(every, g.size)
	if err != nil { // no IPv6
		every = netip.IPv4Unspecified()
		fd, port, err = ports.listen(every, g.size)
	}
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "for other hosts")
	g.arrived, err = net.FileListener(file)
	file.Close()
	if err != nil {
		return err
	}
	for _, a := range at {
		g.offer.At = append(g.offer.At, netip.AddrPortFrom(a, port))
	}
	g.server = &tcp.Server{
		Identity: agentIdentity(g.offer.ID, g.offer.Key, callee),
		Decide:   func(tcp.Process) tcp.Verdict { return tcp.Taken },
		Adopt:    func(c net.Conn, _ tcp.Process) { g.arrive(c) },
		Failed:   func(tcp.Process, uint16) {},
	}
	go g.server.Serve(g.arrived) //nolint:errcheck // it ends when the listener is closed
	return nil
}

// arrive takes the agent of another host in, which has proved that it belongs to the job.
func (g *gathering) arrive(c net.Conn) {
	c = sealedConn(c)
	conn := control.NewConn(c)
	// without, it ends with its caller
	c.SetReadDeadline(time.Now().Add(gatherLimit)) //nolint:errcheck
	m, err := conn.Receive()
	if err != nil || m.Hello == nil || c.SetReadDeadline(time.Time{}) != nil ||
		!g.post(came{conn, m.Hello}) {
		c.Close()
	}
}

// gather waits for the agents of all other hosts.
func (g *gathering) gather() (list []came, failure string) {
	seen := map[int]string{}
	for rank := range g.members {
		seen[rank] = g.host
	}
	arrive := func(c came) string {
		list = append(list, c)
		for _, r := range c.hello.Ranks {
			if r < 0 || r >= g.size || seen[r] != "" {
				return fmt.Sprintf("host %s says that it has rank %d of %d, which host %s has",
					c.hello.Host, r, g.size, seen[r])
			}
			seen[r] = c.hello.Host
		}
		return ""
	}
	for _, c := range g.early {
		if failure := arrive(c); failure != "" {
			return list, failure
		}
	}
	limit := time.After(gatherLimit)
	for len(seen) < g.size {
		select {
		case e := <-g.events:
			if s, ok := e.(said); ok && s.m == nil {
				if r := g.memberOn(s.conn); r != nil {
					return list, fmt.Sprintf("rank %d (pid %d on %s) has ended in MPI_Init", r.rank,
						r.pid, g.host)
				}
			}
			if c, ok := e.(came); ok {
				if failure := arrive(c); failure != "" {
					return list, failure
				}
			}
		case <-limit:
			var away []int
			for r := range g.size {
				if seen[r] == "" {
					away = append(away, r)
				}
			}
			return list, fmt.Sprintf(
				"ranks %s have called MPI_Init, but the agents of their hosts have not reached "+
					"host %s at %v within %v: does a firewall stand between, or is it the wrong "+
					"interface (%s)?",
				ranges(away), g.host, g.offer.At, gatherLimit, service.EnvIface)
		}
	}
	slices.SortFunc(list, func(x, y came) int {
		return slices.Min(x.hello.Ranks) - slices.Min(
			y.hello.Ranks)
	})
	return list, ""
}

// giveUp ends a job that has not begun. callers: the agents that have called this one, and are
// notified that a process here reports why.
func (g *gathering) giveUp(text string, says teller, callers []came) int {
	for _, c := range callers {
		tellOff(c, text)
	}
	switch {
	case g.spoken:
		for _, line := range g.sayings.lines() {
			fmt.Fprintf(os.Stderr, "libspx: %s\n", line)
		}
		g.endByLauncher(job.StatusFailed)
	case says == thisAgent:
		fmt.Fprintf(os.Stderr, "libspx: %s\n", text)
		g.endByLauncher(job.StatusFailed)
	}
	limit := time.After(giveUpLimit)
	for n, rank := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[rank]
		answer := refuse(mpierr.Other, "%s", text)
		answer.Kind = service.Settle
		if n > 0 || says != oneRank {
			answer.Number = service.SaidAgain
		}
		if m.conn.Send(answer) != nil {
			delete(g.members, rank)
		}
	}
	for len(g.members) > 0 {
		select {
		case e := <-g.events:
			if c, ok := e.(came); ok {
				tellOff(c, text)
			}
			if s, ok := e.(said); ok && s.m == nil {
				if m := g.memberOn(s.conn); m != nil {
					delete(g.members, m.rank)
				}
			}
		case <-limit:
			for _, m := range g.members {
				// it has ended then
				unix.PidfdSendSignal(m.pidfd, unix.SIGKILL, nil, 0) //nolint:errcheck
			}
			return job.StatusFailed
		}
	}
	return job.StatusFailed
}

// tellOff notifies the agent of another host that the job does not begin. One that has gone needs
// no notice.
func tellOff(c came, text string) {
	c.conn.Send(&control.Message{Off: text}) //nolint:errcheck // see above
}
