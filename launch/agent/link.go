package agent

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"libspx/launch/control"
)

// A link is the way from the agent that decides to one that it has had started: a remote shell of
// its own, or one of the agent of another host (branches.go), which carries the same bytes. Until
// the other end has answered, what was sent is kept, and the way can be made anew: after a while,
// where the reason of a failure can go away, and from here, where the other agent could not do it.
type link struct {
	a     *agent
	host  string
	words []string // of the shell
	up    *io.PipeReader
	in    *io.PipeWriter // its other end, for the goroutine that delivers data

	mu       sync.Mutex
	number   int         // guarded by mu, as all below: of the host, to via
	via      *remoteHost // whose agent has the shell; nil: this one has it
	shell    *shell
	again    *time.Timer // until it is tried once more
	tries    int
	sent     []byte    // as long as nothing has come
	under    int       // bytes that were forwarded, and have not been accepted by the shell
	room     sync.Cond // it may be so much less that there is room for more
	answered bool
	shut     bool // nothing more is to be sent
	dead     bool // it was broken on purpose
	since    time.Time
	trouble  string // why it did not work before
	errs     *printer
	done     bool
	how      string
	ended    chan struct{} // closed with done
}

// startPauses are the times between attempts to reach a host.
var startPauses = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}

func (a *agent) newLink(h *remoteHost) *link {
	l := &link{a: a, host: h.name, number: h.number, words: a.shellOf(h.name),
		ended: make(chan struct{})}
	l.up, l.in = io.Pipe()
	h.link, h.wait = l, func() string { <-l.ended; return l.how }
	h.conn = control.NewConn(l)
	return l
}

// Read reads from the other agent.
func (l *link) Read(b []byte) (int, error) { return l.up.Read(b) }

// mostUnder is how many bytes wait on a link for its shell at most, beside those of one more Write.
const mostUnder = 256 << 10

// Write sends. It waits for room, but not for the other end.
func (l *link) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.under >= mostUnder && !l.done && !l.shut && !l.dead {
		l.room.L = &l.mu
		l.room.Wait()
	}
	if l.done || l.shut {
		return 0, io.ErrClosedPipe
	}
	text := bytes.Clone(b)
	l.under += len(b)
	if !l.answered {
		l.sent = append(l.sent, text...)
	}
	switch {
	case l.via != nil:
		l.via.box.put(&control.Message{Branch: &control.Branch{Host: l.number, Text: text}})
	case l.shell != nil:
		l.shell.put(text)
	}
	return len(b), nil
}

// Close lets the other agent learn that nothing more comes.
func (l *link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
	l.room.Broadcast()
	l.up.Close()
	switch {
	case l.via != nil:
		l.via.box.put(&control.Message{Branch: &control.Branch{Host: l.number, Close: true}})
	case l.shell != nil:
		l.shell.close()
	}
	return nil
}

// startHere has a shell of this agent bring the other one.
func (l *link) startHere() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || l.done {
		return
	}
	l.again, l.via, l.under = nil, nil, len(l.sent)
	l.shell = newShell(l.host, l.words, l)
	l.shell.put(bytes.Clone(l.sent))
	if l.shut {
		l.shell.close()
	}
	go l.shell.run(&l.a.shells)
}

// startAt has the agent of another host do that.
func (l *link) startAt(h *remoteHost) {
	h.belowMu.Lock()
	if h.below == nil {
		h.below = map[int]*link{}
	}
	h.below[l.number] = l
	over := h.belowOver
	h.belowMu.Unlock()
	if over {
		h.loseBelow()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.via, l.under = h, len(l.sent)
	h.box.put(&control.Message{Branch: &control.Branch{Host: l.number, Name: l.host,
		Words: l.words}})
	if len(l.sent) > 0 {
		h.box.put(&control.Message{Branch: &control.Branch{Host: l.number,
			Text: bytes.Clone(l.sent)}})
	}
}

// hangUp breaks the link, and ends its shell.
func (l *link) hangUp() {
	l.mu.Lock()
	l.dead = true
	l.room.Broadcast()
	waits := l.again != nil && l.again.Stop()
	switch {
	case l.via != nil:
		l.via.box.put(&control.Message{Branch: &control.Branch{Host: l.number, Kill: true}})
	case l.shell != nil:
		l.shell.kill()
	}
	l.mu.Unlock()
	if waits {
		l.finish(l.trouble)
	}
}

// finish is the end of the link.
func (l *link) finish(how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	l.done, l.how = true, how
	l.room.Broadcast()
	if l.errs != nil {
		l.errs.close()
	}
	l.in.Close()
	close(l.ended)
}

// passed: the shell has taken so much.
func (l *link) passed(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under = max(0, l.under-max(n, 0)) // a shell before this one may have taken the same
	l.room.Broadcast()
}

// awaits reports since when the other end is awaited, and what has delayed it; not ok: the link has
// ended, or its start has not begun.
func (l *link) awaits() (since time.Time, trouble string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since, l.trouble, !l.since.IsZero() && !l.done
}

func (l *link) hasAnswered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// began, heard, said and over make the link the user of its shell, wherever that is.
func (l *link) began() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		l.since = time.Now()
	}
}

func (l *link) heard(b []byte) {
	l.mu.Lock()
	l.answered, l.sent = true, nil
	l.mu.Unlock()
	l.in.Write(b) //nolint:errcheck // without a reader it is lost
}

func (l *link) said(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	if l.errs == nil {
		l.errs = l.a.newPrinter(nil, 2)
	}
	l.errs.put(b)
}

func (l *link) over(end shellEnd) {
	l.mu.Lock()
	l.shell = nil
	via := l.via
	again := !l.dead && !l.shut && !l.done && !end.answered
	switch {
	case again && via != nil:
		l.mu.Unlock()
		l.a.notFrom(via, l.host, end.how)
		l.startHere()
	case again && end.passing && l.tries < len(startPauses):
		pause := startPauses[l.tries]
		l.tries++
		l.trouble = end.how
		l.a.say(fmt.Sprintf("host %s: %s; trying again in %v (attempt %d of %d)", l.host, end.how,
			pause, l.tries+1, len(startPauses)+1))
		l.again = time.AfterFunc(pause, l.startHere)
		l.mu.Unlock()
	default:
		how := end.how
		if l.tries > 0 && !end.answered {
			how += fmt.Sprintf(" (after %d attempts)", l.tries+1)
		}
		l.mu.Unlock()
		l.finish(how)
	}
}

// fromBelow handles a host's report about a shell that its agent has started.
func (h *remoteHost) fromBelow(m *control.Branch) {
	h.belowMu.Lock()
	l := h.below[m.Host]
	if l != nil && m.End != nil {
		delete(h.below, m.Host)
	}
	h.belowMu.Unlock()
	switch {
	case l == nil:
	case m.Began:
		l.began()
	case m.Text != nil:
		l.heard(m.Text)
	case m.Said != nil:
		l.said(m.Said)
	case m.Taken != 0:
		l.passed(m.Taken)
	case m.End != nil:
		l.over(shellEnd{how: m.End.How, passing: m.End.Passing, answered: m.End.Answered})
	}
}

// loseBelow ends the links through a host whose agent has gone.
func (h *remoteHost) loseBelow() {
	h.belowMu.Lock()
	list := h.below
	h.below, h.belowOver = nil, true
	h.belowMu.Unlock()
	for _, l := range list {
		l.finish(fmt.Sprintf("it was started through host %s, whose agent has gone", h.name))
	}
}

// holds names a host whose agent is reached through this one's; empty: there is none.
func (h *remoteHost) holds() string {
	h.belowMu.Lock()
	defer h.belowMu.Unlock()
	for _, l := range h.below {
		return l.host
	}
	return ""
}
