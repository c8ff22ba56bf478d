package agent

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/mpierr"
	"libspx/launch/job"
	"libspx/launch/output"
	"libspx/launch/service"
)

// A job that goes on without spxrun has its output in a file, from which clients that take spxrun's
// place print it (spxrun --attach): they ask for more when they have printed what there is. So one
// that does not read holds up nothing, and the agent keeps a number for each.

// keptOutput is the file into which output goes: that of --detach, and else from the moment on in
// which spxrun, or its host, is lost.
type keptOutput struct {
	on      atomic.Bool
	watched atomic.Bool // a client waits for more
	grown   func()      // there is more; set before on
	mu      sync.Mutex
	file    *os.File // guarded by mu; nil: nowhere
	room    int      // guarded by mu: bytes that are still written; -1: all
}

// moreOutput: a client that waits can go on.
type moreOutput struct{}

// use has output written to a file from now on.
func (k *keptOutput) use(file *os.File, most int) {
	k.mu.Lock()
	k.file, k.room = file, most
	k.mu.Unlock()
	k.on.Store(true)
}

// write writes text to the file, as far as there is room.
func (k *keptOutput) write(text []byte) error {
	err := k.append(text)
	if k.watched.Swap(false) && k.grown != nil {
		k.grown()
	}
	return err
}

func (k *keptOutput) append(text []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.file == nil || k.room == 0:
		return nil
	case k.room > 0 && len(text) > k.room:
		text = fmt.Appendf(nil,
			"spxrun: there is more output, which is not written: %d MiB are since spxrun or its "+
				"host was lost (--detach has all written)\n", mostKept>>20)
		k.room = 0
	case k.room > 0:
		k.room -= len(text)
	}
	_, err := k.file.Write(text)
	return err
}

// size is how long the file is.
func (k *keptOutput) size() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return 0
	}
	st, err := k.file.Stat()
	if err != nil {
		return 0
	}
	return st.Size()
}

// reader opens the file for a client.
func (k *keptOutput) reader() (file *os.File, name string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return nil, "", os.ErrNotExist
	}
	link := fmt.Sprintf("/proc/self/fd/%d", k.file.Fd())
	if name, err = os.Readlink(link); err == nil {
		file, err = os.Open(link)
	}
	return file, name, err
}

// clients are those that are there now.
type clients struct {
	at      map[client]*waitingClient
	printed int64       // so much has been printed by one
	held    []*question // until it is known which host decides
	once    sync.Once   // output is kept since spxrun was lost
	since   atomic.Bool
}

// waitingClient is one of them.
type waitingClient struct {
	waits   bool
	printed int64
}

// muxes are what the output goes through.
func (a *agent) muxes() []*output.Mux { return slices.Compact([]*output.Mux{a.out, a.err}) }

// beginKept has the output of a detached job kept from the beginning, and is prepared for the loss
// of spxrun.
func (a *agent) beginKept() {
	a.kept.grown = func() { a.inbox.put(moreOutput{}) }
	switch {
	case a.spec.Detached && a.up == nil:
		a.kept.use(os.Stdout, -1)
		for _, m := range a.muxes() {
			m.Copy(a.kept.write, true)
		}
	case a.outlivesFront():
		for _, m := range a.muxes() {
			m.Rescue(func() bool { return frontGone(frontPatience) && a.keepOutput() })
		}
	}
}

// outlivesFront: this agent has an spxrun, and the job goes on when that is lost.
func (a *agent) outlivesFront() bool {
	return a.up == nil && a.conn != nil && a.attached == nil && a.staysWithoutFront() &&
		!a.spec.Detached
}

// staysWithoutFront: the death of spxrun alone ends nothing. Of clusters that are started one by
// one each belongs to its spxrun, but that of the agent which decides.
func (a *agent) staysWithoutFront() bool {
	return a.spec.WithFT || len(a.spec.Parts) > 0 && !a.spec.Joined
}

// frontPatience is how long a reader may be gone before spxrun is, where both are killed at once:
// before that, it is no reader's end that the processes are to hear of.
const frontPatience = 250 * time.Millisecond

// frontGone: spxrun has ended, or does so within a time, whether the main thread has heard of it or
// not.
func frontGone(within time.Duration) bool {
	poll := []unix.PollFd{{Fd: ControlFD, Events: unix.POLLRDHUP}}
	n, err := unix.Poll(poll, int(within/time.Millisecond))
	return err == nil && n > 0 && poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}

// keepOutput has output kept, since spxrun is lost, beside where it has gone so far. Any thread may
// call it.
func (a *agent) keepOutput() bool {
	a.clients.once.Do(func() {
		a.kept.use(a.outputFile())
		for _, m := range a.muxes() {
			m.Copy(a.kept.write, false)
		}
		a.clients.since.Store(true)
	})
	return true
}

// loseFront: spxrun is gone.
func (a *agent) loseFront() {
	if !a.outlivesFront() || a.done || a.machine.Ending() {
		return
	}
	a.keepOutput()
	file, name, err := a.kept.reader()
	if err != nil {
		a.say(fmt.Sprintf(
			"spxrun is gone, and job %016x goes on without it; there is no file in which its "+
				"output could be kept", a.jobNumber()))
		return
	}
	file.Close()
	a.say(fmt.Sprintf(
		"spxrun is gone, and job %016x goes on without it; its output is kept in %s (spxrun "+
			"--attach %016x)", a.jobNumber(), name, a.jobNumber()))
}

// endKept writes the last line of what was kept since spxrun was lost.
func (a *agent) endKept(status int) {
	if a.clients.since.Load() && !a.succession.left {
		// no other place is left to say it
		a.kept.write([]byte(service.EndLine(a.jobNumber(), status))) //nolint:errcheck
	}
}

// attend answers a client.
func (a *agent) attend(q *question) {
	switch c := a.clients.at[q.conn]; {
	case c != nil:
		a.hasPrinted(q, c)
	case a.up != nil && a.succession.waits:
		a.clients.held = append(a.clients.held, q)
	default:
		answer := a.noClient()
		if answer == nil {
			answer = a.admitClient(q)
		}
		q.reply(answer)
		if answer.FD >= 0 {
			unix.Close(answer.FD)
		}
	}
}

// noClient refuses a client where there is nothing to print.
func (a *agent) noClient() *service.Message {
	number := a.jobNumber()
	switch {
	case a.up != nil:
		host := a.hostName(a.succession.decider)
		return refuse(mpierr.Other,
			"host %s decides about job %016x, and has its output: spxrun --attach there (ssh %s "+
				"spxrun --attach %016x)", host, number, host, number)
	// the news of its end may not have been read yet
	case a.kept.on.Load(), a.outlivesFront() && !a.machine.Ending() && frontGone(0) &&
		a.keepOutput():
		return nil
	case a.conn == nil:
		return refuse(mpierr.Other, "job %016x has another launcher, which has its output", number)
	case a.machine.Ending():
		return refuse(mpierr.Other, "job %016x is being ended", number)
	}
	return refuse(mpierr.Other,
		"job %016x has its spxrun (process %d on host %s), which prints its output; --attach is "+
			"for jobs with --detach, and for those with --with-ft whose spxrun was lost", number,
		os.Getppid(), a.host)
}

// admitClient takes a new client. From the first one on, output goes into the file alone, where
// spxrun was lost: the client prints it.
func (a *agent) admitClient(q *question) *service.Message {
	file, name, err := a.kept.reader()
	if err != nil {
		return refuse(mpierr.Other, "the output of job %016x is in no file that could be read: %v",
			a.jobNumber(), err)
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return refuse(mpierr.Other, "the output of job %016x in %s: %v", a.jobNumber(), name, err)
	}
	if a.clients.since.Load() {
		for _, m := range a.muxes() {
			m.Copy(a.kept.write, true)
		}
	}
	c := &waitingClient{}
	if q.Text != service.FromStart {
		c.printed = a.clients.printed
	}
	if a.clients.at == nil {
		a.clients.at = map[client]*waitingClient{}
	}
	a.clients.at[q.conn] = c
	return &service.Message{Number: uint64(c.printed), Name: name,
		World: uint32(boolInt(a.spec.Succeeds)), FD: fd}
}

// hasPrinted notes how much a client has printed, and answers when there is more.
func (a *agent) hasPrinted(q *question, c *waitingClient) {
	c.printed, c.waits = int64(q.Number), true
	a.clients.printed = max(a.clients.printed, min(c.printed, a.kept.size()))
	if q.World == service.Leaves {
		a.clients.forget(q.conn)
		q.reply(&service.Message{World: service.Leaves, FD: -1})
	}
	a.tellClients()
}

// tellClients answers those for which there is more.
func (a *agent) tellClients() {
	a.kept.watched.Store(true)
	size := a.kept.size()
	waits := false
	for conn, c := range a.clients.at {
		switch {
		case c.waits && size > c.printed:
			c.waits = false
			// it may be gone
			conn.Send(&service.Message{Kind: service.Client, Number: uint64(size), FD: -1}) //nolint:errcheck
		case c.waits:
			waits = true
		}
	}
	if !waits {
		a.kept.watched.Store(false)
	}
}

// signalFor hands a client's signal on as spxrun's.
func (a *agent) signalFor(q *question) {
	if a.clients.at[q.conn] != nil && q.Number > 0 && q.Number <= uint64(unix.SIGSYS) {
		a.inbox.put(job.Signalled{Signal: int(q.Number)})
	}
}

// dismissClients tells all that the job has ended.
func (a *agent) dismissClients() {
	size := a.kept.size()
	for conn := range a.clients.at {
		// it may be gone
		conn.Send(&service.Message{Kind: service.Client, Number: uint64(size), Codes: []uint32{uint32(a.status)}, FD: -1}) //nolint:errcheck
	}
}

// refuseClients tells all that the job is no more this agent's.
func (a *agent) refuseClients(answer *service.Message) {
	for conn := range a.clients.at {
		(&question{&service.Message{Kind: service.Client}, conn}).reply(answer)
	}
	clear(a.clients.at)
}

// attendHeld answers those who came before it was known which host decides.
func (a *agent) attendHeld() {
	held := a.clients.held
	a.clients.held = nil
	for _, q := range held {
		a.attend(q)
	}
}

// forget drops a client that has gone.
func (c *clients) forget(conn client) {
	maps.DeleteFunc(c.at, func(at client, _ *waitingClient) bool { return at == conn })
	c.held = slices.DeleteFunc(c.held, func(q *question) bool { return q.conn == conn })
}

// outputPath is where the file of a job's output is to be, but for the folder of last resort.
func (a *agent) outputPath(dir string) string {
	name := filepath.Join(dir, service.OutputName(a.jobNumber()))
	if full, err := filepath.Abs(name); err == nil {
		return full
	}
	return name
}
