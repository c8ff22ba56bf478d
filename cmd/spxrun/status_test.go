package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The exit status, and its message, for programs without MPI.
func TestStatus(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	script := write("spx-script", "echo from a script without an interpreter line\n", 0o755)
	noInterpreter := write("nointerp", "#!/no/such/interpreter\n", 0o755)
	plain := write("plain", "text", 0o644)
	broken := write("hosts", "localhost slots=x\n", 0o644)
	remote := write("remote", "localhost\nelsewhere:2\n", 0o644)
	for _, c := range []struct {
		args   []string
		status int
		out    string // all of standard output
		err    string // part of standard error; empty: nothing may be printed
	}{
		{[]string{"true"}, 0, "", ""},
		{[]string{"-n", "3", "sh", "-c", "exit $SPX_RANK"}, -1, "", "exit status"},
		{[]string{"-n", "3", "sh", "-c", "[ $SPX_RANK != 2 ] || exit 7"}, 7, "", "rank 2 (pid "},
		{[]string{"-n", "2", "sh", "-c", "kill -SEGV $$"}, 139, "", "was killed by signal 11 (SIGSEGV: invalid memory access)"},
		{[]string{script}, 0, "from a script without an interpreter line\n", ""},
		{[]string{"-n", "2", noInterpreter}, 127, "", "does the interpreter in its first line exist?"},
		{[]string{plain}, 126, "", "not executable; chmod +x"},
		{[]string{dir}, 126, "", "it is a directory"},
		{[]string{"no-such-program"}, 127, "", "program no-such-program: not found in PATH"},
		{[]string{"./no-such-program"}, 127, "", "program ./no-such-program: no such file"},
		{[]string{"-wdir", dir, "spx-script"}, 0, "from a script without an interpreter line\n", "spx-script: not found in PATH; taken from the working directory (" + script + ")"},
		{[]string{"-wdir", dir, "-n", "2", "spx-plain"}, 127, "", "program spx-plain: not found in PATH"},
		// and x is not printed
		{[]string{"-n", "2", "echo", "x", ":", "nothing-there"}, 127, "", "program nothing-there"},
		{[]string{"-wdir", dir, "./spx-script"}, 0, "from a script without an interpreter line\n", ""},
		{[]string{"-wdir", dir, "-path", ".", "spx-script"}, 0, "from a script without an interpreter line\n", ""},
		{[]string{"-wdir", dir + "/none", "true"}, 126, "", "check -wdir"},
		{[]string{"-frobnicate", "true"}, 2, "", "unknown option -frobnicate"},
		{[]string{"-n", "many", "true"}, 2, "", `"many" is not a number of processes`},
		{[]string{}, 2, "", "no program to run"},
		{[]string{"-hostfile", "/none", "true"}, 2, "", "/none: no such file"},
		{[]string{"-hostfile", broken, "true"}, 2, "", `line 1: "x" is not a number of slots`},
		{[]string{"-hostfile", remote, "--rsh", "false", "-n", "2", "true"}, 1, "", "host elsewhere: exit status 1"},
		{[]string{"-host", "localhost:3", "echo", "x"}, 0, "x\nx\nx\n", ""},
		{[]string{"-n", "2", "--oversubscribe", "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "echo", "x"}, 0, "x\nx\n", ""},
		{[]string{"--stdin", "5", "-n", "2", "true"}, 1, "", "there are only 2 ranks"},
		{[]string{"--output", plain + "/x", "true"}, 1, "", "--output"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			status, out, errs := job(t, c.args...)
			if status != c.status && !(c.status == -1 && (status == 1 || status == 2)) || out != c.out {
				t.Errorf("status %d, want %d; output %q, want %q; said: %s", status, c.status, out, c.out, errs)
			}
			if c.err == "" && errs != "" || !strings.Contains(errs, c.err) {
				t.Errorf("said %q, want something with %q", errs, c.err)
			}
		})
	}
}

// Ranks are numbered through all programs, each with its own environment, directory and MPI_APPNUM.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	show := `echo $SPX_RANK/$SPX_SIZE $SPX_LOCAL_RANK/$SPX_LOCAL_SIZE $SPX_PROC $SPX_APPNUM $SPX_MAXPROCS $A$B $(pwd)`
	r := prepare(t, "-genv", "A", "a", "-n", "1", "-wdir", "/", "sh", "-c", show, ":", "-n", "2", "-env", "B", "b", "-wdir", dir, "sh", "-c", show)
	r.cmd.Env = append(r.cmd.Env, "SPX_RANK=77", "PMI_RANK=3")
	if status := r.start().wait(); status != 0 {
		t.Fatalf("status %d: %s", status, r.err.String())
	}
	for _, want := range []string{"0/3 0/3 0 0 1 a /\n", "1/3 1/3 1 1 2 ab " + dir + "\n", "2/3 2/3 2 1 2 ab " + dir + "\n"} {
		if !strings.Contains(r.out.String(), want) {
			t.Errorf("no line %q in\n%s", want, r.out.String())
		}
	}
	if status, out, _ := job(t, "env"); status != 0 || strings.Contains(out, "PMI_") || !strings.Contains(out, "SPX_FD=62\n") {
		t.Errorf("status %d, environment\n%s", status, out)
	}
}

// The memory file comes under its number, and, if a wrapper has closed that, by way of the agent.
func TestMemoryFile(t *testing.T) {
	status, out, errs := job(t, "bash", "-c", `readlink /proc/self/fd/$SPX_FD; exec 62<&-; readlink /proc/$SPX_AGENT/fd/$SPX_FD`)
	if lines := strings.Fields(out); status != 0 || strings.Count(out, "memfd:") != 2 || lines[0] != lines[len(lines)/2] {
		t.Errorf("status %d, files %q, said %q", status, out, errs)
	}
}

func TestTimeout(t *testing.T) {
	status, _, errs := job(t, "--timeout", "0.3", "-n", "2", "sh", "-c", "trap '' TERM; sleep 1000; sleep 1000")
	if status != 124 || !strings.Contains(errs, "--timeout=0.3 s") {
		t.Errorf("status %d, said %q", status, errs)
	}
}

// More ranks than processors, many more, and soon done.
func TestManyRanks(t *testing.T) {
	begin := time.Now()
	status, out, errs := job(t, "-n", "256", "sh", "-c", "echo $SPX_RANK")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, said %q", status, errs)
	}
	seen := map[string]bool{}
	for _, line := range strings.Fields(out) {
		seen[line] = true
	}
	for i := range 256 {
		if !seen[fmt.Sprint(i)] {
			t.Errorf("rank %d is missing", i)
		}
	}
	t.Logf("256 shells in %v", time.Since(begin))
}

// Descriptors that ranks inherit have distinct numbers, however many there are: no rank loses its
// output to another one's listening socket.
func TestOutputOverTCP(t *testing.T) {
	t.Setenv("SPX_TRANSPORTS", "tcp")
	const n = 64
	status, out, errs := job(t, "-n", fmt.Sprint(n), "sh", "-c", "sleep 0.3; echo $SPX_RANK; echo $SPX_RANK >&2")
	if status != 0 {
		t.Fatalf("status %d, said %q", status, errs)
	}
	for where, text := range map[string]string{"output": out, "error output": errs} {
		if got := len(strings.Fields(text)); got != n {
			t.Errorf("%d of %d ranks' standard %s came: %q", got, n, where, text)
		}
	}
}

func TestBinding(t *testing.T) {
	_, before, _ := job(t, "grep", "Cpus_allowed_list", "/proc/self/status")
	status, out, errs := job(t, "--bind-to", "hwthread", "-n", "5", "grep", "Cpus_allowed_list", "/proc/self/status")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, said %q", status, errs)
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if f := strings.Fields(line); len(f) != 2 || strings.ContainsAny(f[1], "-,") {
			t.Errorf("%q is not one processor", line)
		}
	}
	if _, after, _ := job(t, "grep", "Cpus_allowed_list", "/proc/self/status"); after != before {
		t.Errorf("the mask of an unbound rank changed from %q to %q", before, after)
	}
}
