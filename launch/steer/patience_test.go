package steer

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// What an agent that has not answered does, 50 ms after 50 ms, and when it is waited for no longer.
func TestPatience(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		does  func(i int) sight // in 50 ms
		still time.Duration
		over  time.Duration // 0: not within a minute
		words int           // within a minute
		why   string
	}{
		{"it does nothing", func(int) sight { return sight{} }, stillLimit, stillLimit, 0,
			"does nothing"},
		{"it is stopped, and wants a processor",
			func(int) sight { return sight{kept: 50 * ms, stopped: true} }, stillLimit, stillLimit,
			0, "SIGCONT"},
		{"it waits for a processor", func(int) sight { return sight{kept: 50 * ms} }, stillLimit, 0,
			4, "busy"},
		{"it works", func(int) sight { return sight{used: 50 * ms} }, stillLimit, 0, 4, "busy"},
		{"it works on two processors", func(int) sight { return sight{used: 100 * ms} }, stillLimit,
			0, 4, "busy"},
		{"half of the time nothing",
			func(i int) sight { return sight{used: time.Duration(i%2) * 50 * ms} }, stillLimit,
			2 * stillLimit, 1, ""},
		{"another host is asked", func(int) sight { return sight{host: "far"} }, stillLimit,
			fetchLimit, 2, "host far"},
	} {
		p := &patience{still: c.still}
		words, at := 0, time.Duration(0)
		for i := range int(time.Minute / (50 * ms)) {
			s := c.does(i)
			s.passed = 50 * ms
			over, speak := p.look(s)
			if speak {
				words++
			}
			if over {
				at = p.all
				break
			}
		}
		if at < c.over-100*ms || at > c.over+100*ms || words != c.words ||
			!strings.Contains(p.why(), c.why) {
			t.Errorf("%s: it is given up after %v (%v), the user is told %d times (%d), at last %q",
				c.name, at, c.over, words, c.words, p.why())
		}
	}
	p := &patience{still: stillLimit}
	for n := 0; ; n++ {
		if over, _ := p.look(sight{passed: time.Second, used: time.Second}); over {
			break
		}
		if n > 1000 {
			t.Fatal("an agent that is busy for ever is waited for as long")
		}
	}
	if err := error(&lateAnswer{job: 1, pid: 2}); !errors.Is(err, ErrLate) {
		t.Errorf("%v is not ErrLate", err)
	}
}
