package agent

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// echo is the user of a shell that is cat: what comes back stands for an agent.
type echo struct {
	running, most *atomic.Int32 // shells that have begun and brought nothing yet
	is            chan string
	came          bool
}

func (e *echo) began() {
	if n := e.running.Add(1); n > e.most.Load() {
		e.most.Store(n)
	}
	e.is <- "begun"
}

func (e *echo) heard([]byte) {
	if !e.came {
		e.came = true
		e.running.Add(-1)
	}
}

func (e *echo) said([]byte) {}

func (e *echo) passed(int) {}

func (e *echo) over(end shellEnd) { e.is <- fmt.Sprintf("over, answered: %v", end.answered) }

// next waits for what happens to some shell.
func next(t *testing.T, is <-chan string) string {
	t.Helper()
	select {
	case text := <-is:
		return text
	case <-time.After(20 * time.Second):
		t.Fatal("nothing happens")
		return ""
	}
}

// Of more remote shells than may begin at once, the others wait until one has brought its agent, or
// is ended; one that waits can be ended, too.
func TestShellsAtOnce(t *testing.T) {
	var pool shells
	var running, most atomic.Int32
	is := make(chan string, 10*shellsAtOnce)
	var list []*shell
	for range shellsAtOnce + 3 {
		s := newShell("h", []string{"cat"}, &echo{running: &running, most: &most, is: is})
		list = append(list, s)
		go s.run(&pool)
	}
	t.Cleanup(func() {
		for _, s := range list {
			s.kill()
		}
	})
	for range shellsAtOnce {
		if text := next(t, is); text != "begun" {
			t.Fatalf("%s", text)
		}
	}
	select {
	case text := <-is:
		t.Errorf("beyond %d shells: %s", shellsAtOnce, text)
	case <-time.After(50 * time.Millisecond): // a bound on what must not happen
	}
	first, waits := (*shell)(nil), (*shell)(nil)
	for _, s := range list {
		s.mu.Lock()
		if s.pid > 0 {
			first = s
		} else {
			waits = s
		}
		s.mu.Unlock()
	}
	waits.kill()
	if text := next(t, is); text != "over, answered: false" {
		t.Errorf("ended while it waits: %s", text)
	}
	first.put([]byte("an agent"))
	if text := next(t, is); text != "begun" {
		t.Errorf("after one has answered: %s", text)
	}
	first.close()
	if text := next(t, is); text != "over, answered: true" {
		t.Errorf("the one that has answered: %s", text)
	}
	if n := most.Load(); n != shellsAtOnce {
		t.Errorf("at most %d shells had begun at once, want %d", n, shellsAtOnce)
	}
}
