package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/hosts"
	"libspx/launch/process"
)

// Remote shells: ssh or its like, each a process of this agent that starts the agent of another
// host and carries what that one and spxrun's say to each other.

// Limits on remote shells.
const (
	// that an agent has started, and that have not brought an agent yet: more would be in each
	// other's way
	shellsAtOnce = 32
	// for which their words are kept, as the reason of an error; then the user sees them
	holdBack = 5 * time.Second
	mostSaid = 4 << 10 // bytes of these words that are looked at
	// for their words to come when they have ended: what they leave behind may hold the stream
	lastWords = 200 * time.Millisecond
)

// shells are those of this agent.
type shells struct {
	once  sync.Once
	room  chan struct{} // holds one for each that has brought no agent yet
	start chan func()   // to the thread that starts them

	mu sync.Mutex
	// guarded by mu; held while one is started, so that none is there that is not in it
	pids map[int]bool
}

// A shellUser hears of a shell. Its methods are called without a lock, one after another, but said
// and passed also beside the others.
type shellUser interface {
	began()            // it runs now
	heard(b []byte)    // from the agent that it has brought
	said(b []byte)     // on its standard error
	passed(n int)      // so many bytes have been taken for the agent
	over(end shellEnd) // the last
}

// shellEnd is how a shell has ended.
type shellEnd struct {
	how      string
	passing  bool // it may be otherwise another time
	answered bool // it had brought an agent
}

type shell struct {
	host  string
	words []string
	user  shellUser

	mu       sync.Mutex
	more     sync.Cond
	down     [][]byte // guarded by mu, as all below: for the agent
	shut     bool     // no more will come
	pid      int      // 0: it does not run
	out      *os.File
	killed   chan struct{} // closed when it is to end
	dead     bool          // it is
	answered bool
	text     []byte // what it has said
	held     int    // bytes of text that the user has not seen; -1: all is shown at once
}

func (p *shells) open() {
	p.once.Do(func() {
		p.room, p.start, p.pids = make(chan struct{}, shellsAtOnce), make(chan func()),
			map[int]bool{}
		go func() {
			// the parent-death signal follows this thread, which lives as long as the agent
			runtime.LockOSThread()
			for f := range p.start {
				f()
			}
		}()
	})
}

// has: pid is one of these shells.
func (p *shells) has(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pids[pid]
}

// newShell is one that will be run.
func newShell(host string, words []string, user shellUser) *shell {
	s := &shell{host: host, words: words, user: user, killed: make(chan struct{})}
	s.more.L = &s.mu
	return s
}

// put sends to the agent without waiting for it.
func (s *shell) put(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.down = append(s.down, b)
		s.more.Signal()
	}
}

// close ends what the agent hears, when it has heard all: it ends then.
func (s *shell) close() {
	s.mu.Lock()
	s.shut = true
	s.mu.Unlock()
	s.more.Broadcast()
}

// kill ends the shell, also before it has begun.
func (s *shell) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return
	}
	s.dead, s.shut = true, true
	close(s.killed)
	if s.pid > 0 {
		syscall.Kill(-s.pid, syscall.SIGKILL) //nolint:errcheck // it has ended then
		s.out.Close()                         // whoever else holds the other end
	}
	s.more.Broadcast()
}

// run is the life of a shell.
func (s *shell) run(p *shells) {
	p.open()
	select {
	case p.room <- struct{}{}:
	case <-s.killed:
		s.user.over(shellEnd{how: "it was not started any more"})
		return
	}
	leave := sync.OnceFunc(func() { <-p.room })
	defer leave()
	cmd, in, errs, err := s.begin(p)
	if err != nil {
		s.user.over(shellEnd{how: fmt.Sprintf("cannot run %s: %v%s", s.words[0], err,
			process.Advice(err))})
		return
	}
	s.user.began()
	go s.feed(in)
	silent := make(chan struct{})
	go s.listen(errs, silent)
	show := time.AfterFunc(holdBack, s.show)
	b := make([]byte, 32<<10)
	for {
		n, err := s.out.Read(b)
		if n > 0 {
			if !s.answered { // this goroutine alone writes it
				s.mu.Lock()
				s.answered = true
				s.mu.Unlock()
				leave()
				s.show()
			}
			s.user.heard(b[:n])
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	s.mu.Lock()
	pid := s.pid
	s.pid = 0
	s.mu.Unlock()
	p.mu.Lock()
	delete(p.pids, pid)
	p.mu.Unlock()
	show.Stop()
	s.close()
	in.Close()
	select {
	case <-silent:
	case <-time.After(lastWords):
		errs.Close()
		<-silent
	}
	s.out.Close()
	s.user.over(s.end(err))
}

// begin starts the process.
func (s *shell) begin(p *shells) (cmd *exec.Cmd, in, errs *os.File, err error) {
	var ends [6]*os.File // of three pipes: to be read, and to be written
	for i := 0; i < len(ends) && err == nil; i += 2 {
		ends[i], ends[i+1], err = os.Pipe()
	}
	if err == nil {
		cmd = exec.Command(s.words[0], s.words[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = ends[0], ends[3], ends[5]
		// One that hangs does not notice by its input that this agent is gone.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
		started := make(chan error)
		p.start <- func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			err := cmd.Start()
			if err == nil {
				p.pids[cmd.Process.Pid] = true
			}
			started <- err
		}
		err = <-started
	}
	for i, f := range ends {
		if f != nil && (err != nil || i == 0 || i == 3 || i == 5) {
			f.Close()
		}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid, s.out = cmd.Process.Pid, ends[2]
	if s.dead {
		syscall.Kill(-s.pid, syscall.SIGKILL) //nolint:errcheck // it has ended then
	}
	return cmd, ends[1], ends[4], nil
}

// feed gives the agent what is for it.
func (s *shell) feed(in *os.File) {
	defer in.Close()
	for {
		s.mu.Lock()
		for len(s.down) == 0 && !s.shut {
			s.more.Wait()
		}
		list := s.down
		s.down = nil
		s.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, b := range list {
			if _, err := in.Write(b); err != nil {
				return // its end says why
			}
			s.user.passed(len(b))
		}
	}
}

// listen takes the shell's own words, and later what its agent writes to standard error.
func (s *shell) listen(errs *os.File, silent chan<- struct{}) {
	defer close(silent)
	defer errs.Close()
	b := make([]byte, 4<<10)
	for {
		n, err := errs.Read(b)
		if n > 0 {
			s.mu.Lock()
			hold := s.held >= 0 && len(s.text)+n <= mostSaid
			if hold {
				s.text, s.held = append(s.text, b[:n]...), s.held+n
			}
			s.mu.Unlock()
			if !hold {
				s.show()
				s.user.said(bytes.Clone(b[:n]))
			}
		}
		if err != nil {
			return
		}
	}
}

// show gives the user what was held back, and all that comes.
func (s *shell) show() {
	s.mu.Lock()
	held := s.held
	s.held = -1
	text := bytes.Clone(s.text)
	s.mu.Unlock()
	if held > 0 {
		s.user.said(text)
	}
}

// end says how it came; err is that of the process.
func (s *shell) end(err error) shellEnd {
	end := shellEnd{how: ending(err), answered: s.answered}
	if end.answered {
		return end
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if cause := hosts.CauseOf(s.host, exit.ExitCode(), string(s.text)); cause.Line != "" {
			end.how, end.passing = cause.Text(), cause.Passing
			return end
		}
	}
	if err == nil {
		end.how = "the command that was to start its agent (" + s.words[0] +
			") has ended without doing so, and with status 0"
	}
	s.show()
	return end
}

// ending says how the process of a shell has ended.
func ending(err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "its agent has ended"
	case errors.As(err, &exit) && exit.ExitCode() == 127:
		return "there is no such program as spxrun there (status 127): is libspx installed at " +
			"the same place? --prefix DIR names another"
	case errors.As(err, &exit) && exit.ExitCode() == 255:
		return "it cannot be reached (status 255)"
	}
	return err.Error()
}

// openFiles is how many descriptors this process may have. The Go runtime has raised the limit to
// the hard one as the program began, and gives the processes that are started the one that it has
// found.
func openFiles() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur > 1<<30 {
		return 1 << 30
	}
	return int(l.Cur)
}
