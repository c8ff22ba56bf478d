package hosts

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"libspx/tests/harness"
)

// Long messages over several streams, and where the processes have SPX_STREAMS differently: the sender's number counts, unless the receiver has 1.
func TestStreams(t *testing.T) {
	b, streams := newBed(t, 2), program(t, "streams")
	for _, c := range []struct{ name, first, second, made string }{
		{"preset", "", "", "0"}, // hosts are near each other
		{"one", "SPX_STREAMS=1", "SPX_STREAMS=4", "0"},
		{"four", "SPX_STREAMS=4", "SPX_STREAMS=4", "3"},
		{"most", "SPX_STREAMS=16", "SPX_STREAMS=auto", "15"},
		{"differ", "SPX_STREAMS=3", "SPX_STREAMS=2", "2"},
		{"receiver", "SPX_STREAMS=4", "SPX_STREAMS=1", "0"},
		{"tls", "SPX_STREAMS=4 SPX_TLS=1", "SPX_STREAMS=4 SPX_TLS=1", "0"},
		{"connections", "SPX_STREAMS=4 SPX_CONNECTIONS_MAX=2", "SPX_STREAMS=4", "0"},
		{"topology", "SPX_STREAMS=4 SPX_CONNECTIONS=topology:0", "SPX_STREAMS=4 SPX_CONNECTIONS=topology:0", "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := `exec env ` + c.first + ` ` + streams + ` 20 4000000`
			other := `exec env ` + c.second + ` ` + streams + ` 20 4000000`
			o := harness.Run(t, b.spxrun("-host", b.list(1, 1), "-n", "1", "sh", "-c", line, ":", "-n", "1", "sh", "-c", other))
			check(t, o, 0, []string{"further streams: " + c.made})
		})
	}
	o := harness.Run(t, b.spxrun("-host", b.list(1, 1), "-x", "SPX_STREAMS=some", "-n", "2", streams))
	check(t, o, o.Status, nil, "SPX_STREAMS=some: the value is to be a number, or auto")
}

// A path of 20 ms on which a stream has a window of 64 KiB: that several are faster is found out, and they are made.
func TestStreamsByMeasurement(t *testing.T) {
	b := newLinked(t, []int{0, 1}, [][2]int{{0, 1}}, 1000, 10000)
	for h := 1; h <= 2; h++ {
		for _, of := range []string{"tcp_wmem", "tcp_rmem"} {
			if out, err := exec.Command("ip", "netns", "exec", b.host(h), "sysctl", "-qw", "net.ipv4."+of+"=4096 65536 131072").CombinedOutput(); err != nil {
				t.Skipf("%v\n%s", err, out)
			}
		}
	}
	streams := program(t, "streams")
	run := func(env, messages string) (made int) {
		o := harness.Run(t, b.spxrun("-host", b.list(1, 1), "-x", env, "-n", "2", streams, messages, "4000000"))
		check(t, o, 0, nil)
		if m := regexp.MustCompile(`further streams: (\d+)`).FindStringSubmatch(o.Stdout); m != nil {
			made, _ = strconv.Atoi(m[1])
		}
		t.Logf("%s: %d further streams, %s", env, made, o.Stderr)
		return made
	}
	if n := run("SPX_STREAMS=auto", "10"); n < 3 {
		t.Errorf("%d further streams, want 3 and more", n)
	}
	if n := run("SPX_STREAMS=1", "3"); n != 0 {
		t.Errorf("%d further streams, want none", n)
	}
}

// What ends, or is ended, while parts of messages are on further streams. 40 MB/s between the first two hosts, so that a message of 32 MiB is under way for a while.
func TestStreamsEnd(t *testing.T) {
	b, portions := newLinked(t, []int{0, 1, 0, 1}, [][2]int{{0, 1}}, 320, 500), program(t, "portions")
	for _, c := range []struct {
		how    string
		slots  []int
		env    string
		status int
		says   []string
	}{
		{"finalize", []int{1, 1}, "", 0, []string{"all there: 1"}},
		{"receiver", []int{1, 1}, "", 0, []string{"told: 1"}},
		{"sender", []int{1, 1}, "", 0, []string{"told: 1"}},
		{"revoked", []int{1, 1}, "", 0, []string{"revoked: 1"}},
		{"truncated", []int{1, 1}, "", 0, []string{"truncated: 1"}},
		{"evicted", []int{2, 2, 2, 2}, "SPX_CONNECTIONS_MAX=12", 0, []string{"all right: 1, over streams: 1"}},
		{"evicted", []int{2, 2, 2, 2}, "SPX_CONNECTIONS_MAX=4", 0, nil},
		{"evicted", []int{2, 2, 2, 2}, "SPX_CONNECTIONS=topology:2", 0, []string{"all right: 1, over streams: 1"}},
	} {
		t.Run(fmt.Sprint(c.how, c.env), func(t *testing.T) {
			n := 0
			for _, s := range c.slots {
				n += s
			}
			command := b.spxrun("-host", b.list(c.slots...), "-x", "SPX_STREAMS=4", "-n", strconv.Itoa(n), portions, c.how)
			if c.env != "" {
				command.Env = append(command.Env, c.env)
			}
			check(t, harness.Run(t, command), c.status, c.says)
		})
	}
}
