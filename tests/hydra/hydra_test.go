// Package hydra runs jobs that another launcher than spxrun has started: Hydra, MPICH's mpiexec, by PMI-1. Skipped where it is neither installed nor can be fetched.
package hydra

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// mpiexec is the command that runs Hydra.
func mpiexec(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("timeout", "120", filepath.Join(harness.Root(), "scripts/hydra"), filepath.Join(harness.Cache(t), "hydra"))
	var why strings.Builder
	cmd.Stderr = &why
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("there is no Hydra: %v\n%s", err, why.String())
	}
	return strings.TrimSpace(string(out))
}

func program(t *testing.T, source string) string {
	t.Helper()
	return harness.Compile(t, "hydra/"+strings.TrimSuffix(filepath.Base(source), ".c"), []string{filepath.Join(harness.Root(), source)})
}

func lines(text string) []string {
	out := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(out)
	return out
}

// check reports what is not as wanted. Lines of Stdout are in any order; nil: whatever they are.
func check(t *testing.T, o harness.Outcome, status int, stdout []string, stderr ...string) {
	t.Helper()
	slices.Sort(stdout)
	if o.Late || o.Status != status || stdout != nil && !slices.Equal(lines(o.Stdout), stdout) {
		t.Errorf("exit status %d (late: %v), want %d and\n%s\n%s", o.Status, o.Late, status, strings.Join(stdout, "\n"), o.Text())
	}
	for _, want := range stderr {
		if !strings.Contains(o.Stderr, want) {
			t.Errorf("standard error lacks %q\n%s", want, o.Text())
		}
	}
}

// wrap has a rank that is killed by a signal end with a status, as a shell does: Hydra ends all processes of a host when one of them is killed by a signal, also
// under -disable-auto-cleanup.
var wrap = []string{"sh", "-c", `"$0" "$@"; exit $?`}

// once: of all ranks that have the same to say one has said it; nothing else was.
func once(t *testing.T, o harness.Outcome, says string) {
	t.Helper()
	messages := regexp.MustCompile(`(?m)^libspx: `).FindAllString(o.Stderr, -1)
	also := regexp.MustCompile(`(?m)^libspx: also on ranks? [\d,-]+: `).FindAllString(o.Stderr, -1)
	if o.Status == 0 || o.Late || len(messages)-len(also) != 1 || len(also) > 1 || !strings.Contains(o.Stderr, says) {
		t.Errorf("exit status %d, %d messages and %d lines of others, want one with %q\n%s", o.Status, len(messages)-len(also), len(also), says, o.Text())
	}
}

// lostByHydra: mpiexec has ended, as the processes of one host had, while the proxy of another one still had output of its processes to hand on, or nothing from them yet.
var lostByHydra = regexp.MustCompile(`stdoe_cb \(pm/pmiserv/pmip_cb\.c|control_cmd_cb \(pm/pmiserv/pmip_cb\.c:\d+\): assert \(!closed\)`)

const beforeInit = "libspx: MPI_Comm_rank: fatal: MPI_Comm_rank was called before MPI_Init"

func TestOneHost(t *testing.T) {
	hydra := mpiexec(t)
	run := func(t *testing.T, env []string, words ...string) harness.Outcome {
		t.Helper()
		mark := harness.Mark(t)
		o := harness.Run(t, harness.Command{Args: append([]string{hydra}, words...), Env: append(env, mark), Limit: time.Minute})
		harness.NothingLeft(t, mark, 10*time.Second)
		return o
	}
	name, _ := os.Hostname()
	where := program(t, "tests/hosts/testdata/where.c")
	end := program(t, "tests/hosts/testdata/end.c")
	var all []string
	for r := range 4 {
		all = append(all, fmt.Sprintf("rank %d of 4 on %s shares with 4, sum 6", r, name))
	}

	t.Run("hello", func(t *testing.T) { check(t, run(t, nil, "-n", "4", where), 0, all) })
	t.Run("tcp", func(t *testing.T) {
		check(t, run(t, []string{"SPX_TRANSPORTS=tcp"}, "-n", "4", program(t, "tests/c/coll/every.c")), 0, nil)
	})
	t.Run("collectives", func(t *testing.T) { check(t, run(t, nil, "-n", "5", program(t, "tests/c/coll/every.c")), 0, nil) })
	t.Run("messages", func(t *testing.T) { check(t, run(t, nil, "-n", "5", program(t, "tests/c/pt2pt/many_modes.c")), 0, nil) })
	t.Run("alone", func(t *testing.T) {
		check(t, run(t, nil, "-n", "1", where), 0, []string{fmt.Sprintf("rank 0 of 1 on %s shares with 1, sum 0", name)})
	})
	t.Run("pmi-port", func(t *testing.T) { // PMI_PORT: no socket is inherited, the launcher is called
		check(t, run(t, nil, "-pmi-port", "-n", "4", where), 0, all)
		check(t, run(t, nil, "-pmi-port", "-n", "1", where), 0, []string{fmt.Sprintf("rank 0 of 1 on %s shares with 1, sum 0", name)})
		check(t, run(t, nil, "-pmi-port", "-n", "4", end, "abort"), 7, nil, "MPI_Abort(MPI_COMM_WORLD, 7)")
		check(t, run(t, nil, "-pmi-port", "-n", "2", program(t, "tests/c/spawn/basic.c")), 0, nil)
	})
	t.Run("spawn", func(t *testing.T) {
		check(t, run(t, nil, "-n", "2", program(t, "tests/c/spawn/basic.c")), 0, nil)
		check(t, run(t, nil, "-n", "1", program(t, "tests/c/spawn/basic.c")), 0, nil)
	})
	t.Run("programs", func(t *testing.T) {
		parts := program(t, "tests/hydra/testdata/parts.c")
		check(t, run(t, nil, "-n", "1", parts, "a", ":", "-n", "2", parts, "b"), 0,
			[]string{"rank 0 of 3: program 0 (a)", "rank 1 of 3: program 1 (b)", "rank 2 of 3: program 1 (b)"})
	})
	t.Run("abort", func(t *testing.T) {
		check(t, run(t, nil, "-n", "4", end, "abort"), 7, nil, "MPI_Abort(MPI_COMM_WORLD, 7)")
	})
	t.Run("status", func(t *testing.T) { check(t, run(t, nil, "-n", "2", "sh", "-c", where+"; exit 5"), 5, nil) })
	t.Run("death", func(t *testing.T) {
		o := run(t, nil, append([]string{"-n", "4"}, append(wrap, end, "kill")...)...)
		check(t, o, 1, nil, "rank 2 (pid ", "has ended", "the job is ended with exit status 1")
	})
	t.Run("survivors", func(t *testing.T) {
		args := append([]string{"-disable-auto-cleanup", "-n", "4"}, append(wrap, end, "told")...)
		o := run(t, nil, args...)
		check(t, o, 137, []string{"rank 0: 16385", "rank 1: 16385", "rank 3: 16385"}, "rank 2 (pid ", "the other 3 are told and go on")
	})
	t.Run("shrink", func(t *testing.T) {
		args := append([]string{"-n", "6"}, append(wrap, program(t, "tests/c/ft/shrink.c"), "2")...)
		check(t, run(t, nil, args...), 137, []string{"4 of 6 go on"})
	})
	t.Run("missing", func(t *testing.T) {
		o := run(t, []string{"SPX_JOIN_TIMEOUT=2"}, "-n", "4", program(t, "tests/hydra/testdata/wait.c"), "early")
		check(t, o, 1, nil, "of 4 processes, ranks 1 on host "+name+" have not called MPI_Init within 2s")
	})
	t.Run("once", func(t *testing.T) {
		alike := program(t, "tests/broken/programs/alike.c")
		for range 3 {
			once(t, run(t, nil, "-n", "8", alike, "early"), beforeInit)
			once(t, run(t, []string{"SPX_EAGER_MAX=much"}, "-n", "8", alike), "SPX_EAGER_MAX=much")
			once(t, run(t, []string{"SPX_ON_DEATH=perhaps"}, "-n", "8", alike), "SPX_ON_DEATH=perhaps")
		}
		once(t, run(t, nil, "-pmi-port", "-n", "4", alike, "early"), beforeInit)
		once(t, run(t, nil, "-n", "4", alike, "early", ":", "-n", "1", "sleep", "20"), beforeInit) // the job does not come together
	})
	t.Run("wrong setting", func(t *testing.T) {
		o := run(t, []string{"SPX_ON_DEATH=perhaps"}, "-n", "2", where)
		check(t, o, max(o.Status, 1), nil, "SPX_ON_DEATH=perhaps: there are auto, kill, continue") // that of the processes, or Hydra's own for such an end
	})
	// A second program of a rank is neither in the job nor one of its own. Hydra ends all when it hears of one, and leaves aside what it has not read: so
	// the first ones write to files, and have all ended before.
	t.Run("second program", func(t *testing.T) {
		dir := t.TempDir()
		line := `"$0" > "$1/$PMI_RANK" && mv "$1/$PMI_RANK" "$1/done$PMI_RANK"; until [ -e "$1/done0" ] && [ -e "$1/done1" ]; do sleep 0.01; done; "$0"`
		o := run(t, nil, "-n", "2", "sh", "-c", line, where, dir)
		var first strings.Builder
		for _, name := range []string{"done0", "done1"} {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			first.Write(text)
		}
		if o.Status == 0 || o.Late || o.Stdout != "" || strings.Count(first.String(), " of 2 on ") != 2 {
			t.Errorf("exit status %d, late %v\n%s\n--- the first programs\n%s", o.Status, o.Late, o.Text(), first.String())
		}
	})
	t.Run("HPCC", func(t *testing.T) {
		harness.HPCC(t, harness.BuiltHPCC(t), harness.SmallHPCC, 2, 2, 0, func(program string) harness.Command {
			return harness.Command{Args: []string{hydra, "-n", "4", program}}
		})
	})
}

// Where Yama is active, the ranks of a host may read each other's memory, and no others may: each names the nearest process that they all descend from, Hydra's proxy.
func TestRelatedAlone(t *testing.T) {
	hydra := mpiexec(t)
	for name, before := range map[string][]string{"ranks": nil, "behind a shell": {"sh", "-c", `"$0" "$@"; exit $?`}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program, env := harness.RelatedProgram(t, dir)
			o := harness.Run(t, harness.Command{Args: slices.Concat([]string{hydra, "-n", "3"}, before, program), Env: env, Limit: time.Minute})
			proxies := map[int]bool{}
			for _, p := range harness.RelatedOf(t, o, 3, dir) {
				proxies[p.Named] = true
				if p.Named <= 1 || before == nil && p.Named != p.Parent || before != nil && p.Named == p.Parent {
					t.Errorf("process %d, a child of %d, has named %d", p.Pid, p.Parent, p.Named)
				}
				if p.Gets == 0 {
					t.Errorf("process %d has read no message out of its sender's memory", p.Pid)
				}
			}
			if len(proxies) != 1 {
				t.Errorf("the ranks have named different processes: %v", proxies)
			}
		})
	}
}

// Whatever is killed, nothing stays.
func TestKilled(t *testing.T) {
	hydra, wait := mpiexec(t), program(t, "tests/hydra/testdata/wait.c")
	for _, who := range []string{"mpiexec.hydra", "hydra_pmi_proxy", "spx-agent", "testdata"} {
		t.Run(who, func(t *testing.T) {
			harness.KillWhenUp(t, harness.Command{Args: []string{hydra, "-n", "3", wait}}, 3, func(mark string) []int {
				if who != "testdata" {
					return harness.Marked(mark, who)[:1]
				}
				return slices.DeleteFunc(harness.Marked(mark, wait), func(pid int) bool { // not Hydra itself, which has the name as its argument
					exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
					return exe != wait
				})[:1]
			})
		})
	}
}

// Hydra starts its proxies on the hosts of scripts/hosts.
func TestHosts(t *testing.T) {
	hydra, script, made := mpiexec(t), harness.HostsScript(), harness.NewBed(t, "y", 2, nil)
	bed := made.Name
	rsh := filepath.Join(t.TempDir(), "rsh")
	// Hydra may be unpacked, and not installed: its proxies find their libraries by this variable.
	text := fmt.Sprintf("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\nexec %s rsh \"$host\" \"LD_LIBRARY_PATH='$LD_LIBRARY_PATH' $*\"\n", script)
	if err := os.WriteFile(rsh, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	command := func(words ...string) harness.Command {
		args := append([]string{script, "on", bed + "1", hydra, "-launcher", "ssh", "-launcher-exec", rsh, "-iface", "eth0"}, words...)
		return harness.Command{Args: args, Env: []string{"SPX_SPIN=0"}, Limit: time.Minute}
	}
	run := func(t *testing.T, words ...string) harness.Outcome {
		t.Helper()
		for try := 1; ; try++ {
			mark, c := harness.Mark(t), command(words...)
			c.Env = append(c.Env, mark)
			o := harness.Run(t, c)
			harness.NothingLeft(t, mark, 10*time.Second)
			if try == 5 || !lostByHydra.MatchString(o.Stderr) {
				return o
			}
			t.Logf("Hydra says that it has lost what a rank wrote: again\n%s", o.Text())
		}
	}
	two := fmt.Sprintf("%s1:2,%s2:2", bed, bed)
	where, end := program(t, "tests/hosts/testdata/where.c"), program(t, "tests/hosts/testdata/end.c")
	t.Run("hello", func(t *testing.T) {
		var want []string
		for rank, host := range []int{1, 1, 2, 2} {
			want = append(want, fmt.Sprintf("rank %d of 4 on %s%d shares with 2, sum 6", rank, bed, host))
		}
		for range 5 {
			check(t, run(t, "-hosts", two, "-n", "4", where), 0, want)
		}
	})
	t.Run("collectives", func(t *testing.T) {
		check(t, run(t, "-hosts", two, "-n", "4", program(t, "tests/c/coll/every.c")), 0, nil)
	})
	t.Run("spawn", func(t *testing.T) {
		check(t, run(t, "-hosts", two, "-n", "4", program(t, "tests/c/spawn/basic.c")), 0, nil)
	})
	// A rank of either host spawns children, who run on both, or on the other one if that is asked for.
	t.Run("spawn on both hosts", func(t *testing.T) {
		spawn, a, b := program(t, "tests/hosts/testdata/spawn.c"), bed+"1", bed+"2"
		harness.Family(t, run(t, "-hosts", two, "-ppn", "1", "-n", "2", spawn, "0", "4", "-"), []string{a, b}, []string{a, b, a, b})
		harness.Family(t, run(t, "-hosts", two, "-ppn", "1", "-n", "2", spawn, "1", "3", "-"), []string{a, b}, []string{a, b, a})
		harness.Family(t, run(t, "-hosts", two, "-n", "4", spawn, "0", "2", b), []string{a, a, b, b}, []string{b, b})
	})
	t.Run("HPCC", func(t *testing.T) {
		harness.HPCC(t, harness.BuiltHPCC(t), harness.SmallHPCC, 2, 2, 0, func(program string) harness.Command { return command("-hosts", two, "-n", "4", program) })
	})
	t.Run("abort", func(t *testing.T) {
		check(t, run(t, "-hosts", two, "-n", "4", end, "abort"), 7, nil, "MPI_Abort(MPI_COMM_WORLD, 7)")
	})
	t.Run("survivors", func(t *testing.T) {
		o := run(t, append([]string{"-disable-auto-cleanup", "-hosts", two, "-n", "4"}, append(wrap, end, "told")...)...)
		check(t, o, 137, []string{"rank 0: 16385", "rank 1: 16385", "rank 3: 16385"}, "rank 2 (pid ", "the other 3 are told and go on")
	})
	// Rank 0 dies, whose host's agent decides, at moments that nobody has chosen.
	t.Run("rank 0", func(t *testing.T) {
		for range 4 {
			us := fmt.Sprint(rand.IntN(20000))
			o := run(t, append([]string{"-disable-auto-cleanup", "-hosts", two, "-n", "4"}, append(wrap, end, "told", "0", us)...)...)
			check(t, o, 137, []string{"rank 1: one of 3, 0", "rank 2: one of 3, 0", "rank 3: one of 3, 0"}, "rank 0 (pid ", "the other 3 are told and go on")
		}
	})
	t.Run("once", func(t *testing.T) {
		alike := program(t, "tests/broken/programs/alike.c")
		once(t, run(t, "-hosts", two, "-n", "4", alike, "early"), beforeInit)
		once(t, run(t, "-hosts", two, "-n", "4", alike, "fatal"), "libspx: MPI_Send on MPI_COMM_WORLD failed")
		once(t, run(t, "-env", "SPX_EAGER_MAX", "much", "-hosts", two, "-n", "4", alike), "SPX_EAGER_MAX=much")
		once(t, run(t, "-env", "SPX_ON_DEATH", "perhaps", "-hosts", two, "-n", "4", alike), "SPX_ON_DEATH=perhaps")
	})
	t.Run("missing", func(t *testing.T) {
		o := run(t, "-env", "SPX_JOIN_TIMEOUT", "2", "-hosts", two, "-n", "4", program(t, "tests/hydra/testdata/wait.c"), "early")
		check(t, o, 1, nil, "of 4 processes, ranks 1 on host "+bed+"1 have not called MPI_Init within 2s")
	})
}
