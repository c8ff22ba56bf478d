package hosts

import (
	"testing"

	"libspx/tests/harness"
)

// Long messages over several streams, and where the processes have SPX_STREAMS differently: the sender's number counts, unless the receiver has 1.
func TestStreams(t *testing.T) {
	b, streams := newBed(t, 2), program(t, "streams")
	for _, c := range []struct{ name, first, second, made string }{
		{"preset", "", "", "0"},
		{"four", "SPX_STREAMS=4", "SPX_STREAMS=4", "3"},
		{"differ", "SPX_STREAMS=3", "SPX_STREAMS=2", "2"},
		{"receiver", "SPX_STREAMS=4", "SPX_STREAMS=1", "0"},
		{"tls", "SPX_STREAMS=4 SPX_TLS=1", "SPX_STREAMS=4 SPX_TLS=1", "0"},
		{"connections", "SPX_STREAMS=4 SPX_CONNECTIONS_MAX=2", "SPX_STREAMS=4", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := `exec env ` + c.first + ` ` + streams + ` 20 4000000`
			other := `exec env ` + c.second + ` ` + streams + ` 20 4000000`
			o := harness.Run(t, b.spxrun("-host", b.list(1, 1), "-n", "1", "sh", "-c", line, ":", "-n", "1", "sh", "-c", other))
			check(t, o, 0, []string{"further streams: " + c.made})
		})
	}
}
