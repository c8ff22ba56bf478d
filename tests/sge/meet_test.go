package sge

import (
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// A job within Grid Engine, on both hosts, meets one that is started on the first of them outside of it, and finds it by a name service there.
func TestMeets(t *testing.T) {
	c, build := newCell(t), harness.Build(t)
	dir := harness.SharedDir(t)
	server := filepath.Join(dir, "names")
	harness.ServeNames(t, c.on().Args, server)
	byQsub := func(env []string, words ...string) harness.Command {
		options, output := c.batch(t, filepath.Join(build, "bin/mpirun")+" -ppn 1 -n 2 "+strings.Join(words, " "))
		line := `o=$0; qsub -sync y "$@" >&2; s=$?; sed 1d "$o"; exit $s` // the first line: batch's
		cmd := c.on(append([]string{"sh", "-c", line, output}, options...)...)
		cmd.Env = append(cmd.Env, env...)
		return cmd
	}
	bySpxrun := func(env []string, words ...string) harness.Command {
		cmd := c.on(append([]string{filepath.Join(build, "bin/spxrun"), "--more-hosts", "-n", "2"}, words...)...)
		cmd.Env = append(cmd.Env, env...)
		return cmd
	}
	(&harness.Meeting{Accepts: byQsub, Connects: bySpxrun, Dir: dir, Server: server}).Run(t)
}
