package front

import (
	"strings"
	"testing"
	"time"
)

func TestWatchdog(t *testing.T) {
	begin := time.Now()
	w := watchdog{limit: 800 * time.Millisecond}
	at := func(ms int) (ask, hangs bool) {
		return w.look(
			begin.Add(time.Duration(ms)*time.Millisecond), 0)
	}
	want := func(ms int, ask, hangs bool) {
		t.Helper()
		if a, h := at(ms); a != ask || h != hangs {
			t.Errorf("at %d ms: ask %v, hangs %v", ms, a, h)
		}
	}
	want(0, true, false)
	w.answered(1)
	want(100, true, false)
	w.answered(1) // an old answer
	for ms := 200; ms < 900; ms += 100 {
		want(ms, false, false)
	}
	w.answered(2) // in the last moment
	want(900, true, false)
	// Spxrun is stopped for a minute, and finds no answer: the agent gets its time again.
	want(61_000, false, false)
	for ms := 61_100; ms < 61_800; ms += 100 {
		want(ms, false, false)
	}
	want(61_800, false, true)
}

// What counts is the time in which the agent could have answered: one that waits for a processor
// does not hang, nor does one whose spxrun does; but the wait for either is bounded.
func TestWatchdogOfBusyHosts(t *testing.T) {
	const limit, step = 800 * time.Millisecond, 100 * time.Millisecond
	for name, c := range map[string]struct {
		kept  time.Duration // of each step
		hangs time.Duration // after this time
	}{
		"has its processor":       {0, limit},
		"has it half of the time": {step / 2, 2 * limit},
		"has it seldom":           {step * 3 / 4, 4 * limit},
		"has none":                {step, 10 * limit},
		"more than there is":      {2 * step, 10 * limit},
	} {
		w, begin := watchdog{limit: limit}, time.Now()
		w.look(begin, c.kept)
		for at := step; ; at += step {
			_, hangs := w.look(begin.Add(at), c.kept)
			if hangs != (at >= c.hangs) {
				t.Fatalf("an agent that %s: given up after %v: %v, instead of after %v", name, at,
					hangs, c.hangs)
			}
			if hangs {
				break
			}
		}
		w.answered(w.asked)
		if ask, hangs := w.look(begin.Add(time.Hour), step); !ask || hangs {
			t.Errorf("an agent that %s, and answers: ask %v, hangs %v", name, ask, hangs)
		}
	}
}

func TestWatchLimit(t *testing.T) {
	for text, want := range map[string]time.Duration{"": agentLimit, "0": 0,
		"250": 250 * time.Millisecond} {
		if got, err := watchLimit(func(string) string { return text }); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := watchLimit(func(string) string { return "soon" }); err == nil ||
		!strings.Contains(err.Error(), "SPX_AGENT_LIMIT=soon") {
		t.Errorf("%v", err)
	}
}
