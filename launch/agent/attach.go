package agent

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/muster"
	"libspx/launch/process"
	"libspx/launch/reach"
	"libspx/launch/service"
	"libspx/net/tcp"
)

// One cluster of a system, started by an spxrun of its own (docs/systems.md, "One cluster after
// another"). All have an address and a key. The agent that finds no listener there, and whose host
// has that address, listens there and leads: it decides for the job that is the system. The others
// attach to it: each is one more host of the job, as one that is added while it runs (growth.go),
// and its cluster is started as a dead one is restarted (restart.go): until it has come it counts
// as dead. This file is the side of such a cluster's agent; lead.go is the other side.

// attached is what the agent of an attached cluster knows besides, on the host of its spxrun.
type attached struct {
	raw   net.Conn // the connection with the leading agent, or with the agent in between
	asked int      // signals that were to end it
}

// found is the leading agent of the system: this one, which listens, or another one.
type found struct {
	listener net.Listener
	conn     *control.Conn
	raw      net.Conn         // of conn
	said     *control.Arrival // over it
	job      *control.Job
	at       netip.Addr // this host's address on the way there
	answers  bool       // it is there; nothing was said yet
	err      error

	unanswered bool // err: its connection has ended without a word
}

// leadLost: the agent that decides is gone, or the connection with it has ended so.
type leadLost struct{ err error }

// Times of the search.
const (
	seekPause   = 50 * time.Millisecond
	seekWord    = 3 * time.Second // then the user gets a line about what is waited for
	strangeTime = 3 * time.Second // for what answers at the address, and is not the system
)

// partnerOf are the numbers of the two ends in the handshake.
const (
	leadNumber = callee
	comeNumber = 1
)

// identityOf is an end of the first handshake: the system's name stands for the job, which the
// caller does not know yet.
func identityOf(j *control.Join, number uint32) tcp.Identity {
	sum := sha256.Sum256([]byte("libspx system " + j.System))
	return agentIdentity([16]byte(sum[:]), j.Key, number)
}

// jobKey is the key of the job that a system is: it is derived from the system's key, and is never
// sent.
func jobKey(key [32]byte, id [16]byte) [32]byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte("job"))
	mac.Write(id[:])
	return [32]byte(mac.Sum(nil))
}

// findSystem looks for the leading agent of the system of which a cluster is to be started. The
// status is that of an attached cluster, which has ended then; nil: this agent leads.
func (a *agent) findSystem() *int {
	fail := func(err error) *int {
		fmt.Fprintf(os.Stderr, "spxrun: %v%s\n", err, process.Advice(err))
		status := lookStatus(err)
		return &status
	}
	j := a.spec.Join
	for k := range a.spec.Programs { // before any agent is called
		p := &a.spec.Programs[k]
		if j.Declared[p.Part-1].Cluster != j.Cluster {
			continue
		}
		if _, _, err := process.Look(p.Argv[0], p.Dir, p.Path, p.Env); err != nil {
			return fail(err)
		}
	}
	if err := a.inbox.open(); err != nil {
		return fail(err)
	}
	a.listen()
	status := a.awaitSystem(fail)
	if status != nil && a.company != nil {
		a.company.finish(true)
		atMost(drainHurry, func() {
			a.printing.Wait()
			<-a.out.Drain()
			<-a.err.Drain()
		})
	}
	return status
}

// awaitSystem waits until the leading agent is known. A cluster of several hosts is assembled
// before it attaches.
func (a *agent) awaitSystem(fail func(error) *int) *int {
	j := a.spec.Join
	go func() {
		var hello *control.Arrival
		if len(a.spec.Hosts) < 2 {
			hello = a.arrival()
		}
		a.inbox.put(seek(j, hello))
	}()
	for {
		// the loop looks again
		unix.Poll([]unix.PollFd{{Fd: int32(a.inbox.fd), Events: unix.POLLIN}}, a.company.timeout(a.now())) //nolint:errcheck
		a.company.step(a, muster.Tick{})
		for _, e := range a.inbox.take() {
			switch e := e.(type) {
			case pinged:
				a.answerPing(e)
			case job.Signalled:
				if endsJob(e.Signal) {
					status := 128 + e.Signal
					return &status
				}
			case job.FrontLost:
				status := 128 + job.SIGKILL
				return &status
			case memberSaid:
				a.heardMember(e)
			case found:
				switch {
				case e.err != nil:
					return fail(e.err)
				case e.listener != nil:
					a.company.finish(true) // it starts them as one that leads does
					a.company = nil
					a.meeting, a.address, a.places.listen = &meeting{listener: e.listener}, e.at,
						a.everywhere(e.at)
					return nil
				case e.answers:
					if err := a.callTogether(); err != nil {
						return fail(err)
					}
					continue
				}
				status := a.followLead(e)
				return &status
			}
		}
		switch c := a.company; {
		case c == nil || !c.done:
		case c.failure != nil:
			return fail(c.failure)
		case !c.called:
			c.called = true
			go func() { a.inbox.put(seek(j, a.arrival())) }()
		}
	}
}

// endsJob: a signal that ends what gets it.
func endsJob(signal int) bool {
	return signal == job.SIGINT || signal == job.SIGTERM || signal == job.SIGHUP
}

// seek calls the system's address until an agent answers, or this host takes the place. Without a
// hello it hangs up then.
func seek(j *control.Join, hello *control.Arrival) found {
	id := identityOf(j, comeNumber)
	began, told := time.Now(), false
	// since when something answers that is not the system, or does not answer to the end
	var strange time.Time
	for {
		c, verdict, err := callOne(j, &id)
		unanswered := false
		switch {
		case err == nil && verdict == tcp.Taken && hello == nil:
			c.Close()
			return found{answers: true}
		case err == nil && verdict == tcp.Taken:
			f := introduce(j, c, hello)
			if !f.unanswered {
				return f
			}
			err, unanswered = f.err, true // of a system that ends: in a moment none is there
		}
		var op *net.OpError
		switch noConnection := errors.As(err, &op) && op.Op == "dial"; {
		case errors.Is(err, tcp.ErrKey):
			return found{err: fmt.Errorf(
				"cluster %s: what leads the system at %s has another key than this file's: the "+
					"file of the key must be the same for all clusters, and so must be the name "+
					"of the system, which is %s here ([system] name; without it that of the file)",
				j.Cluster, j.Address, j.System)}
		case !noConnection && strange.IsZero():
			strange = time.Now()
		case unanswered && time.Since(strange) > strangeTime:
			return found{err: err}
		case !noConnection && time.Since(strange) > strangeTime:
			return found{err: fmt.Errorf(
				"cluster %s: what answers at %s is not the system %s (%v); the system that runs "+
					"and the file need the same name ([system] name; without it that of the file)",
				j.Cluster, j.Address, j.System, err)}
		case noConnection:
			strange = time.Time{}
			if at, ok := addressHere(j.Address); ok && !j.Calls {
				if l, err := net.Listen("tcp", netip.AddrPortFrom(at.Addr(),
					at.Port()).String()); err == nil {
					return found{listener: l, at: at.Addr()}
				}
			}
		}
		if time.Since(began) > j.Limit && j.Calls {
			return found{err: fmt.Errorf(
				"cluster %s: no answer for the system %s at %s within %v ([start] limit): %v; "+
					"--join, or address in [system], is to name where the system that runs is "+
					"led (spxctl system status, on that host)",
				j.Cluster, j.System, j.Address, j.Limit, err)}
		}
		if time.Since(began) > j.Limit {
			return found{err: fmt.Errorf(
				"cluster %s: nobody leads the system %s at %s within %v ([start] limit): %v; "+
					"the host with that address is to start a cluster, too (spxrun --system "+
					"FILE --cluster NAME)",
				j.Cluster, j.System, j.Address, j.Limit, err)}
		}
		if !told && time.Since(began) > seekWord {
			told = true
			fmt.Fprintf(os.Stderr,
				"spxrun: cluster %s waits for the system %s: nobody leads it at %s yet\n",
				j.Cluster, j.System, j.Address)
		}
		time.Sleep(seekPause) // there is no event for the opening of another host's port
	}
}

// addressHere is where this host can listen for other agents, if the address is one of its own.
func addressHere(address string) (netip.AddrPort, bool) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || at.IP == nil {
		return netip.AddrPort{}, false
	}
	own := at.AddrPort().Addr().Unmap()
	here := own.IsLoopback() || slices.ContainsFunc(interfaceAddresses(),
		func(l reach.Address) bool { return l.Addr == own })
	return netip.AddrPortFrom(own, uint16(at.Port)), here
}

// introduce sends this cluster's hello, and receives the job.
func introduce(j *control.Join, c net.Conn, hello *control.Arrival) found {
	c = sealedConn(c)
	conn := control.NewConn(c)
	at := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	if !hello.At.IsValid() {
		hello.At = at
	}
	m, err := ask(conn, &control.Message{Attach: hello})
	switch {
	case err != nil:
		err = fmt.Errorf("cluster %s: the system at %s does not take it (%w)", j.Cluster, j.Address,
			err)
	case m.Off != "":
		err = fmt.Errorf("cluster %s: %s", j.Cluster, m.Off)
	case m.Job == nil || m.Job.Self < 1 || m.Job.Self >= len(m.Job.Hosts):
		err = fmt.Errorf("cluster %s: the system at %s has told no job", j.Cluster, j.Address)
	}
	if err != nil {
		c.Close()
		return found{err: err, unanswered: hasEnded(err)}
	}
	return found{conn: conn, raw: c, said: hello, job: m.Job, at: at}
}

// hasEnded: the other end of a connection has gone without a word.
func hasEnded(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, unix.ECONNRESET, unix.EPIPE},
		func(e error) bool { return errors.Is(err, e) })
}

// followLead is the life of the agent of an attached cluster.
func (a *agent) followLead(f found) int {
	a.attached, a.local, a.cameAs = &attached{raw: f.raw}, a.spec, f.said
	spec := f.job
	spec.Key = jobKey(a.local.Join.Key, spec.ID)
	a.succession.era, a.succession.decider, a.succession.through, a.succession.met = spec.Era,
		spec.Decider, spec.Above, []string{a.local.Join.Address}
	a.keepOwn(spec)
	a.spec = spec
	if spec.Iface == "" {
		a.address, a.places.listen = f.at, a.everywhere(f.at)
	}
	settle := func() error {
		_, err := a.settle()
		if err != nil {
			fmt.Fprintf(os.Stderr, "spxrun: %v%s\n", err, process.Advice(err))
		}
		return err
	}
	if a.company == nil && len(a.local.Join.Through) > 0 {
		a.company = new(company) // of those that come by it
	}
	return a.underOrders(f.conn, settle, func() {
		a.start(make([]string, len(a.spec.Programs)))
		a.openToMore()
	})
}

// keepOwn has this cluster's spxrun say what is its matter.
func (a *agent) keepOwn(spec *control.Job) {
	local := a.local
	spec.Tag, spec.OutputDir, spec.Bind, spec.Verbose, spec.Cores = local.Tag, local.OutputDir,
		local.Bind, local.Verbose, local.Cores
	spec.Dir, spec.Iface, spec.StdinRank, spec.StdinAll = local.Dir, local.Iface, -1, false
	spec.Rsh, spec.Prefix = local.Rsh, local.Prefix
}

// ownPrograms replaces the leading host's description of a part's programs by what this cluster's
// spxrun was given: their environment is not sent to other hosts.
func (a *agent) ownPrograms(q *service.Message) {
	part, name, _ := partOf(a.spec, q)
	if a.local == nil || part == 0 {
		return
	}
	local := a.local
	mine := slices.IndexFunc(local.Join.Declared,
		func(d control.Declared) bool { return d.Name == name && d.Cluster == local.Join.Cluster })
	k := slices.IndexFunc(local.Programs, func(p control.Program) bool { return p.Part == mine+1 })
	if mine < 0 || k < 0 || len(q.Programs) != 1 {
		return
	}
	p := &local.Programs[k]
	to := &q.Programs[0]
	to.Argv, to.Dir, to.Path = p.Argv, p.Dir, p.Path
	to.Env = replaced(p.Env, layout.Variable, variable(to.Env, layout.Variable))
}

// ownSignal takes a signal of an attached cluster's spxrun: one that does not end is for its
// processes, a second one that does ends them without asking.
func (a *agent) ownSignal(e job.Signalled) bool {
	if a.attached == nil {
		return false
	}
	if !endsJob(e.Signal) { // none of the other clusters' matters
		a.signal(e.Signal)
		a.company.tell(&control.Message{Action: job.Send{Signal: e.Signal}})
		if e.Signal == int(unix.SIGTSTP) {
			a.tell(&control.Message{Stopped: e.Signal})
		}
		return true
	}
	if a.attached.asked++; a.attached.asked > 1 {
		a.step(job.FrontLost{})
		return true
	}
	return false
}

// lostLead: without the deciding agent the state of the system is unknown.
func (a *agent) lostLead(err error) {
	if a.done {
		return
	}
	how := connectionEnd(err)
	a.say(fmt.Sprintf(
		"the spxrun that led the system, at %s, is lost: %s; the processes of cluster %s are ended",
		a.local.Join.Address, how, a.local.Join.Cluster))
	a.step(job.FrontLost{})
}

// conceal removes from a job what an agent does not need whose processes get their environment on
// their own host.
func conceal(spec *control.Job) {
	spec.Join = nil
	spec.Programs = slices.Clone(spec.Programs)
	for k := range spec.Programs {
		spec.Programs[k].Env = ownSettings(spec.Programs[k].Env)
	}
}

// ownSettings are the variables that mean something to libspx.
func ownSettings(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		return !strings.HasPrefix(kv, "SPX_") || strings.HasPrefix(kv, service.EnvSystemKey+"=")
	})
}
