package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

type verdict string

const (
	passed     verdict = "pass"
	failed     verdict = "FAIL"
	expected   verdict = "expected" // fails, and expected.tsv says why
	unexpected verdict = "UNEXPECTED PASS"
	missing    verdict = "missing" // needs a function whose body is not written
	skipped    verdict = "skip"
	notRun     verdict = "not run" // the user has interrupted, or the piece was over
)

// result is what came of one line.
type result struct {
	line    testLine
	verdict verdict
	seconds float64
	why     string // for all but passed: the reason, the missing function, or the first line that went wrong
	output  string
}

// runner runs lines of the suite with one build of libspx.
type runner struct {
	spx        string                  // our build folder
	tree       func(dir string) string // the built suite that has a folder
	limit      time.Duration
	most       time.Duration // no line gets more than this
	cma        bool          // processes may read each other's memory
	hosts      *hosts        // nil: this one
	transports string        // SPX_TRANSPORTS; empty: preset

	ctx      context.Context // over when the user interrupts
	until    time.Time       // no line begins later; zero: no end
	progress *journal
}

// over tells whether no line is to begin any more.
func (r *runner) over() bool {
	return r.ctx.Err() != nil || !r.until.IsZero() && time.Now().After(r.until)
}

// run builds the line's program if need be, runs it and judges the outcome.
func (r *runner) run(l testLine) result {
	res := result{line: l, verdict: failed}
	if gb := memoryGB(); l.memory > gb*0.9 {
		res.verdict, res.why = skipped, fmt.Sprintf("needs %g GB of memory, there are %.1f", l.memory, gb)
		return res
	}
	dir := filepath.Join(r.tree(l.dir), l.dir)
	if out, err := r.make(dir, l.program); err != nil {
		res.why, res.output = "does not build: "+firstLine(out, "error|undefined|multiple"), out
		return res
	}
	limit := r.timeLimit(l)
	start := time.Now()
	out, status, late := r.spxrun(dir, l, limit)
	res.seconds = time.Since(start).Seconds()
	res.output = out
	switch why := judge(l.check, out, status); {
	case late:
		res.why = fmt.Sprintf("no end after %v: %s", limit, firstLine(out, "."))
		if fn := missingFunction(out); fn != "" {
			res.verdict, res.why = missing, fn
		}
	case missingFunction(out) != "":
		res.verdict, res.why = missing, missingFunction(out)
	case why == "":
		res.verdict = passed
	default:
		res.why = why
	}
	return res
}

// make builds one program of the suite with its own Makefile, unless it is there: the standard ABI makes it fit every build
// of the library.
func (r *runner) make(dir, program string) (string, error) {
	if st, err := os.Stat(filepath.Join(dir, program)); err == nil && st.Mode().IsRegular() {
		return "", nil
	}
	cmd := exec.Command("make", "-C", dir, program)
	cmd.Env = cleanEnv(r.spx)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// twins are variables of MPICH's that the lists set, with those of libspx that mean the same.
var twins = map[string]string{"MPIR_CVAR_CH4_COMM_CONNECT_TIMEOUT": "SPX_CONNECT_TIMEOUT"}

// spxrun runs the line's program. spxrun itself knows the time limit, as a launcher of the suite has to; if it does not keep
// it, the job gets SIGTERM, then SIGKILL.
func (r *runner) spxrun(dir string, l testLine, limit time.Duration) (out string, status int, late bool) {
	ctx, cancel := context.WithTimeout(r.ctx, limit+30*time.Second)
	defer cancel()
	words := append(r.hosts.command(filepath.Join(r.spx, "bin/spxrun")), l.launch...)
	words = append(words, "-n", fmt.Sprint(l.ranks), "./"+l.program)
	words = append(words, l.args...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(r.spx, "lib"), fmt.Sprintf("MPIEXEC_TIMEOUT=%.0f", limit.Seconds())), l.env...)
	for _, kv := range l.env {
		if name, value, _ := strings.Cut(kv, "="); twins[name] != "" {
			cmd.Env = append(cmd.Env, twins[name]+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, r.hosts.env()...)
	if !r.cma {
		cmd.Env = append(cmd.Env, "SPX_CMA=0")
	}
	if r.transports != "" {
		cmd.Env = append(cmd.Env, "SPX_TRANSPORTS="+r.transports)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var buf limited
	cmd.Stdout, cmd.Stderr = &buf, &buf
	start := time.Now()
	err := cmd.Run()
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whatever is left of the group
	}
	late = ctx.Err() != nil || (time.Since(start) >= limit && l.check != wantFailure)
	status = 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			status = 128 + int(ws.Signal())
		}
	case err != nil:
		status = 127
		fmt.Fprintln(&buf, err)
	}
	return buf.String(), status, late
}

// limited keeps the first megabyte.
type limited struct{ bytes.Buffer }

func (b *limited) Write(p []byte) (int, error) {
	if room := 1<<20 - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// launcherTells is what spxrun says of a process that dies while the others go on: no output of the program's.
var launcherTells = regexp.MustCompile(`^spxrun: rank \d+ \(pid .* without calling MPI_Finalize(; the other .* told and goe?s? on\.)?$`)

// judge returns why the outcome is not what the line wants, or "" when it is.
func judge(c check, out string, status int) string {
	noErrors, other := false, ""
	for _, line := range strings.Split(out, "\n") {
		switch t := strings.TrimSpace(line); {
		case strings.EqualFold(t, "no errors"):
			noErrors = true
		case t == "" || t == "Test Passed" || strings.Contains(t, "FORTRAN STOP"):
		case c == wantFailureNoErrors && launcherTells.MatchString(t):
		case other == "":
			other = t
		}
	}
	wantStatus := c == wantFailure || c == wantFailureNoErrors
	switch {
	case wantStatus && status == 0:
		return "exit status 0, where a failure was wanted"
	case c == wantFailure:
		return ""
	case c == wantExitZero:
		if status != 0 {
			return fmt.Sprintf("exit status %d: %s", status, firstLine(out, "."))
		}
		return ""
	case other != "":
		return "prints: " + other
	case !noErrors:
		return fmt.Sprintf("exit status %d without the line No Errors", status)
	case status != 0 && !wantStatus:
		return fmt.Sprintf("No Errors, but exit status %d", status)
	}
	return ""
}

// missingFunction finds the function that libspx said it has no body for.
var missingText = regexp.MustCompile(`\b(MPI\w*_\w+) is not supported by this version of libspx`)

func missingFunction(out string) string {
	if m := missingText.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return ""
}

// firstLine returns the first line that matches a pattern, else the first that is not empty, shortened.
func firstLine(text, pattern string) string {
	re := regexp.MustCompile(pattern)
	first := ""
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if first == "" {
			first = line
		}
		if re.MatchString(line) {
			first = line
			break
		}
	}
	if len(first) > 200 {
		first = first[:200] + "..."
	}
	return first
}

// memoryGB is the machine's available memory.
func memoryGB() float64 {
	text, _ := os.ReadFile("/proc/meminfo")
	for _, line := range strings.Split(string(text), "\n") {
		var kb float64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %f kB", &kb); n == 1 {
			return kb / (1 << 20)
		}
	}
	return 0
}
