package broken

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// likeness is what many ranks do in the same way, and what is to be seen of it: exactly one line that matches each pattern.
type likeness struct {
	name, arg string
	env       []string
	status    int      // -1: not 0 (who ends the others may be ended by another one of them meanwhile)
	once      []string // patterns of lines, of which there is one
	// The ranks have not met yet: the first one may have ended the job before another comes so far (TestNamesAll holds them). So the last pattern may have no line.
	unmet bool
}

// seen are the patterns of which there has to be a line.
func (l likeness) seen(o harness.Outcome) []string {
	if last := len(l.once) - 1; l.unmet && count(l.once[last], o.Stderr) == 0 {
		return l.once[:last]
	}
	return l.once
}

var alike = []likeness{
	{name: "early", arg: "early", status: 16, once: []string{
		`^libspx: MPI_Comm_rank: fatal: MPI_Comm_rank was called before MPI_Init`,
		`^spxrun: also on ranks? [\d,-]+: MPI_Comm_rank: fatal: MPI_Comm_rank was called before MPI_Init`}, unmet: true},
	{name: "setting", env: []string{"SPX_EAGER_MAX=much"}, status: 13, once: []string{
		`^libspx: .*SPX_EAGER_MAX=much`, `^spxrun: also on ranks? [\d,-]+: .*SPX_EAGER_MAX=much`}, unmet: true},
	{name: "fatal", arg: "fatal", status: 6, once: []string{`^libspx: MPI_Send on MPI_COMM_WORLD failed: MPI_ERR_RANK`, `^  on rank \d+ of \d+ on `}}, // TestFatalNamesAll has the others
	{name: "abort", arg: "abort", status: -1, once: []string{`^libspx: MPI_Send failed: MPI_ERR_RANK`}},
	{name: "crash", arg: "crash", status: 128 + int(syscall.SIGSEGV), once: []string{`^libspx: MPI_Send: SIGSEGV at address 0x40;`}},
	{name: "leak", arg: "leak", env: []string{"SPX_CHECK=1"}, once: []string{
		`^libspx: SPX_CHECK: rank \d+ leaves 1 communicator `, `^spxrun: also on ranks [\d,-]+: SPX_CHECK: communicators are left at MPI_Finalize$`}},
}

func count(pattern, text string) int {
	return len(regexp.MustCompile("(?m)"+pattern).FindAllString(text, -1))
}

// What many ranks have to say for one cause is said once.
//
//	go test ./tests/broken -run TestOnce
func TestOnce(t *testing.T) {
	w := wrong{name: "alike"}
	program := w.compile(t)
	for _, a := range alike {
		t.Run(a.name, func(t *testing.T) {
			o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "16", program, a.arg), Env: a.env, Limit: 60 * time.Second})
			onlyOnce(t, o, a.status, a.seen(o))
		})
	}
}

func onlyOnce(t *testing.T, o harness.Outcome, status int, once []string) {
	t.Helper()
	if o.Late || o.Status != status && (status >= 0 || o.Status == 0) {
		t.Errorf("status %d, want %d; late %v", o.Status, status, o.Late)
	}
	for _, p := range once {
		if n := count(p, o.Stderr); n != 1 {
			t.Errorf("%d lines like %q, want 1\n%s", n, p, o.Text())
		}
	}
	if n := count(`^libspx: \S+ \S`, o.Stderr); n != 1 {
		t.Errorf("%d messages, want 1\n%s", n, o.Text())
	}
}

// Each rank in a network namespace of its own, as containers have them, does not see the agent's abstract socket: it has another way. So does a rank whose
// wrapper has closed that way (within the same user namespace, where it may look at the agent's), and one that sees no other process.
//
//	go test ./tests/broken -run TestOnceApart
func TestOnceApart(t *testing.T) {
	w := wrong{name: "alike"}
	program := w.compile(t)
	for name, wrapper := range map[string][]string{
		"network":            {"unshare", "-rn"},
		"network, closed":    {"unshare", "-n", "bash", "-c", `eval "exec $SPX_DOOR<&-"; exec "$0" "$@"`},
		"network, processes": {"unshare", "-rnmpf", "--mount-proc"},
	} {
		if out, err := exec.Command("unshare", append(wrapper[1:2:2], "true")...).CombinedOutput(); err != nil {
			t.Logf("%s: there can be no such namespaces: %v %s", name, err, out)
			continue
		}
		for _, a := range alike {
			if a.arg == "abort" || a.arg == "crash" { // their status is that of the wrapper, too
				continue
			}
			t.Run(name+","+a.name, func(t *testing.T) {
				args := append(harness.Spxrun(t, "8", wrapper[0]), append(wrapper[1:], program, a.arg)...)
				o := harness.Run(t, harness.Command{Args: args, Env: a.env, Limit: 60 * time.Second})
				onlyOnce(t, o, a.status, a.seen(o))
			})
		}
	}
}

// A rank that cannot have a file for its timeline says so for all.
func TestOnceNotTraced(t *testing.T) {
	w := wrong{name: "alike"}
	args := []string{filepath.Join(harness.Build(t), "bin/spxrun"), "--trace", filepath.Join(t.TempDir(), "out"), "-n", "8", "sh", "-c", `SPX_TRACE=/nowhere exec "$0"`, w.compile(t)}
	o := harness.Run(t, harness.Command{Args: args})
	onlyOnce(t, o, o.Status, []string{`^libspx: rank \d is not traced: a file in /nowhere: No such file or directory$`,
		`^spxrun: also on ranks [\d,-]+: not traced: a file in /nowhere: No such file or directory$`})
}

// held starts ranks of the program that wait for each other, stops their agent until each has asked it whether it may say why it ends the job, and lets it go on then.
func held(t *testing.T, ranks int, dir string, env []string, args ...string) harness.Outcome {
	var agent int
	var pids []int
	done := make(chan harness.Outcome, 1)
	go func() {
		done <- harness.Run(t, harness.Command{Args: harness.Spxrun(t, fmt.Sprint(ranks), args[0], args[1:]...), Env: env, Limit: 40 * time.Second})
	}()
	until := func(what string, is func() bool) {
		for began := time.Now(); !is(); time.Sleep(time.Millisecond) {
			if time.Since(began) > harness.Patience(20*time.Second) {
				t.Fatalf("no %s", what)
			}
		}
	}
	for r := range ranks {
		until("file of a rank", func() bool {
			var pid int
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("rank", r)))
			if err != nil {
				return false
			}
			if _, err := fmt.Sscan(string(text), &pid, &agent); err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
			return true
		})
	}
	syscall.Kill(agent, syscall.SIGSTOP) //nolint:errcheck // seen below
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		until("question of a rank", func() bool { // it waits for the answer in poll(2)
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
			number, _, _ := strings.Cut(string(text), " ")
			return number == fmt.Sprint(syscall.SYS_PPOLL) || runtime.GOARCH == "amd64" && number == "7"
		})
	}
	syscall.Kill(agent, syscall.SIGCONT) //nolint:errcheck // seen below
	return <-done
}

// Ranks that have not met yet: all of them are named, when all came so far before the first of them could end the job.
func TestNamesAll(t *testing.T) {
	program := (&wrong{name: "alike"}).compile(t)
	for name, wrapper := range map[string][]string{"host": nil, "network": {"unshare", "-rn"}} {
		if wrapper != nil && exec.Command(wrapper[0], append(wrapper[1:], "true")...).Run() != nil {
			t.Logf("%s: there can be no such namespaces", name)
			continue
		}
		for _, a := range alike {
			if !a.unmet {
				continue
			}
			t.Run(name+","+a.name, func(t *testing.T) {
				dir := t.TempDir()
				args := append(slices.Clone(wrapper), program)
				if a.arg != "" {
					args = append(args, a.arg)
				}
				o := held(t, 4, dir, append([]string{"ALIKE_HELD=" + dir}, a.env...), args...)
				onlyOnce(t, o, a.status, a.once)
				first := regexp.MustCompile(`rank (\d) of 4`).FindStringSubmatch(o.Stderr)
				if first == nil {
					first = regexp.MustCompile(`rank (\d)`).FindStringSubmatch(o.Stderr)
				}
				others := map[string]string{"0": "1-3", "1": "0,2-3", "2": "0-1,3", "3": "0-2"}
				if first == nil || !strings.Contains(o.Stderr, "spxrun: also on ranks "+others[first[1]]+": ") {
					t.Errorf("not all are named:\n%s", o.Text())
				}
			})
		}
	}
}

// The same for ranks that have met: all that have the same to say are named, and the one that has something else.
func TestFatalNamesAll(t *testing.T) {
	w, dir := wrong{name: "alike"}, t.TempDir()
	o := held(t, 4, dir, nil, w.compile(t), "held", dir)
	const rank, tag = `MPI_Send on MPI_COMM_WORLD failed: MPI_ERR_RANK: .*`, `MPI_Send on MPI_COMM_WORLD failed: MPI_ERR_TAG: .*`
	first := regexp.MustCompile(`(?m)^  on rank (\d) of 4`).FindStringSubmatch(o.Stderr)
	if first == nil {
		t.Fatalf("nobody says anything:\n%s", o.Text())
	}
	want := map[string][]string{
		"0": {`^spxrun: also on ranks 1-2: ` + rank, `^spxrun: at the same time on rank 3: ` + tag},
		"1": {`^spxrun: also on ranks 0,2: ` + rank, `^spxrun: at the same time on rank 3: ` + tag},
		"2": {`^spxrun: also on ranks 0-1: ` + rank, `^spxrun: at the same time on rank 3: ` + tag},
		"3": {`^spxrun: at the same time on ranks 0-2: ` + rank},
	}[first[1]]
	status := 6
	if first[1] == "3" {
		status = 4
	}
	onlyOnce(t, o, status, want)
}

// All that have left something are named, and nobody else.
func TestOnceNamesAll(t *testing.T) {
	w := wrong{name: "alike"}
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "4", w.compile(t), "leak"), Env: []string{"SPX_CHECK=1"}})
	first := regexp.MustCompile(`rank (\d) leaves`).FindStringSubmatch(o.Stderr)
	if first == nil {
		t.Fatalf("nobody leaves anything:\n%s", o.Text())
	}
	also := map[string]string{"0": "ranks 2-3", "2": "ranks 0,3", "3": "ranks 0,2"}[first[1]]
	if !strings.Contains(o.Stderr, "also on "+also+": ") {
		t.Errorf("rank %s speaks, the others are not %q:\n%s", first[1], also, o.Text())
	}
}

// An agent that is stopped answers nobody: each rank says then what it has to say, and none waits for ever. A process without a launcher has no agent.
func TestOnceWithoutAgent(t *testing.T) {
	w := wrong{name: "alike"}
	program := w.compile(t)
	lib := "LD_LIBRARY_PATH=" + filepath.Join(harness.Build(t), "lib")
	o := harness.Run(t, harness.Command{Args: []string{program, "early"}, Env: []string{lib}})
	if o.Status != 16 || count("^libspx: MPI_Comm_rank: fatal", o.Stderr) != 1 {
		t.Errorf("alone:\n%s", o.Text())
	}
	// The shell of rank 0 stops the agent, then both ranks go wrong; it continues the agent when they have spoken.
	script := `kill -STOP $SPX_AGENT; "$0" early 2>"$1/$SPX_RANK"; kill -CONT $SPX_AGENT`
	dir := t.TempDir()
	c := exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), "-n", "2", "sh", "-c", script, program, dir)
	c.Env = append(os.Environ(), lib)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stop := harness.AfterFunc(time.Minute, func() { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }) //nolint:errcheck // it may have ended
	defer stop.Stop()
	out, _ := c.CombinedOutput() //nolint:errcheck // its status is that of the shells
	for _, rank := range []string{"0", "1"} {
		text, err := os.ReadFile(filepath.Join(dir, rank))
		if err != nil || !strings.Contains(string(text), "was called before MPI_Init") {
			t.Errorf("rank %s has said nothing (%v): %s\n%s", rank, err, text, out)
		}
	}
	if !stop.Stop() {
		t.Errorf("they wait for the agent")
	}
}
