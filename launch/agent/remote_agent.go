package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/output"
	"libspx/launch/process"
	"libspx/launch/trace"
)

// The agent of a host that is not spxrun's. It holds what every agent holds, the memory file, the
// processes, their output; but it decides nothing: what happens goes up to the agent of spxrun's
// host (remote_hosts.go), and what that one decides comes down. When that one is gone, so are the
// processes here.

// remoteAgent is Main for such an agent.
func remoteAgent() int {
	if os.Getenv("SLURM_STEP_ID") != "" {
		unbind()
	}
	conn, err := standardConn()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Name, err)
		return job.StatusFailed
	}
	m, err := conn.Receive()
	if err == nil && m.Own != nil && m.Own.Job != nil {
		return follower(conn, m.Own.Job)
	}
	if err != nil || m.Job == nil || m.Job.Self < 1 || m.Job.Self >= len(m.Job.Hosts) {
		fmt.Fprintf(os.Stderr, "%s: this program is started by spxrun (%v)\n", Name, err)
		return job.StatusFailed
	}
	a := newAgent(m.Job, nil)
	var files []string
	settle := func() (err error) {
		if files, err = a.settle(); err == nil {
			a.heedTerm()
		}
		return err
	}
	return a.underOrders(conn, settle, func() { a.start(files) })
}

// underOrders is the life of an agent that decides nothing: settle makes everything but the
// processes, begin those, or takes note of them.
func (a *agent) underOrders(conn *control.Conn, settle func() error, begin func()) int {
	a.host = a.spec.Hosts[a.spec.Self]
	up := &uplink{conn: conn, over: conn, window: newWindow()}
	up.box.start(conn)
	a.up, a.above, a.machine, a.self, a.kept = up, up, up, a.spec.Self, &up.kept
	a.company.join(&up.box, a.spec.Key)
	a.branches.lost = make(chan struct{})
	a.input.more.L = &a.input.mu
	status := a.part(settle, begin)
	defer atMost(fencedLimit, up.lastWords.Wait)
	if a.up == nil { // this agent decides now
		// no terminal is left to say it on
		up.kept.write([]byte(a.endLine(status))) //nolint:errcheck
		return status
	}
	a.tracing.ship(a)
	up.box.put(&control.Message{Done: &control.Done{Status: status}})
	up.box.close()
	if a.fenced {
		atMost(fencedLimit, func() { <-up.box.done })
	} else {
		<-up.box.done
	}
	return status
}

// heedTerm has SIGTERM end the processes here as the loss of the agent above does, in good order.
// The remote shell sends it when that agent has been killed.
func (a *agent) heedTerm() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM)
	go func() {
		for range signals {
			a.inbox.put(termed{})
		}
	}()
	if a.spec.Succeeds { // standard error leads to that shell
		signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	}
}

// unbind gives this process all processors that its control group allows. Slurm binds a step of one
// task, as this agent is, to one of them; srun's --cpu-bind=none complains on clusters that bind
// nothing.
func unbind() {
	var all unix.CPUSet
	for i := range all {
		all[i] = ^all[i]
	}
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			unix.SchedSetaffinity(tid, &all) //nolint:errcheck // then it stays as it is
		}
	}
}

// standardConn takes standard input and output for the messages, and leaves harmless ones in their
// places.
func standardConn() (*control.Conn, error) {
	var fds [2]int
	for i := range fds {
		fd, err := unix.FcntlInt(uintptr(i), unix.F_DUPFD_CLOEXEC, 10)
		if err != nil {
			return nil, fmt.Errorf("standard input and output: %w", err)
		}
		fds[i] = fd
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/null: %w", err)
	}
	defer unix.Close(null)
	unix.Dup2(null, 0) //nolint:errcheck // cannot fail with these arguments
	unix.Dup2(2, 1)    //nolint:errcheck // nor this
	return control.NewConn(struct {
		io.Reader
		io.WriteCloser
	}{os.NewFile(uintptr(fds[0]), "from spxrun's host"),
		os.NewFile(uintptr(fds[1]), "to spxrun's host")}), nil
}

// uplink stands where the machine stands in the agent that decides.
type uplink struct {
	conn *control.Conn // by which this agent was started, or has come
	// by which the one is reached that decides, or the one in between
	over            *control.Conn
	lastWords       sync.WaitGroup // to those that have decided before
	box             outbox
	window          *window // of output
	room            room    // of what is decided
	ending, hurried bool
	pumps           sync.WaitGroup
	// of processes of this host, by number: reported again to the next deciding agent
	ends map[int]job.Ended
	kept keptOutput
}

// Step hands an event up.
func (u *uplink) Step(e job.Event, _ time.Duration) []job.Action {
	switch e := e.(type) {
	case job.Tick:
	case job.FrontLost:
		u.ending, u.hurried = true, true
		return []job.Action{job.Send{Signal: job.SIGKILL}, job.Finish{Status: job.StatusFailed}}
	default:
		if end, ok := e.(job.Ended); ok {
			if u.ends == nil {
				u.ends = map[int]job.Ended{}
			}
			u.ends[end.Proc] = end
		}
		u.box.put(&control.Message{Event: e})
	}
	return nil
}

// Deadline: there is none here.
func (u *uplink) Deadline() (time.Duration, bool) { return 0, false }

// Ending reports whether the processes have been ordered to end.
func (u *uplink) Ending() bool { return u.ending }

// Hurried reports whether there is no reader of the output.
func (u *uplink) Hurried() bool { return u.hurried }

// decided is a message of the deciding agent of an era.
type decided struct {
	m   *control.Message
	era uint64
}

// part is run for the processes of this host.
func (a *agent) part(settle func() error, begin func()) int {
	a.askPlace()
	err := settle()
	ready := &control.Ready{}
	if err != nil {
		ready.Text, ready.Status = err.Error(), lookStatus(err)
	} else if a.openHeartbeat() == nil {
		// the deciding host reports its own failure first, and then this one's
		ready.Beat = a.beating.at
	}
	if err == nil && a.spec.Sequence && a.openSequence() == nil {
		ready.Mesh = a.sequence.mesh.at
	}
	for i := range a.ranks {
		if at, ok := a.segmentAddress(i); ok {
			ready.Addresses = append(ready.Addresses, control.Address{Proc: i, At: at})
		}
	}
	a.up.box.put(&control.Message{Ready: ready})
	a.hearEarly()
	go a.hearUp(a.up.conn, a.spec.Era)
	if err != nil {
		a.endBranches()
		return job.StatusFailed
	}
	for !a.met && !a.done {
		a.poll(a.timeout())
	}
	if !a.done {
		if err := a.openService(); err != nil && a.spec.Verbose {
			a.say(fmt.Sprintf("host %s: no ports can be opened: %v", a.host, err))
		}
		begin()
		a.loop()
	}
	status := a.finish()
	if !a.fenced {
		a.above.pumps.Wait()
	}
	return status
}

// settle prepares everything but the processes.
func (a *agent) settle() (files []string, err error) {
	if err := process.Subreaper(); err != nil {
		return nil, err
	}
	if err := os.Chdir(a.spec.Dir); err != nil &&
		slices.ContainsFunc(a.spec.Programs, func(p control.Program) bool { return p.Dir == "" }) {
		return nil, fmt.Errorf("spxrun's working directory is not there (%v); -wdir names another",
			err)
	}
	for i := range a.spec.Programs {
		p := &a.spec.Programs[i]
		p.Env = adapt(p.Env, os.Environ())
	}
	var near []string
	if files, near, err = a.lookUp(); err != nil {
		return nil, err
	}
	if err := a.makeSegment(); err != nil {
		return nil, err
	}
	if err := a.openListeners(); err != nil {
		return nil, err
	}
	if err := a.shut(); err != nil {
		return nil, err
	}
	if err := a.tracing.beginOnRemoteHosts(a); err != nil {
		return nil, err
	}
	if err := a.prepare(); err != nil {
		return nil, err
	}
	for _, text := range near {
		a.say(text)
	}
	return files, a.cores.begin(a)
}

// ownVariables are those that describe a host or a login.
var ownVariables = []string{"HOSTNAME", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK",
	"XDG_RUNTIME_DIR", "XDG_SESSION_ID", "DBUS_SESSION_BUS_ADDRESS"}

// adapt replaces what is true on spxrun's host alone by what is true here.
func adapt(environ, here []string) []string {
	own := func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ownVariables, name)
	}
	out := slices.DeleteFunc(slices.Clone(environ), own)
	for _, v := range here {
		if own(v) {
			out = append(out, v)
		}
	}
	return out
}

// hearUp reads what is decided.
func (a *agent) hearUp(conn *control.Conn, era uint64) {
	up, first := a.above, era == a.spec.Era // by which this agent was started
	for {
		m, err := conn.Receive()
		if err != nil {
			if first {
				close(a.branches.lost)
			}
			if a.spec.Succeeds {
				a.inbox.put(upLost{era, err})
				return
			}
			up.window.close()
			if a.attached != nil {
				a.inbox.put(leadLost{err})
				return
			}
			if errors.Is(err, errChanged) {
				a.say(fmt.Sprintf("host %s has lost the one that decides: %v", a.host, err))
			}
			a.inbox.put(job.FrontLost{})
			return
		}
		switch {
		case m.Taken != nil:
			up.window.allow(m.Taken.Bytes)
		case m.Input != nil:
			a.input.put(m.Input.Text)
		case m.Branch != nil:
			a.hearBranch(m.Branch)
		case m.Relayed != nil:
			a.company.handDown(a, m.Relayed)
		case m.Lead != nil:
			if a.spec.Beside && m.Lead.Era > era {
				era = m.Lead.Era
				a.hearLead(m.Lead)
			}
		case m.Clock != nil:
			up.box.put(&control.Message{Clock: &control.Clock{Before: m.Clock.Before,
				There: trace.Now()}})
		default:
			a.inbox.hear(&up.room, place{from: up, era: era}, m, decided{m, era})
		}
	}
}

// obey carries out what was decided.
func (a *agent) obey(m *control.Message) {
	if a.obeyTree(m) {
		return
	}
	switch {
	case m.Beats != nil:
		a.heed(m.Beats)
	case m.Start != nil:
		a.meet(m.Start)
		a.met = true
	case m.Hosts != nil:
		a.takeHosts(m.Hosts)
	case m.Present != nil:
		a.enterPresent(m.Present)
		a.met = true
	case m.Grown != nil:
		a.hasGrown(m.Grown)
	case m.Mesh != nil:
		a.heedMesh(m.Mesh)
	case m.Copies != 0 && a.sequence != nil:
		c := a.sequence.state()
		c.Number = m.Copies
		a.up.box.put(&control.Message{Copy: c})
	case m.Survey != 0:
		a.up.box.put(&control.Message{Facts: &control.Facts{Survey: m.Survey,
			Returns: a.anyReturns(), MPI: a.partsWithMPI()}})
	case m.Answer != nil:
		a.answeredFromAbove(m.Answer)
	case m.World != nil:
		if made := a.newcomers(m.World); made != nil {
			a.up.box.put(&control.Message{Made: made})
		}
	case m.Layout != "":
		a.announceLayout(m.Layout)
	case m.Release != nil:
		a.release(m.Release)
	case m.Abandon != 0:
		a.abandon(m.Abandon)
	case m.Parted != nil:
		a.externalParted(m.Parted)
	case m.Inspect != nil:
		a.inspectForAbove(m.Inspect)
	case m.Actions != nil:
		a.segment.Together(func() {
			for _, act := range m.Actions {
				if p, ok := act.(job.Publish); ok {
					a.carryOut(p)
				}
			}
		})
	case m.Action != nil:
		if s, ok := m.Action.(job.Send); ok && (s.Signal == job.SIGTERM ||
			s.Signal == job.SIGKILL || s.Signal == job.SIGINT || s.Signal == job.SIGHUP) {
			a.up.ending = true
		}
		switch m.Action.(type) {
		// all that is handed down
		case job.Publish, job.Where, job.Send, job.SendTo, job.WatchJoin, job.StartCold, job.Shun,
			job.Finish:
			a.carryOut(m.Action)
		case job.Say:
			if a.attached != nil {
				a.carryOut(m.Action)
			}
		default:
			a.say(fmt.Sprintf(
				"host %s: spxrun's host has sent %T, which is nothing to be done here", a.host,
				m.Action))
		}
	}
}

// outputUp makes a multiplexer whose lines go to spxrun's host.
func (a *agent) outputUp(stream int) (*output.Mux, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	w.Close()
	if err != nil {
		return nil, err
	}
	up := a.up
	up.pumps.Go(func() { up.pump(r, stream) })
	a.targets = append(a.targets, fd)
	return output.New(fd, a.spec.Tag, false)
}

// pump sends lines on as far as spxrun's host takes them.
func (u *uplink) pump(from *os.File, stream int) {
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && !u.pass(stream, b[:n]) || err != nil {
			return
		}
	}
}

// inputQueue brings standard input to the processes of this host that read it.
type inputQueue struct {
	mu   sync.Mutex
	more sync.Cond
	list [][]byte // guarded by mu; an empty one is the end
}

func (q *inputQueue) put(text []byte) {
	q.mu.Lock()
	q.list = append(q.list, text)
	q.mu.Unlock()
	q.more.Signal()
}

func (q *inputQueue) next() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 {
		q.more.Wait()
	}
	text := q.list[0]
	q.list = q.list[1:]
	return text
}

// Read makes the queue the source of feed.
func (a *agent) readInput(b []byte) (int, error) {
	for len(a.inputRest) == 0 {
		text := a.input.next()
		if len(text) == 0 {
			return 0, io.EOF
		}
		a.inputRest = text
		a.above.box.put(&control.Message{Taken: &control.Taken{Bytes: len(text)}})
	}
	n := copy(b, a.inputRest)
	a.inputRest = a.inputRest[n:]
	return n, nil
}
