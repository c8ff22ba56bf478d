package systems

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// I/O processes die. What was on its way to one and not acknowledged goes to another one, or to the one that is started in its place; when none is left a send says so,
// and receives end. Nothing is lost that was acknowledged, or twice.
func TestIOPDies(t *testing.T) {
	gone := program(t, "gone")
	for name, c := range map[string]struct {
		policy   string
		iops     int
		sent     int
		complete bool
	}{
		"started again":   {"restart", 1, 300, true},
		"another is left": {"degrade", 2, 300, true},
		"all gone":        {"degrade", 1, 300, false},
	} {
		for _, transport := range []string{"all", "tcp"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				text := fmt.Sprintf("[failure]\niop = %q\n", c.policy) + link(fmt.Sprintf("program = %q\nargs = [\"send\", \"%d\"]\nranks = 1", gone, c.sent),
					fmt.Sprintf("program = %q\nargs = [\"receive\"]\nranks = 1", gone),
					fmt.Sprintf("iops = %d\nprogram = %q\nargs = [\"iop\", %q, %q]", c.iops, gone, filepath.Join(t.TempDir(), "mark"), filepath.Join(harness.Build(t), "bin/spx-iop")))
				var env []string
				if transport == "tcp" {
					env = []string{"-x", "SPX_TRANSPORTS=tcp"}
				}
				o := file(t, text, env...)
				want := []string{fmt.Sprintf("sent %d\n", c.sent), fmt.Sprintf("received %d, the last is %d\n", c.sent, c.sent-1)}
				if !c.complete {
					want = []string{"0: MPIX_ERR_PROC_FAILED", "sent 0\n", "received 0, the last is -1\n"}
				}
				for _, line := range want {
					if !strings.Contains(o.Stdout, line) {
						t.Errorf("no line %q", line)
					}
				}
				if c.complete == strings.Contains(o.Stdout, "PROC_FAILED") || o.Status != 0 {
					t.Errorf("exit status %d\n%s", o.Status, o.Text())
				}
			})
		}
	}
}

// A receiver takes nothing: the relay holds what its queue may, the sender waits, and memory stays bounded. Then it takes all: nothing is missing.
func TestFullQueue(t *testing.T) {
	full := program(t, "full")
	for name, c := range map[string]struct{ count, bytes, most int }{
		"long":  {40, 1 << 20, 8},
		"short": {60000, 1000, 24000}, // also those that a sender may have on its way: SPX_CREDIT
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := fmt.Sprintf("[%%q, %q, \"%d\", \"%d\"]\nranks = 1", dir, c.count, c.bytes)
			o := file(t, link(fmt.Sprintf("program = %q\nargs = "+args, full, "send"), fmt.Sprintf("program = %q\nargs = "+args, full, "receive"), "args = [\"--queue\", \"4M\", \"--verbose\"]"))
			stuck := regexp.MustCompile(`stuck after (\d+)`).FindStringSubmatch(o.Stdout)
			held := regexp.MustCompile(`at most (\d+) bytes were held, and (\d+) KiB resident`).FindStringSubmatch(o.Stderr)
			if o.Status != 0 || stuck == nil || held == nil || !strings.Contains(o.Stdout, fmt.Sprintf("received %d\n", c.count)) {
				t.Fatalf("exit status %d\n%s", o.Status, o.Text())
			}
			t.Log(stuck[0], held[0])
			if n, _ := strconv.Atoi(stuck[1]); n > c.most {
				t.Errorf("%d messages were taken of a sender whose receiver takes none", n)
			}
			if n, _ := strconv.Atoi(held[1]); n > 4<<20+64<<10 {
				t.Errorf("%d bytes were held; 4 MiB are allowed, and 64 KiB of a message", n)
			}
			if n, _ := strconv.Atoi(held[2]); n > 40<<10 {
				t.Errorf("the relay had %d KiB of memory", n)
			}
		})
	}
}

// Three clusters on three hosts, and their I/O processes on two others: no cluster reaches another one but through those. One dies: all are told, long
// before a silence would show it (on processors with nothing else to do within a second).
func TestDeathAcrossNetworks(t *testing.T) {
	const silence = 20000 // ms
	hosts := newHosts(t, 5)
	script, host, run := hosts.script, func(i int) string { return hosts.name(i - 1) }, hosts.run
	for _, a := range []int{1, 3, 5} { // a, b and c; 2 and 4 are between them
		for b := 1; b <= 5; b++ {
			if b != a && b != a-1 && b != a+1 {
				run("ip", "-n", host(a), "route", "add", "unreachable", fmt.Sprintf("10.77.0.%d/32", b))
			}
		}
	}
	run("ip", "-n", host(4), "route", "add", "unreachable", "10.77.0.1/32")
	chain := program(t, "chain")
	text := "[failure]\nprocess = \"stop\"\ncluster = \"degrade\"\niop = \"degrade\"\n"
	for i, c := range []string{"first", "middle", "last"} {
		text += fmt.Sprintf("[[cluster]]\nname = %q\nprogram = %q\nargs = [%[1]q]\nranks = 2\nhosts = [\"%[3]s:2\"]\n", c, chain, host(2*i+1))
	}
	text += fmt.Sprintf("[[link]]\nfrom = \"first\"\nto = \"middle\"\nhosts = [%q]\n[[link]]\nfrom = \"middle\"\nto = \"last\"\nhosts = [%q]\n", host(2), host(4))
	file := filepath.Join(t.TempDir(), "system.toml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	o := harness.Run(t, harness.Command{Args: []string{script, "on", host(2), filepath.Join(harness.Build(t), "bin/spxrun"), "--timeout", harness.Seconds(30 * time.Second), "--rsh", script + " rsh", "--system", file},
		Env: []string{"SPX_SPIN=0", fmt.Sprintf("SPX_HEARTBEAT_LIMIT=%d", silence)}, Limit: 40 * time.Second})
	at := map[string][]int64{}
	for line := range strings.Lines(o.Stdout) {
		var who string
		var ms int64
		if _, err := fmt.Sscan(line, &who, &ms); err == nil {
			at[who] = append(at[who], ms)
		}
	}
	if len(at["first"]) != 1 || len(at["middle"]) != 2 || len(at["last"]) != 2 {
		t.Fatalf("exit status %d\n%s", o.Status, o.Text())
	}
	for _, who := range []string{"middle", "last"} {
		for _, ms := range at[who] {
			if took := ms - at["first"][0]; took > silence/4 {
				t.Errorf("cluster %s knew after %d ms", who, took)
			} else {
				t.Logf("cluster %s knew after %d ms", who, took)
			}
		}
	}
}
