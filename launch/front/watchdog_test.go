package front

import (
	"strings"
	"testing"
	"time"
)

func TestWatchdog(t *testing.T) {
	begin := time.Now()
	w := watchdog{limit: 800 * time.Millisecond}
	at := func(ms int) (ask, hangs bool) { return w.look(begin.Add(time.Duration(ms) * time.Millisecond)) }
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

func TestWatchLimit(t *testing.T) {
	for text, want := range map[string]time.Duration{"": agentLimit, "0": 0, "250": 250 * time.Millisecond} {
		if got, err := watchLimit(func(string) string { return text }); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := watchLimit(func(string) string { return "soon" }); err == nil || !strings.Contains(err.Error(), "SPX_AGENT_LIMIT=soon") {
		t.Errorf("%v", err)
	}
}
