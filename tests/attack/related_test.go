package attack

import (
	"path/filepath"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Where Yama is active, the processes of a job may read each other's memory, and no others may: each names the agent of its host, of which all of them descend (docs/security.md).
func TestRelatedAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		procs int
		words func(program []string) []string
	}{
		{"ranks", 3, func(p []string) []string { return append([]string{"-n", "3"}, p...) }},
		{"behind a shell", 2, func(p []string) []string { return append([]string{"-n", "2", "sh", "-c", `"$0" "$@"; exit $?`}, p...) }},
		{"spawned", 4, func(p []string) []string { return append(append([]string{"-n", "2"}, p...), "spawn") }},
		{"a spawned shell", 3, func(p []string) []string {
			return append([]string{"-n", "1", "sh", "-c", `"$0" "$@" & wait $!`}, append(p, "spawn")...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			program, env := harness.RelatedProgram(t, dir)
			args := append(harness.Spxrun(t, "1", "")[:1:1], c.words(program)...)
			o := harness.Run(t, harness.Command{Args: args, Env: env, Limit: time.Minute})
			for _, p := range harness.RelatedOf(t, o, c.procs, dir) {
				if p.Agent == 0 || p.Named != p.Agent {
					t.Errorf("process %d has named %d, not its agent %d", p.Pid, p.Named, p.Agent)
				}
				if p.Gets == 0 {
					t.Errorf("process %d has read no message out of its sender's memory", p.Pid)
				}
			}
		})
	}
}

// Processes of two jobs that are connected do not descend from the same agent: they find out that they may not read each other's memory, and messages and windows work by other ways.
func TestJobsThatAreNotRelated(t *testing.T) {
	dir := t.TempDir()
	program, env := harness.RelatedProgram(t, dir)
	job := func(how string) chan harness.Outcome {
		done := make(chan harness.Outcome, 1)
		args := append(harness.Spxrun(t, "1", "")[:1:1], "-n", "1")
		args = append(append(args, program...), how, filepath.Join(dir, "port"))
		go func() { done <- harness.Run(t, harness.Command{Args: args, Env: env, Limit: time.Minute}) }()
		return done
	}
	accepts, connects := job("accept"), job("connect")
	a, b := harness.RelatedOf(t, <-accepts, 1, dir)[0], harness.RelatedOf(t, <-connects, 1, dir)[0]
	for _, p := range []harness.Related{a, b} {
		if p.Named != p.Agent || p.Gets != 0 {
			t.Errorf("process %d has named %d (its agent is %d), and has read %d messages of the other job out of its memory", p.Pid, p.Named, p.Agent, p.Gets)
		}
	}
	if a.Agent == b.Agent {
		t.Errorf("both jobs have the agent %d", a.Agent)
	}
}
