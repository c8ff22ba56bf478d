package front

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"libspx/launch/command"
	"libspx/launch/service"
	"libspx/launch/steer"
)

// Spxrun as the client of a job that it has not started, or that has lost its spxrun (--attach).
// The output is in a file, whose descriptor the agent passes; its content is printed here, and the
// agent reports when there is more, and how the job has ended. The agent holds nothing for this
// process, which may end at any moment.

// follower is such a client.
type follower struct {
	job      uint64
	conn     *service.Conn
	file     *os.File
	name     string // of the file
	host     string
	succeeds bool // other hosts may go on with the job

	messages chan *service.Message // closed when the agent has closed its end
	upTo     chan extent           // what is to be printed
	printed  chan error            // all is, or cannot be
	writes   chan struct{}         // full while something is being written
	at       int64                 // offset printed so far; owned by the filler of writes
}

// extent is how much output there is; last: there will be no more.
type extent struct {
	size int64
	last bool
}

// attachTo runs the client.
func attachTo(j *command.Job) int {
	f, from, err := newFollower(j)
	if err != nil {
		return complain(statusFailed, err)
	}
	defer f.conn.Close()
	signals := make(chan os.Signal, 16)
	for _, s := range handedOn {
		// the job does not stop with this process
		if s != syscall.SIGTSTP && s != syscall.SIGCONT && !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	f.at = from
	go f.receive()
	go f.print(from)
	return f.serve(signals)
}

func newFollower(j *command.Job) (f *follower, from int64, err error) {
	f = &follower{messages: make(chan *service.Message, 1), upTo: make(chan extent, 2),
		printed: make(chan error, 1), writes: make(chan struct{}, 1)}
	steer.Waiting = func(text string) { fmt.Fprintln(os.Stderr, "spxrun:", text) }
	if f.job, err = steer.Find(j.Attach); err != nil {
		return nil, 0, fmt.Errorf("--attach: %w", err)
	}
	if f.conn, err = service.Dial(f.job); err != nil {
		return nil, 0, fmt.Errorf("--attach: %w", err)
	}
	f.host, _ = os.Hostname() // for words alone
	err = f.conn.Send(&service.Message{Kind: service.Client, Text: j.Since, FD: -1})
	var answer *service.Message
	if err == nil {
		answer, err = f.conn.Receive()
	}
	switch {
	case err != nil:
		err = fmt.Errorf(
			"--attach: the job has ended, or its agent does not know this question: %w", err)
	case answer.Class != 0:
		err = fmt.Errorf("--attach: %s", steer.Plain(answer.Text))
	case answer.FD < 0:
		err = errors.New("--attach: the agent has sent no file")
	default:
		f.file, f.name, f.succeeds = os.NewFile(uintptr(answer.FD), answer.Name),
			steer.Plain(answer.Name), answer.World != 0
		return f, int64(answer.Number), nil
	}
	f.conn.Close()
	return nil, 0, err
}

func (f *follower) receive() {
	defer close(f.messages)
	for {
		m, err := f.conn.Receive()
		if err != nil {
			return
		}
		f.messages <- m
	}
}

// endsClient are the signals that end the client, and not the job.
func endsClient(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP
}

// serve prints what comes until the job has ended, or this process is to end.
func (f *follower) serve(signals <-chan os.Signal) int {
	messages := f.messages
	status, failure := statusFailed, f.unheard()
	over := func(size int64) {
		messages = nil
		f.upTo <- extent{size, true}
	}
	for {
		select {
		case s := <-signals:
			if s := s.(syscall.Signal); endsClient(s) {
				f.leave(messages)
				fmt.Fprintf(os.Stderr,
					"spxrun: job %016x goes on; spxrun --attach %016x prints what more comes, "+
						"and spxctl end %016x ends it\n", f.job, f.job, f.job)
				return 128 + int(s)
			}
			// the job has ended then
			f.conn.Send(&service.Message{Kind: service.Signal, Number: uint64(s.(syscall.Signal)), FD: -1}) //nolint:errcheck
		case m, open := <-messages:
			switch {
			case !open:
				over(f.size())
			case m.Class != 0:
				failure = errors.New(steer.Plain(m.Text))
				over(f.size())
			case len(m.Codes) > 0:
				status, failure = int(m.Codes[0]), nil
				over(int64(m.Number))
			default:
				f.upTo <- extent{int64(m.Number), false}
			}
		case err := <-f.printed:
			if err != nil {
				failure = fmt.Errorf("the output of job %016x, from %s: %w", f.job, f.name, err)
			}
			if failure != nil {
				return complain(statusFailed, failure)
			}
			return status
		}
	}
}

// unheard is what is wrong when the agent ends without a word.
func (f *follower) unheard() error {
	text := fmt.Sprintf(
		"the agent of job %016x on host %s is gone: it was killed, say; the last lines of %s, "+
			"on this host, tell what of it is known", f.job, f.host, f.name)
	if f.succeeds {
		text += fmt.Sprintf(
			"; the job goes on at other hosts if these can (spxrun --attach %016x, there)", f.job)
	}
	return errors.New(text)
}

// leavePatience is how long a write may last before its reader is taken for one that does not read,
// and how long the agent may take for a word.
const leavePatience = time.Second

// leave sends the agent the offset printed so far, at which the next client begins. The agent has
// received it when this returns, unless it does not answer.
func (f *follower) leave(messages <-chan *service.Message) {
	limit := time.After(leavePatience)
	select {
	case f.writes <- struct{}{}: // it stays full: no more is printed
	case <-limit:
		return // the agent has the previous offset: so much (mostAtOnce) may be printed again
	}
	if f.conn.Send(&service.Message{Kind: service.Client, Number: uint64(f.at),
		World: service.Leaves, FD: -1}) != nil || messages == nil {
		return // the job has ended
	}
	for {
		select {
		case m, open := <-messages:
			if !open || m.World == service.Leaves || len(m.Codes) > 0 {
				return
			}
		case <-limit:
			return
		}
	}
}

// Write prints text, and counts it.
func (f *follower) Write(text []byte) (int, error) {
	f.writes <- struct{}{}
	n, err := os.Stdout.Write(text)
	f.at += int64(n)
	<-f.writes
	return n, err
}

// size is how long the file is.
func (f *follower) size() int64 {
	st, err := f.file.Stat()
	if err != nil {
		return 0
	}
	return st.Size()
}

// mostAtOnce is printed between two reports of the offset to the agent: so much may be printed
// again by the next client when this one is killed.
const mostAtOnce = 256 << 10

// print prints the file from an offset up to the announced one, and reports its progress to the
// agent.
func (f *follower) print(from int64) {
	for at := from; ; {
		// its end is seen by receive
		f.conn.Send(&service.Message{Kind: service.Client, Number: uint64(at), FD: -1}) //nolint:errcheck
		to := <-f.upTo
		size := to.size
		if !to.last {
			size = min(size, at+mostAtOnce)
		}
		n, err := io.Copy(f, io.NewSectionReader(f.file, at, size-at))
		at += n
		if err != nil || to.last {
			f.printed <- err
			return
		}
	}
}
