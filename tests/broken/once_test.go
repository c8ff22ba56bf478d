package broken

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// alike is what 16 ranks do in the same way, and what is to be seen of it: exactly one line that matches each pattern.
var alike = []struct {
	name, arg string
	env       []string
	status    int      // -1: not 0 (who ends the others may be ended by another one of them meanwhile)
	once      []string // patterns of lines, of which there is one
}{
	{name: "early", arg: "early", status: 16, once: []string{
		`^libspx: MPI_Comm_rank: fatal: MPI_Comm_rank was called before MPI_Init`,
		`^spxrun: also on ranks [\d,-]+: MPI_Comm_rank: fatal: MPI_Comm_rank was called before MPI_Init`}},
	{name: "setting", env: []string{"SPX_EAGER_MAX=much"}, status: 13, once: []string{
		`^libspx: .*SPX_EAGER_MAX=much`, `^spxrun: also on ranks [\d,-]+: .*SPX_EAGER_MAX=much`}},
	{name: "fatal", arg: "fatal", status: 6, once: []string{`^libspx: MPI_Send on MPI_COMM_WORLD failed: MPI_ERR_RANK`, `^  on rank \d+ of 16`}},
	{name: "abort", arg: "abort", status: -1, once: []string{`^libspx: MPI_Send failed: MPI_ERR_RANK`}},
	{name: "crash", arg: "crash", status: 128 + int(syscall.SIGSEGV), once: []string{`^libspx: MPI_Send: SIGSEGV at address 0x40;`}},
	{name: "leak", arg: "leak", env: []string{"SPX_CHECK=1"}, once: []string{
		`^libspx: SPX_CHECK: rank \d+ leaves 1 communicators`, `^spxrun: also on ranks [\d,-]+: SPX_CHECK: communicators are left at MPI_Finalize$`}},
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
			if o.Late || o.Status != a.status && (a.status >= 0 || o.Status == 0) {
				t.Errorf("status %d, want %d; late %v", o.Status, a.status, o.Late)
			}
			for _, p := range a.once {
				if n := count(p, o.Stderr); n != 1 {
					t.Errorf("%d lines like %q, want 1\n%s", n, p, o.Text())
				}
			}
			if n := count(`^libspx: \S+ \S`, o.Stderr); n != 1 {
				t.Errorf("%d messages, want 1\n%s", n, o.Text())
			}
		})
	}
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
	began := time.Now()
	c := exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), "-n", "2", "sh", "-c", script, program, dir)
	c.Env = append(os.Environ(), lib)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stop := time.AfterFunc(time.Minute, func() { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }) //nolint:errcheck // it may have ended
	defer stop.Stop()
	out, _ := c.CombinedOutput() //nolint:errcheck // its status is that of the shells
	for _, rank := range []string{"0", "1"} {
		text, err := os.ReadFile(filepath.Join(dir, rank))
		if err != nil || !strings.Contains(string(text), "was called before MPI_Init") {
			t.Errorf("rank %s has said nothing (%v): %s\n%s", rank, err, text, out)
		}
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("they have waited for %v", took)
	}
}
