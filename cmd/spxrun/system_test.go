package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// systemFile writes a system file whose programs are scripts of the shell.
func systemFile(t *testing.T, dir, text string, scripts map[string]string) string {
	t.Helper()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "test.toml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

const twoClusters = `
[[cluster]]
name = "a"
program = "./a"
args = ["x y"]
ranks = 2
environment = { COLOUR = "red" }
[[cluster]]
name = "b"
program = "./b"
ranks = 3
directory = "sub"
[[link]]
from = "a"
to = "b"
iops = 2
program = "./iop"
`

// A whole system: every cluster is a world of its own, with its program, arguments, variables and
// directory; I/O processes have a world each.
func TestSystem(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "sub"), 0o777)
	show := `echo $SPX_CLUSTER $SPX_RANK/$SPX_SIZE $SPX_LOCAL_SIZE $COLOUR "$1"`
	file := systemFile(t, dir, twoClusters, map[string]string{"a": show, "sub/b": show + "; basename $(pwd)", "iop": `echo io $SPX_RANK/$SPX_SIZE`})
	r := prepare(t, "-l", "-x", "COLOUR=blue", "--system", file)
	r.cmd.Dir = "/"
	if status := r.start().wait(); status != 0 || r.err.Len() > 0 {
		t.Fatalf("status %d, said %s", status, r.err.String())
	}
	for _, line := range []string{"[a.0] a 0/2 2 red x y", "[a.1] a 1/2 2 red x y", "[b.0] b 0/3 3 blue ", "[b.2] b 2/3 3 blue ", "[b.1] sub", "[a-b.iop0.0] io 0/1", "[a-b.iop1.0] io 0/1"} {
		if countLine(r.out.String(), strings.TrimSpace(line)) != 1 {
			t.Errorf("no line %q in\n%s", line, r.out.String())
		}
	}
}

// I/O processes that no longer serve any cluster are ended, and that is no failure.
func TestSystemEnds(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "sub"), 0o777)
	file := systemFile(t, dir, twoClusters, map[string]string{"a": "echo a", "sub/b": "echo b", "iop": "trap '' TERM; sleep 1000 & wait; sleep 1000"})
	status, out, errs := job(t, "--system", file)
	if status != 0 || errs != "" || strings.Count(out, "a\n") != 2 || strings.Count(out, "b\n") != 3 {
		t.Errorf("status %d, output %q, said %q", status, out, errs)
	}
}

// The effect of a cluster's death on the other clusters.
func TestClusterDeath(t *testing.T) {
	waits := "echo $$ > $0.tmp.$SPX_RANK; mv $0.tmp.$SPX_RANK $0.$SPX_RANK; until [ -e go ]; do sleep 0.01; done; echo done"
	for _, c := range []struct {
		policy string
		status int
		done   int // lines that are written when all may go on
		say    []string
	}{
		{`process = "stop"
cluster = "stop"`, 137, 0, []string{"rank 1 of cluster a (pid ", "SIGKILL", "; cluster a is ended and with it the system; exit status 137."}},
		{`process = "stop"
cluster = "degrade"`, 0, 3, []string{"rank 1 of cluster a (pid ", "; cluster a stops.", "cluster a is gone; the others go on."}},
		{`process = "degrade"
cluster = "stop"`, 0, 4, []string{"rank 1 of cluster a (pid ", "; 1 others of cluster a are told and go on."}},
		{`process = "stop"
cluster = "restart"`, 0, 5, []string{"; cluster a stops.", "cluster a is started again (1 of at most 3 times)."}},
		{`process = "stop"
restarts = 0
cluster = "restart"`, 137, 0, []string{"; cluster a is ended and with it the system, since it has been started again 0 times; exit status 137."}},
	} {
		t.Run(strings.ReplaceAll(c.policy, "\n", ","), func(t *testing.T) {
			dir := t.TempDir()
			text := "[failure]\n" + c.policy + "\n[[cluster]]\nname='a'\nprogram='./a'\nranks=2\n[[cluster]]\nname='b'\nprogram='./b'\nranks=3\n"
			file := systemFile(t, dir, text, map[string]string{"a": waits, "b": waits})
			r := prepare(t, "--system", file).start()
			pids := func(name string, n int, before []int) (out []int) {
				within(t, limit/2, func() string {
					out = nil
					for rank := range n {
						var pid int
						data, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s.%d", name, rank)))
						fmt.Sscan(string(data), &pid)
						if pid == 0 || len(before) > rank && before[rank] == pid {
							return fmt.Sprintf("rank %d of %s is not there (again)", rank, name)
						}
						out = append(out, pid)
					}
					return ""
				})
				return out
			}
			first := pids("a", 2, nil)
			pids("b", 3, nil)
			syscall.Kill(first[1], syscall.SIGKILL)
			if strings.Contains(c.policy, `cluster = "restart"`) && c.status == 0 {
				pids("a", 2, first)
			}
			if c.done > 0 {
				ended := first[1:]
				if strings.Contains(c.policy, `process = "stop"`) {
					ended = first
				}
				within(t, limit/2, func() string {
					for _, pid := range ended {
						if _, err := os.Stat(fmt.Sprintf("/proc/%d/fd/0", pid)); err == nil {
							return fmt.Sprintf("process %d lives", pid)
						}
					}
					return ""
				})
				os.WriteFile(filepath.Join(dir, "go"), nil, 0o666)
			}
			status := r.wait()
			if status != c.status || strings.Count(r.out.String(), "done\n") != c.done {
				t.Errorf("status %d, %d lines of %d; output %q, said %s", status, strings.Count(r.out.String(), "done\n"), c.done, r.out.String(), r.err.String())
			}
			for _, text := range c.say {
				if !strings.Contains(r.err.String(), text) {
					t.Errorf("said %q, and not %q", r.err.String(), text)
				}
			}
		})
	}
}

// Errors in a system file, or in the command line.
func TestSystemMistakes(t *testing.T) {
	dir := t.TempDir()
	good := systemFile(t, dir, twoClusters, map[string]string{"a": "true", "iop": "true"})
	bad := filepath.Join(dir, "bad.toml")
	os.WriteFile(bad, []byte("[[cluster]]\nname = 'a'\nprogam = './a'\nranks = 0\n"), 0o666)
	for _, c := range []struct {
		args   []string
		status int
		say    string
	}{
		{[]string{"--system", bad}, 2, bad + `:3:1: cluster "a" has no key "progam" (did you mean "program"?)`},
		{[]string{"--system", bad}, 2, bad + ":4:1: ranks: 0 is out of range"},
		{[]string{"--system", filepath.Join(dir, "none")}, 2, "none: cannot read the system file: no such file or directory"},
		{[]string{"--system", good, "./x"}, 2, `"./x" does not belong on the command line`},
		{[]string{"--system", good, "-n", "3"}, 2, "-n, -wdir and -path do not count"},
		{[]string{"--system", good, "--cluster", "a"}, 2, `[system] needs address = "HOST:PORT" (or --join names the address of the system that runs) and key = "FILE"`},
		{[]string{"--system", good, "-host", "x"}, 2, "the system file says where the clusters run"},
		{[]string{"--system", good}, 126, "sub"},
	} {
		if status, out, errs := job(t, c.args...); status != c.status || out != "" || !strings.Contains(errs, c.say) {
			t.Errorf("%v: status %d, output %q, said %q; want status %d and %q", c.args, status, out, errs, c.status, c.say)
		}
	}
}
