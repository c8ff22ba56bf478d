// Package debuggers lets real gdb start spxrun, read the table of processes that the MPIR interface asks for, and attach to ranks; and has
// spxrun start gdb.
package debuggers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

const limit = 90 * time.Second

func program(t *testing.T) string {
	t.Helper()
	return harness.Compile(t, "debuggers/work", []string{filepath.Join(harness.Root(), "tests/debuggers/testdata/work.c")}, "-O0")
}

func gdb(t *testing.T, script string, args ...string) harness.Outcome {
	t.Helper()
	file := filepath.Join(t.TempDir(), "commands")
	if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	return harness.Run(t, harness.Command{Args: append([]string{"gdb", "-q", "-nx", "-batch", "-x", file}, args...), Env: []string{"HOME=" + t.TempDir()}, Limit: limit})
}

// A tool starts spxrun, reads the table, attaches to rank 1 before it has come out of MPI_Init, be it still in the dynamic linker, changes a variable of it, and lets all go on.
func TestMPIR(t *testing.T) {
	harness.Need(t, "packaging", "gdb")
	work := program(t)
	script := `set pagination off
set confirm off
set breakpoint pending on
handle all nostop noprint pass
set detach-on-fork on
set schedule-multiple on
starti
set var MPIR_being_debugged = 1
break MPIR_Breakpoint
continue
printf "state %d size %d\n", MPIR_debug_state, MPIR_proctable_size
set $i = 0
while $i < MPIR_proctable_size
  printf "rank %d: %s %s %d\n", $i, MPIR_proctable[$i].host_name, MPIR_proctable[$i].executable_name, MPIR_proctable[$i].pid
  set $i = $i + 1
end
printf "starter %d partial %d\n", MPIR_i_am_starter, MPIR_partial_attach_ok
set $pid = MPIR_proctable[1].pid
add-inferior
inferior 2
eval "attach %d", $pid
backtrace
python print("attached to %d" % gdb.selected_inferior().pid)
set var seen_by_debugger = 41
detach
inferior 1
delete
continue
`
	o := gdb(t, script, "--args", filepath.Join(harness.Build(t), "bin/spxrun"), "-n", "3", work)
	text := o.Stdout + o.Stderr
	host, _ := os.Hostname()
	for _, want := range []string{
		`state 1 size 3`, `rank 0: ` + regexp.QuoteMeta(host) + ` \S*/work \d+`, `rank 2: ` + regexp.QuoteMeta(host) + ` \S*/work \d+`, `starter 1 partial 1`,
		`(?m)^#\d+ .*(in main |_start |_dl_start_user |/ld-linux)`, // the stack of rank 1: from main, or from what runs before main
		`rank 0 sum 41`, // what the debugger has set in rank 1 alone has come to rank 0
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %q (exit status %d, late %v)\n%s", want, o.Status, o.Late, o.Text())
		}
	}
	if m := regexp.MustCompile(`(?ms)^rank 1: \S+ \S+ (\d+)$.*^attached to (\d+)$`).FindStringSubmatch(text); m == nil || m[1] != m[2] {
		t.Errorf("gdb has not attached to rank 1 of the table: %q\n%s", m, o.Text())
	}
}

// When the job fails the tool is told so.
func TestMPIRTellsFailure(t *testing.T) {
	harness.Need(t, "packaging", "gdb")
	script := `set pagination off
handle all nostop noprint pass
starti
set var MPIR_being_debugged = 1
break MPIR_Breakpoint
continue
continue
printf "state %d: %s\n", MPIR_debug_state, MPIR_debug_abort_string
delete
continue
`
	o := gdb(t, script, "--args", filepath.Join(harness.Build(t), "bin/spxrun"), "-n", "2", program(t), "7")
	if !strings.Contains(o.Stdout, "state 2: the job has ended with status 7") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}

// spxrun --gdb RANK: gdb gets spxrun's standard input, and stands in MPI_Init of that rank.
func TestGdbInThisTerminal(t *testing.T) {
	harness.Need(t, "packaging", "gdb")
	commands := "set pagination off\nset confirm off\nbacktrace\nset var seen_by_debugger = 17\ndetach\nquit\n"
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "3", program(t)), Stdin: commands, Env: []string{"HOME=" + t.TempDir(), "DISPLAY=", "TMUX="}, Limit: limit})
	if o.Status != 0 || !strings.Contains(o.Stdout, "rank 0 sum 0\n") {
		t.Fatalf("without a debugger: exit status %d\n%s", o.Status, o.Text())
	}
	args := harness.Spxrun(t, "3", program(t))
	args = append([]string{args[0], "--gdb", "1"}, args[1:]...)
	o = harness.Run(t, harness.Command{Args: args, Stdin: commands, Env: []string{"HOME=" + t.TempDir(), "DISPLAY=", "TMUX="}, Limit: limit})
	if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, "rank 0 sum 17\n") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}

// Each rank's gdb in a window of its own, as tmux opens it: here a program in tmux's place, which runs what it is told to without a terminal.
func TestGdbInWindows(t *testing.T) {
	harness.Need(t, "packaging", "gdb")
	dir := t.TempDir()
	commands := filepath.Join(dir, "commands")
	if err := os.WriteFile(commands, []byte("set var seen_by_debugger = 5\ndetach\nquit\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tmux"), []byte("#!/bin/sh\nshift 2\nsetsid \"$@\" <"+commands+" >/dev/null 2>&1 &\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	args := harness.Spxrun(t, "4", program(t))
	args = append([]string{args[0], "--gdb", "0,2-3"}, args[1:]...)
	o := harness.Run(t, harness.Command{Args: args, Env: []string{"HOME=" + dir, "TMUX=here", "PATH=" + dir + ":" + os.Getenv("PATH")}, Limit: limit})
	if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, "rank 0 sum 15\n") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}

func TestGdbMistakes(t *testing.T) {
	harness.Need(t, "packaging", "gdb")
	for ranks, want := range map[string]string{"x": "is not a rank", "5": "no rank 5; the job has 2", "0,1": "run spxrun in tmux", "3-1": "rank"} {
		args := harness.Spxrun(t, "2", program(t))
		args = append([]string{args[0], "--gdb", ranks}, args[1:]...)
		o := harness.Run(t, harness.Command{Args: args, Env: []string{"DISPLAY=", "TMUX="}})
		if o.Status != 2 || !strings.Contains(o.Stderr, want) {
			t.Errorf("--gdb %s: exit status %d\n%s", ranks, o.Status, o.Text())
		}
	}
}

// A gdb that fails at once does not keep the job waiting.
func TestGdbThatFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gdb"), []byte("#!/bin/sh\nexit 1\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	args := harness.Spxrun(t, "2", program(t))
	args = append([]string{args[0], "--gdb", "1"}, args[1:]...)
	o := harness.Run(t, harness.Command{Args: args, Env: []string{"DISPLAY=", "TMUX=", "PATH=" + dir + ":" + os.Getenv("PATH")}, Limit: limit})
	if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, "rank 0 sum 0\n") {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}

// A rank on another host, which only ssh leads to: spxrun starts its agent by ssh, and gdb by "ssh -t" as in docs/debuggers.md. The server is a real one.
func TestGdbThroughSSH(t *testing.T) {
	harness.Need(t, "packaging", "gdb")
	bin := harness.SSHD(t)
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(t.TempDir(), "calls")
	wrapper := "#!/bin/sh\necho \"ssh $1\" >>" + calls + "\nexec " + filepath.Join(bin, "ssh") + " \"$@\"\n"
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, "ssh"), []byte(wrapper), 0o777); err != nil {
		t.Fatal(err)
	}
	args := harness.Spxrun(t, "2", program(t))
	args = append([]string{args[0], "--iface", "lo", "-host", name + ":1,there:1", "--gdb", "1"}, args[1:]...)
	commands := "set pagination off\nset confirm off\nset var seen_by_debugger = 23\ndetach\nquit\n"
	o := harness.Run(t, harness.Command{Args: args, Stdin: commands, Env: []string{"DISPLAY=", "TMUX=", "PATH=" + own + ":" + os.Getenv("PATH")}, Limit: limit})
	text, _ := os.ReadFile(calls)
	if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, "rank 0 sum 23\n") || !strings.Contains(string(text), "ssh -t\n") {
		t.Errorf("exit status %d\n%s--- ssh was called so:\n%s", o.Status, o.Text(), text)
	}
}
