// Package fabric runs programs whose messages go over libfabric, over its providers that need no
// hardware. Skipped where libfabric or the provider is missing.
package fabric

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// providers are those that run on any machine. (shm leaves files behind when a process is killed,
// and is refused.)
var providers = []string{"tcp", "udp"}

func program(t testing.TB, name string) string {
	t.Helper()
	return harness.Compile(t, "fabric/"+name,
		[]string{filepath.Join(harness.Root(), "tests/fabric/programs", name+".c")})
}

// need skips the test where the provider is not there.
func need(t *testing.T, provider string) {
	t.Helper()
	if out, err := exec.Command("fi_info", "-p", provider, "-t", "FI_EP_RDM", "-c", "FI_MSG").
		CombinedOutput(); err != nil {
		t.Skipf("fi_info finds no provider %s: %v %s", provider, err, out)
	}
	if _, err := os.Stat("/usr/include/rdma/fabric.h"); err != nil {
		t.Skip("libspx was built without libfabric-dev")
	}
}

// run runs n ranks of a program; env are further settings of spxrun and the ranks.
func run(t *testing.T, env []string, words ...string) harness.Outcome {
	t.Helper()
	args := append([]string{filepath.Join(harness.Build(t), "bin/spxrun")}, words...)
	return harness.Run(t, harness.Command{Args: args, Env: env, Limit: 3 * time.Minute})
}

func over(provider string, transports string) []string {
	return []string{"SPX_TRANSPORTS=" + transports, "SPX_FABRIC_PROVIDER=" + provider}
}

// check: exit status 0 and that output, and nothing on standard error but what is given.
func check(t *testing.T, o harness.Outcome, want string, stderr ...string) {
	t.Helper()
	if o.Late || o.Status != 0 || strings.TrimSpace(o.Stdout) != want {
		t.Errorf("exit status %d, want 0 and %q\n%s", o.Status, want, o.Text())
	}
	if len(stderr) == 0 && o.Stderr != "" {
		t.Errorf("standard error has\n%s", o.Stderr)
	}
	texts(t, o, stderr...)
}

func texts(t *testing.T, o harness.Outcome, stderr ...string) {
	t.Helper()
	for _, text := range stderr {
		if !strings.Contains(o.Stderr, text) {
			t.Errorf("standard error lacks %q\n%s", text, o.Text())
		}
	}
}

// Contents and order of messages of all kinds; all pairs have come to the fabric.
func TestTraffic(t *testing.T) {
	traffic := program(t, "traffic")
	for _, c := range []struct {
		transports string
		n          int
	}{{"fabric", 2}, {"fabric,tcp", 3}, {"fabric", 8}} {
		for _, p := range providers {
			t.Run(fmt.Sprintf("%s,%s,n=%d", p, c.transports, c.n), func(t *testing.T) {
				need(t, p)
				o := run(t, over(p, c.transports), "-n", fmt.Sprint(c.n), traffic)
				check(t, o, fmt.Sprintf("pairs: %d, messages: many, refused: 0", c.n-1))
			})
		}
	}
	t.Run("counters at their end", func(t *testing.T) {
		need(t, "tcp")
		o := run(t, append(over("tcp", "fabric"), "SPX_WRAP=1"), "-n", "3", traffic)
		check(t, o, "pairs: 2, messages: many, refused: 0")
	})
	t.Run("few connections", func(t *testing.T) { // they are closed and made again, with the fabric
		need(t, "tcp")
		o := run(t, append(over("tcp", "fabric"), "SPX_CONNECTIONS_MAX=4"), "-n", "5", traffic)
		var pairs int // late acknowledgements of connections that have ended are refused
		if n, _ := fmt.Sscanf(o.Stdout, "pairs: %d, messages: many", &pairs); n != 1 || o.Late || o.Status != 0 || pairs < 10 {
			t.Errorf("exit status %d, %d pairs, want 0 and more than there are processes\n%s", o.Status, pairs, o.Text())
		}
	})
	t.Run("threads of the library", func(t *testing.T) {
		need(t, "tcp")
		o := run(t, append(over("tcp", "fabric"), "SPX_PROGRESS=1"), "-n", "3", traffic)
		check(t, o, "pairs: 2, messages: many, refused: 0")
	})
	// Processes of one host share memory where shm is allowed.
	t.Run("shm", func(t *testing.T) {
		o := run(t, over("tcp", "shm,fabric,tcp"), "-n", "2", traffic)
		check(t, o, "pairs: 0, messages: few, refused: 0")
	})
}

// What was sent arrives while its sender computes.
func TestComputes(t *testing.T) {
	for _, p := range providers {
		t.Run(p, func(t *testing.T) {
			need(t, p)
			o := run(t, over(p, "fabric"), "-n", "2", program(t, "computes"))
			check(t, o, "all came while it computed, pairs: 1")
		})
	}
}

// A rank is killed, and the rest goes on over the fabric; nothing of it is left.
func TestDies(t *testing.T) {
	die := program(t, "die")
	for _, p := range providers {
		t.Run(p, func(t *testing.T) {
			need(t, p)
			for range 3 {
				mark := harness.Mark(t)
				before, _ := os.ReadDir("/dev/shm")
				o := run(t, append(over(p, "fabric"), mark), "--with-ft", "-n", "5", die)
				check(t, o, "4 left, pairs: fabric", "was killed by signal 9")
				harness.NothingLeft(t, mark, 10*time.Second)
				if after, _ := os.ReadDir("/dev/shm"); len(after) > len(before) {
					t.Errorf("%d files in /dev/shm, %d before", len(after), len(before))
				}
			}
		})
	}
}

// The fabric of a pair fails, and its processes live: the job ends, with a text about it.
func TestCut(t *testing.T) {
	need(t, "tcp")
	o := run(t, over("tcp", "fabric"), "-n", "2", program(t, "cut"))
	if o.Late || o.Status == 0 {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
	texts(t, o, "has broken", "although both run")
	// Either end may be the first to notice, and the job ends then: the fabric, or that the other end has closed the connection since.
	if !strings.Contains(o.Stderr, "the fabric has failed (tcp;ofi_rxm, domain") && !strings.Contains(o.Stderr, "the fabric may have failed at the other end") {
		t.Errorf("standard error does not name the fabric\n%s", o.Text())
	}
}

// Where there is no fabric, TCP is used if that is allowed, which is printed once; else the job ends.
func TestBadSettings(t *testing.T) {
	need(t, "tcp")
	traffic := program(t, "traffic")
	hidden := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(hidden, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		env        []string
	}{
		{"provider", "SPX_FABRIC_PROVIDER=quantum: libfabric offers", []string{"SPX_FABRIC_PROVIDER=quantum"}},
		{"domain", "SPX_FABRIC_DOMAIN=ib7: there are", []string{"SPX_FABRIC_DOMAIN=ib7"}},
		{"shm", "it leaves files in /dev/shm", []string{"SPX_FABRIC_PROVIDER=shm"}},
		{"tls", "SPX_TLS=1 wants all encrypted", []string{"SPX_TLS=1"}},
		{"relays", "messages go through other processes", []string{"SPX_CONNECTIONS=topology:0", "SPX_TOPOLOGY=groups:2"}},
		{"library", "libfabric cannot be loaded", nil},
	} {
		for _, transports := range []string{"fabric,tcp", "fabric"} {
			t.Run(c.name+","+transports, func(t *testing.T) {
				words := []string{"-n", "2", traffic}
				if c.name == "library" {
					words = []string{"-n", "2", "unshare", "-m", "sh", "-c", withoutLibrary(t, hidden) + " exec " + traffic}
				}
				o := run(t, append(c.env, "SPX_TRANSPORTS="+transports), words...)
				if transports == "fabric,tcp" {
					check(t, o, "pairs: 0, messages: few, refused: 0", c.text, "and TCP is used", "there is no fabric, either")
					return
				}
				if o.Late || o.Status == 0 {
					t.Errorf("exit status %d\n%s", o.Status, o.Text())
				}
				texts(t, o, c.text, "MPI_Init failed")
			})
		}
	}
	t.Run("word", func(t *testing.T) {
		o := run(t, []string{"SPX_TRANSPORTS=fabrics"}, "-n", "2", traffic)
		texts(t, o, "there are shm, tcp and fabric, not fabrics")
	})
}

// withoutLibrary hides libfabric from what a shell in a mount namespace of its own runs next.
func withoutLibrary(t *testing.T, empty string) string {
	t.Helper()
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("unshare: %v %s", err, out)
	}
	list, err := filepath.Glob("/usr/lib/*-linux-gnu/libfabric.so.1")
	if err != nil || len(list) == 0 {
		t.Skip("libfabric lies in another folder")
	}
	return "mount --bind " + empty + " " + list[0] + ";"
}

// Processes with different providers: their messages go over TCP where that is allowed.
func TestDiffer(t *testing.T) {
	need(t, "tcp")
	need(t, "udp")
	traffic := program(t, "traffic")
	line := func(provider string) []string {
		return []string{"-n", "1", "env", "SPX_FABRIC_PROVIDER=" + provider, traffic}
	}
	words := append(append(line("tcp"), ":"), line("udp")...)
	o := run(t, []string{"SPX_TRANSPORTS=fabric,tcp"}, words...)
	check(t, o, "pairs: 0, messages: few, refused: 0", "no fabric between", "tcp;ofi_rxm", "udp;ofi_rxd", "TCP is used")
	o = run(t, []string{"SPX_TRANSPORTS=fabric"}, words...)
	if o.Late || o.Status == 0 {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
	texts(t, o, "no fabric between", "does not have tcp")
}

// Programs of tests/c, as they are.
func TestPrograms(t *testing.T) {
	need(t, "tcp")
	for _, name := range []string{"pt2pt/requests", "pt2pt/many_modes", "coll/every", "rma/basics", "part/exchange",
		"mcast/ordered", "comm/create"} {
		t.Run(name, func(t *testing.T) {
			source := filepath.Join(harness.Root(), "tests/c", name+".c")
			lines, err := harness.ReadRunLines(source)
			if err != nil {
				t.Fatal(err)
			}
			p := harness.Compile(t, "c/"+name, []string{source}, lines[0].CFlags...)
			words := append(append([]string{}, lines[0].Spxrun...), "-n", fmt.Sprint(slices.Max(lines[0].Ranks)), p)
			o := run(t, append(over("tcp", "fabric"), lines[0].Env...), append(words, lines[0].Args...)...)
			if why := lines[0].Check(o); why != "" {
				t.Errorf("%s\n%s", why, o.Text())
			}
		})
	}
}
