package agent

import (
	"testing"
	"time"
)

// Masters of a few hosts beat as usual, whatever silence is allowed; those of many more slowly
// where that is, but never so that their decisions come too late.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		hosts   int
		silence time.Duration
		want    int64
	}{
		{1, time.Hour, 1}, {6, 20 * time.Second, 1}, {112, beatLimit, 1}, {112, beatLimit / 2, 1},
		{0, 0, 1},
		{48, 20 * time.Second, 3}, {112, 2 * beatLimit, 2}, {4096, time.Hour, slowestPace},
	} {
		if got := paceOf(c.hosts, c.silence); got != c.want {
			t.Errorf("%d hosts, silence of %v: %d, want %d", c.hosts, c.silence, got, c.want)
		}
	}
}
