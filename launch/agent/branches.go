package agent

import (
	"sync"
	"time"

	"libspx/launch/control"
)

// In a job of many hosts the agent of spxrun's host does not start all others itself: some are
// started by agents that it has started (hosts.Starters). Such an agent knows no more of those
// below it than the shells that bring them: their bytes it passes on both ways, and does not look
// at them. When it goes, so do the shells, and the agents behind these learn that their superior is
// gone.

// branches are the shells of an agent that decides nothing.
type branches struct {
	lost chan struct{} // closed when there is no superior any more

	mu   sync.Mutex
	list map[int]*branch // guarded by mu, by host
}

// branch is the user of such a shell.
type branch struct {
	up    *uplink
	host  int
	shell *shell
	// bytes of which the link does not know yet; by the goroutine that feeds the shell alone
	taken int
	ended chan struct{}
}

func (b *branch) send(m *control.Branch) {
	m.Host = b.host
	b.up.conn.Send(&control.Message{Branch: m}) //nolint:errcheck // if it is gone, its end says so
}

func (b *branch) began()         { b.send(&control.Branch{Began: true}) }
func (b *branch) heard(t []byte) { b.send(&control.Branch{Text: t}) }
func (b *branch) said(t []byte)  { b.send(&control.Branch{Said: t}) }

// passed tells the link from time to time how much of what it has sent has been taken.
func (b *branch) passed(n int) {
	if b.taken += n; b.taken >= mostUnder/4 {
		b.send(&control.Branch{Taken: b.taken})
		b.taken = 0
	}
}

func (b *branch) over(end shellEnd) {
	b.send(&control.Branch{End: &control.BranchEnd{How: end.how, Passing: end.passing,
		Answered: end.answered}})
	close(b.ended)
}

// hearBranch does what the agent above wants of a shell. It does not wait: the next message may be
// for another one.
func (a *agent) hearBranch(m *control.Branch) {
	t := &a.branches
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.list[m.Host]
	switch {
	case len(m.Words) > 0 && b == nil:
		b = &branch{up: a.up, host: m.Host, ended: make(chan struct{})}
		b.shell = newShell(m.Name, m.Words, b)
		if t.list == nil {
			t.list = map[int]*branch{}
		}
		t.list[m.Host] = b
		go b.shell.run(&a.shells)
	case b == nil:
	case m.Text != nil:
		b.shell.put(m.Text)
	case m.Close:
		b.shell.close()
	case m.Kill:
		b.shell.kill()
	}
}

// endBranches waits until the agents below have sent all, or have learned that there is no superior
// any more.
func (a *agent) endBranches() {
	a.inbox.widen()
	t := &a.branches
	t.mu.Lock()
	list := t.list
	t.mu.Unlock()
	limit, lost := time.After(dismissLimit), t.lost
	if a.fenced || a.above.hurried || a.succession.era > a.spec.Era {
		lost = closedChannel
	}
	for _, b := range list {
		select {
		case <-b.ended:
			continue
		case <-lost:
		case <-limit:
		}
		for _, b := range list {
			b.shell.close()
		}
		if a.fenced { // they may not be reached any more either
			limit = time.After(fencedLimit)
		} else {
			limit = time.After(hangUpLimit)
		}
		for _, b := range list {
			select {
			case <-b.ended:
			case <-limit:
				limit = closedTime
			}
			b.shell.kill()
		}
		return
	}
}

// hangUpLimit is how long agents below have to end their processes when there is no superior any
// more, before their shells are ended.
const hangUpLimit = 2 * time.Second

// Channels that are ready for ever.
var (
	closedChannel = make(chan struct{})
	closedTime    = make(chan time.Time)
)

func init() {
	close(closedChannel)
	close(closedTime)
}
