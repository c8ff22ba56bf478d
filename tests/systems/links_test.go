package systems

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// link is a system file of two clusters and a link between them.
func link(sender, receiver, options string) string {
	return fmt.Sprintf("[[cluster]]\nname = \"a\"\n%s\n[[cluster]]\nname = \"b\"\n%s\n[[link]]\nfrom = \"a\"\nto = \"b\"\n%s\n", sender, receiver, options)
}

// Messages of up to 40 MB go through relays that hold one MiB: their order by sender and their content stay, and the relays' memory is bounded.
func TestLongMessages(t *testing.T) {
	long := program(t, "long")
	for name, c := range map[string]struct {
		options string
		env     []string
	}{
		"shared memory": {"", nil},
		"tcp":           {"", []string{"-x", "SPX_TRANSPORTS=tcp"}},
		"got":           {"", []string{"-x", "SPX_STREAM_MAX=0"}},
		"two":           {"iops = 2\nchoice = \"key\"", nil},
		"kept":          {"", nil},
		"kept, tcp":     {"", []string{"-x", "SPX_TRANSPORTS=tcp"}},
	} {
		t.Run(name, func(t *testing.T) {
			system := ""
			if strings.HasPrefix(name, "kept") {
				system = "[system]\nmessages = \"kept\"\n"
			}
			o := file(t, system+link(fmt.Sprintf("program = %q\nargs = [\"send\"]\nranks = 2", long), fmt.Sprintf("program = %q\nargs = [\"receive\", \"2\"]\nranks = 1", long),
				"args = [\"--queue\", \"1M\", \"--verbose\"]\n"+c.options), c.env...)
			if o.Status != 0 {
				t.Fatalf("exit status %d\n%s", o.Status, o.Text())
			}
			said := regexp.MustCompile(`at most (\d+) bytes were held, and (\d+) KiB resident`).FindAllStringSubmatch(o.Stderr, -1)
			if want := 1 + strings.Count(c.options, "2"); len(said) != want {
				t.Fatalf("%d relays have told what they held, of %d\n%s", len(said), want, o.Text())
			}
			for _, s := range said {
				held, _ := strconv.Atoi(s[1])
				resident, _ := strconv.Atoi(s[2])
				t.Log(s[0])
				if held > 1<<20+64<<10 || resident > 36<<10 {
					t.Errorf("%s; it may hold 1 MiB, and 64 KiB of one message", s[0])
				}
			}
		})
	}
}

// Receives and probes that are pending when the last I/O process leaves, or dies, end as from MPI_PROC_NULL.
func TestPendingReceives(t *testing.T) {
	pending := program(t, "pending")
	for _, transport := range []string{"all", "tcp"} {
		env := []string{"-x", "SPX_TRANSPORTS=tcp"}
		if transport == "all" {
			env = nil
		}
		t.Run(transport+"/leaves", func(t *testing.T) {
			o := file(t, link(fmt.Sprintf("program = %q\nargs = [\"one\"]\nranks = 1", pending), fmt.Sprintf("program = %q\nargs = [\"wait\"]\nranks = 1", pending), "iops = 2"), env...)
			if o.Status != 0 || o.Stdout != "all ended\n" {
				t.Errorf("exit status %d\n%s", o.Status, o.Text())
			}
		})
		t.Run(transport+"/dies", func(t *testing.T) {
			o := file(t, "[failure]\niop = \"degrade\"\n"+link(fmt.Sprintf("program = %q\nranks = 1", program(t, "dying")), fmt.Sprintf("program = %q\nargs = [\"wait\", \"none\"]\nranks = 1", pending),
				fmt.Sprintf("iops = 2\nprogram = %q\nargs = [\"kill\"]", program(t, "dying"))), env...)
			if o.Status != 0 || o.Stdout != "all ended\n" {
				t.Errorf("exit status %d\n%s", o.Status, o.Text())
			}
		})
	}
}

// A long message whose sender dies while it is on its way was never sent: its receiver gets the next one.
func TestAbortedMessage(t *testing.T) {
	aborted := program(t, "aborted")
	for _, transport := range []string{"all", "tcp", "tcp, kept"} {
		for _, how := range []string{"posted", "found"} {
			t.Run(transport+"/"+how, func(t *testing.T) {
				var env []string
				if transport != "all" {
					env = []string{"-x", "SPX_TRANSPORTS=tcp"}
				}
				system, kept := "", ""
				if strings.HasSuffix(transport, "kept") {
					system, kept = "[system]\nmessages = \"kept\"\n", `, "kept"`
				}
				dir := t.TempDir()
				o := file(t, system+"[failure]\nprocess = \"degrade\"\n"+link(fmt.Sprintf("program = %q\nargs = [\"send\", %q]\nranks = 2", aborted, dir),
					fmt.Sprintf("program = %q\nargs = [\"receive\", %q, %q%s]\nranks = 1", aborted, dir, how, kept), "args = [\"--queue\", \"1M\"]"), env...)
				if o.Stdout != "short\n" || strings.Contains(o.Text(), "check") {
					t.Errorf("exit status %d\n%s", o.Status, o.Text())
				}
			})
		}
	}
}

// A policy of the user's own: a function in a shared object, which takes the last I/O process that is ready for even tags, and the first for odd ones. Messages of apart have an odd tag.
func TestOwnPolicy(t *testing.T) {
	dir := t.TempDir()
	source, object := filepath.Join(dir, "own.c"), filepath.Join(dir, "own.so")
	if err := os.WriteFile(source, []byte("int mpisp_choose(int n, const int m[], const long long b[], int tag) { return m && b && tag % 2 ? 0 : n - 1; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", object, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	apart := program(t, "apart")
	o := file(t, link(fmt.Sprintf("program = %q\nargs = [\"send\", \"50\", \"0\"]\nranks = 2", apart), fmt.Sprintf("program = %q\nargs = [\"receive\"]\nranks = 2", apart),
		fmt.Sprintf("iops = 3\nargs = [\"--verbose\"]\nchoice = \"library\"\nlibrary = %q", object)), "-l")
	if o.Status != 0 || !strings.Contains(o.Stderr, "[a-b.iop0.0] spx-iop: 100 messages;") || strings.Count(o.Stderr, "spx-iop: 0 messages;") != 2 {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}

// One link with security = "tls" encrypts what goes over all connections of the system, and nobody takes part in it who does without.
func TestEncryptedLink(t *testing.T) {
	for name, c := range map[string]struct {
		b    string // environment of a cluster
		ends bool
	}{"all": {"", true}, "one does without": {"SPX_TLS = \"0\"", false}} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(`
[[cluster]]
name = "a"
program = %[1]q
args = ["2", "emit", "20"]
ranks = 2
[[cluster]]
name = "b"
program = %[1]q
args = ["2", "pass", "0"]
ranks = 2
environment = { %[2]s }
[[link]]
from = "a"
to = "b"
security = "tls"
[[link]]
from = "b"
to = "a"
`, program(t, "stage"), c.b)
			o := file(t, text, "-x", "SPX_TRANSPORTS=tcp", "-x", "SPX_COUNTERS=1")
			if c.ends && o.Status != 0 || !c.ends && (o.Status == 0 || !strings.Contains(o.Stderr, "must have the same SPX_CONNECTIONS, SPX_TOPOLOGY and SPX_TLS")) {
				t.Errorf("exit status %d\n%s", o.Status, o.Text())
			}
		})
	}
}
