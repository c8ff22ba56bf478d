// Package output merges the output of many processes into one file: whole lines, none inside
// another, without delay.
//
// A Mux owns one target (spxrun's standard output or error, or both when they are the same file)
// and the read ends of the pipes that lead to it, and serves all of them from one thread. The
// target is written with blocking calls: a slow reader stops the processes, and nothing is
// kept in memory but one unfinished line per process. It is independent of processes.
//
// Bytes are never changed. Without tags the target gets exactly what the processes wrote, reordered
// by line. A line that is longer than MaxLine, or that stays unfinished while all processes are
// silent (a prompt), is written in parts.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Sizes in bytes, and times.
const (
	MaxLine    = 64 << 10 // an unfinished line longer than this is written in parts
	readBytes  = 64 << 10
	batchBytes = 256 << 10 // written to the target in one go
	// read at most, per pipe, once its processes are gone: more than a pipe holds
	drainBytes  = 2 << 20
	idleTTY     = 50 * time.Millisecond
	idleDefault = 250 * time.Millisecond
)

// A Mux multiplexes pipes into one file.
type Mux struct {
	target int
	tag    bool // lines start with [rank]
	// an unfinished line of one process is ended before another's line: for human readers
	split  bool
	idle   time.Duration // unfinished lines are written after this silence
	epoll  int
	wake   int // eventfd: said, closing or streams have changed
	done   chan struct{}
	before atomic.Pointer[func()]
	copies atomic.Pointer[copies]
	rescue atomic.Pointer[func() bool]

	mu      sync.Mutex // guards the following
	alone   bool       // there is only one pipe, whose lines cannot be disturbed
	streams map[int]*stream
	said    []string
	closing bool
	over    bool  // its thread has ended, and epoll and wake are closed
	err     error // why the target cannot be written any more

	// owned by the thread of run
	batch   []byte
	scratch []byte
	open    *stream // of the unfinished line with which the target ends
	waiting map[*stream]struct{}
	last    time.Time // of the last byte read
	left    bool      // the target, which cannot be written, for the copy
}

// copies is the receiver of copies of the output.
type copies struct {
	write func([]byte) error
	alone bool // and the target does not
}

// stream is the pipe of one process.
type stream struct {
	fd      int
	name    string // between the brackets of its tag
	plain   bool   // its lines are complete as they are
	partial []byte // an unfinished line, not yet written
}

// New makes a Mux that writes to target, which it does not close. tag: lines start with [rank].
// alone: there will be no more than one pipe, and nothing of it has to wait for the end of its
// line.
func New(target int, tag, alone bool) (*Mux, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	m := &Mux{
		target:  target,
		tag:     tag,
		alone:   alone,
		split:   tag,
		idle:    idleDefault,
		epoll:   epoll,
		wake:    wake,
		done:    make(chan struct{}),
		streams: map[int]*stream{},
		waiting: map[*stream]struct{}{},
		scratch: make([]byte, readBytes),
	}
	if _, err := unix.IoctlGetTermios(target, unix.TCGETS); err == nil {
		m.idle, m.split = idleTTY, true
	}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)}); err != nil {
		return nil, fmt.Errorf("epoll_ctl: %w", err)
	}
	go m.run()
	return m, nil
}

// Add hands over the read end of the pipe of a process. The Mux makes it non-blocking and closes
// it.
func (m *Mux) Add(rank, fd int) error { return m.AddNamed(strconv.Itoa(rank), fd, m.alone) }

// AddPlain is Add for a pipe whose lines are complete as they are: those of another Mux.
func (m *Mux) AddPlain(fd int) error { return m.add(&stream{fd: fd, plain: true}, false) }

// AddNamed is Add with the text of the tag. alone is as for New, from now on.
func (m *Mux) AddNamed(name string, fd int, alone bool) error {
	return m.add(&stream{fd: fd, name: name}, alone)
}

func (m *Mux) add(s *stream, alone bool) error {
	fd := s.fd
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("pipe of rank %s: %w", s.name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alone = alone
	if m.over || errors.Is(m.err, unix.EPIPE) {
		return unix.Close(fd)
	}
	m.streams[fd] = s
	return unix.EpollCtl(m.epoll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// Say puts a line of the launcher's own between the lines of the processes. It does not block.
func (m *Mux) Say(line string) {
	m.mu.Lock()
	m.said = append(m.said, line+"\n")
	m.mu.Unlock()
	m.notify()
}

// Drain is called when no process is left that could write: what the pipes still hold is read and
// written, also when a stranger keeps a pipe open. The channel is closed when all is written.
func (m *Mux) Drain() <-chan struct{} {
	m.mu.Lock()
	m.closing = true
	m.mu.Unlock()
	m.notify()
	return m.done
}

// Err returns why the target could not be written, if so. A reader that is gone (EPIPE) is no
// error: the processes are notified in the same way.
func (m *Mux) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.Is(m.err, unix.EPIPE) {
		return nil
	}
	return m.err
}

func (m *Mux) notify() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.over {
		one := [8]byte{1}
		unix.Write(m.wake, one[:]) //nolint:errcheck // a full counter wakes as well
	}
}

// end releases the Mux's kernel resources. Later callers find it closed.
func (m *Mux) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	unix.Close(m.epoll)
	unix.Close(m.wake)
}

// run is the Mux's thread. Stopping for a background process's output (stty tostop) would stop the
// whole job.
func (m *Mux) run() {
	runtime.LockOSThread()
	var mask unix.Sigset_t
	mask.Val[0] = 1 << (uint(unix.SIGTTOU) - 1)
	// cannot fail with these arguments
	unix.PthreadSigmask(unix.SIG_BLOCK, &mask, nil) //nolint:errcheck
	defer close(m.done)
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(m.epoll, events, m.timeout())
		if err != nil && err != unix.EINTR {
			panic(fmt.Sprintf("output: epoll_wait: %v", err))
		}
		for _, e := range events[:max(n, 0)] {
			m.event(int(e.Fd))
		}
		// else the time passed here, perhaps in writing, and the ends of the lines have arrived
		if n == 0 {
			m.flushIdle()
		}
		if m.takeSaid() {
			m.drain()
			m.flush()
			m.end()
			return
		}
		m.flush()
	}
}

func (m *Mux) event(fd int) {
	if fd == m.wake {
		var b [8]byte
		unix.Read(m.wake, b[:]) //nolint:errcheck // nothing to read is fine
		return
	}
	m.mu.Lock()
	s := m.streams[fd]
	m.mu.Unlock()
	if s != nil {
		m.read(s)
	}
}

// takeSaid writes the launcher's own lines; true when the Mux is to end.
func (m *Mux) takeSaid() bool {
	m.mu.Lock()
	said, closing := m.said, m.closing
	m.said = nil
	m.mu.Unlock()
	for _, line := range said {
		if m.open != nil {
			m.batch = append(m.batch, '\n')
			m.open = nil
		}
		m.batch = append(m.batch, line...)
	}
	return closing
}

// drain reads what is left in the pipes.
func (m *Mux) drain() {
	m.mu.Lock()
	var list []*stream
	for _, s := range m.streams {
		list = append(list, s)
	}
	m.mu.Unlock()
	for _, s := range list {
		for got := 0; got < drainBytes && m.has(s); {
			n := m.read(s)
			if n <= 0 {
				break
			}
			got += n
		}
		m.remove(s)
	}
}

// has: the pipe is still open here.
func (m *Mux) has(s *stream) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.streams[s.fd] == s
}

// read takes once from a pipe; it returns the number of bytes, 0 at the end, -1 when there is
// nothing.
func (m *Mux) read(s *stream) int {
	n, err := unix.Read(s.fd, m.scratch)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return -1
	case err != nil || n <= 0:
		m.remove(s)
		return 0
	}
	m.last = time.Now()
	m.data(s, m.scratch[:n])
	return n
}

// data is n bytes more of a process: whole lines go on, the rest waits for its end.
func (m *Mux) data(s *stream, b []byte) {
	end := bytes.LastIndexByte(b, '\n') + 1
	if end > 0 {
		m.lines(s, s.partial)
		m.lines(s, b[:end])
		s.partial = s.partial[:0]
	}
	s.partial = append(s.partial, b[end:]...)
	switch {
	case len(s.partial) == 0:
		delete(m.waiting, s)
	case len(s.partial) > MaxLine || m.undisturbed():
		m.handOn(s)
	default:
		m.waiting[s] = struct{}{}
	}
}

func (m *Mux) undisturbed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.alone
}

// handOn writes a process's unfinished line.
func (m *Mux) handOn(s *stream) {
	m.lines(s, s.partial)
	s.partial = s.partial[:0]
	delete(m.waiting, s)
}

// lines appends text of one process to what will be written; text may begin in the middle of a
// line, and end there.
func (m *Mux) lines(s *stream, text []byte) {
	if len(text) == 0 {
		return
	}
	if m.open != nil && m.open != s {
		if m.split {
			m.batch = append(m.batch, '\n')
		}
		m.open = nil
	}
	if m.tag && !s.plain {
		m.tagged(s, text)
	} else {
		m.batch = append(m.batch, text...)
	}
	m.open = nil
	if text[len(text)-1] != '\n' {
		m.open = s
	}
	if len(m.batch) >= batchBytes {
		m.flush()
	}
}

func (m *Mux) tagged(s *stream, text []byte) {
	tag := fmt.Appendf(nil, "[%s] ", s.name)
	begin := m.open != s
	for len(text) > 0 {
		if begin {
			m.batch = append(m.batch, tag...)
		}
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		m.batch = append(m.batch, text[:end]...)
		text, begin = text[end:], true
	}
}

// remove ends a pipe: the rest of its last line is written.
func (m *Mux) remove(s *stream) {
	m.mu.Lock()
	gone := m.streams[s.fd] != s
	delete(m.streams, s.fd)
	m.mu.Unlock()
	if gone {
		return
	}
	m.handOn(s)
	if m.tag && m.open == s {
		m.batch = append(m.batch, '\n')
		m.open = nil
	}
	unix.Close(s.fd) // leaves the epoll set with it
}

// timeout is how long epoll_wait may sleep, in ms: for ever, unless an unfinished line waits.
func (m *Mux) timeout() int {
	if len(m.waiting) == 0 {
		return -1
	}
	left := m.idle - time.Since(m.last)
	return max(0, int((left+time.Millisecond-1)/time.Millisecond))
}

// flushIdle hands unfinished lines on when all ranks have been silent: prompts.
func (m *Mux) flushIdle() {
	if len(m.waiting) == 0 || time.Since(m.last) < m.idle {
		return
	}
	for s := range m.waiting {
		m.handOn(s)
	}
}

// Before has fn called before anything is written from now on: for clearing other text on the same
// terminal.
func (m *Mux) Before(fn func()) { m.before.Store(&fn) }

// Copy has all that is written from now on go through write as well; alone: not to the target any
// more. An error of write counts only then. When the target cannot be written any more, for
// whatever reason, the copy continues without it.
func (m *Mux) Copy(write func([]byte) error, alone bool) { m.copies.Store(&copies{write, alone}) }

// Rescue has fn called when the target cannot be written any more: it may call Copy, and returns
// whether it, or another, has.
func (m *Mux) Rescue(fn func() bool) { m.rescue.Store(&fn) }

// flush writes the batch, waiting for a slow reader.
func (m *Mux) flush() {
	if len(m.batch) == 0 {
		return
	}
	if fn := m.before.Load(); fn != nil {
		(*fn)()
	}
	c := m.copies.Load()
	if c != nil {
		if err := c.write(m.batch); err != nil && c.alone && m.err == nil {
			m.broken(err)
		}
	}
	if c == nil || !c.alone && !m.left {
		m.toTarget(c != nil)
	}
	m.batch = m.batch[:0]
}

// toTarget writes the batch there. copied: it is no loss when that cannot be.
func (m *Mux) toTarget(copied bool) {
	for b := m.batch; len(b) > 0 && m.err == nil; {
		n, err := unix.Write(m.target, b)
		switch {
		case err == nil:
			b = b[n:]
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			// the write returns it again
			unix.Poll([]unix.PollFd{{Fd: int32(m.target), Events: unix.POLLOUT}}, -1) //nolint:errcheck
		case copied:
			m.left = true
			return
		case m.rescued(b):
			return
		default:
			m.broken(err)
		}
	}
}

// rescued gives the copy, if there is one now, what the target has not taken.
func (m *Mux) rescued(b []byte) bool {
	if fn := m.rescue.Load(); fn == nil || !(*fn)() {
		return false
	}
	c := m.copies.Load()
	if m.left = c != nil; c != nil {
		c.write(b) //nolint:errcheck // there is no other place
	}
	return c != nil
}

// broken: nothing can be written any more. If the reader is gone the processes notice it as they
// would without spxrun: their pipes break. Otherwise (a full disk) their output is discarded, and
// Err returns the error.
func (m *Mux) broken(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	if err != unix.EPIPE {
		return
	}
	for fd := range m.streams {
		unix.Close(fd)
	}
	m.streams, m.waiting, m.open = map[int]*stream{}, map[*stream]struct{}{}, nil
}
