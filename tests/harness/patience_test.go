package harness

import (
	"testing"
	"time"
)

// A limit is as long as it says on a quiet machine, and never shorter; a busy one has four times as long at most.
func TestPatience(t *testing.T) {
	for _, limit := range []time.Duration{time.Millisecond, 20 * time.Second, 10 * time.Minute} {
		if got := Patience(limit); got < limit || got > max(limit, min(4*limit, 5*time.Minute)) {
			t.Errorf("%v for a limit of %v", got, limit)
		}
	}
	select {
	case <-After(time.Millisecond):
	case <-time.After(time.Minute):
		t.Error("a limit of 1 ms did not end within a minute")
	}
	o := Start(t, Command{Args: []string{"sleep", "1000"}, Limit: 10 * time.Millisecond})
	if !o.Late {
		t.Errorf("a command is to be ended at its limit: %+v", o)
	}
}
