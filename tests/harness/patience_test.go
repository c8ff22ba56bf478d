package harness

import (
	"testing"
	"time"
)

// A limit is as long as it says on a quiet machine, and never shorter; a busy one has eight times as long at most.
func TestPatience(t *testing.T) {
	for _, limit := range []time.Duration{time.Millisecond, 20 * time.Second, 10 * time.Minute} {
		if got := Patience(limit); got < limit || got > max(limit, min(8*limit, 10*time.Minute)) {
			t.Errorf("%v for a limit of %v", got, limit)
		}
	}
	select {
	case <-After(time.Millisecond):
	case <-time.After(time.Minute):
		t.Error("a limit of 1 ms did not end within a minute")
	}
	called := make(chan struct{})
	AfterFunc(time.Millisecond, func() { close(called) })
	<-called
	if a := AfterFunc(time.Hour, func() { t.Error("it was stopped") }); !a.Stop() || a.Stop() {
		t.Error("Stop is true once, for what was not called")
	}
	o := Start(t, Command{Args: []string{"sleep", "1000"}, Limit: 10 * time.Millisecond})
	if !o.Late {
		t.Errorf("a command is to be ended at its limit: %+v", o)
	}
}
