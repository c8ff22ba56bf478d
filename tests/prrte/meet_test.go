package prrte

import (
	"path/filepath"
	"testing"

	"libspx/tests/harness"
)

// Jobs of PRRTE's meet those of spxrun, and each other, on one host.
func TestMeets(t *testing.T) {
	need(t)
	byPRRTE := func(env []string, words ...string) harness.Command {
		c := command("2", words...)
		c.Env = env
		return c
	}
	bySpxrun := func(env []string, words ...string) harness.Command {
		return harness.Command{Args: append([]string{filepath.Join(harness.Build(t), "bin/spxrun"), "-n", "2"}, words...), Env: env}
	}
	dir := t.TempDir()
	t.Run("accept", func(t *testing.T) { (&harness.Meeting{Accepts: byPRRTE, Connects: bySpxrun, Dir: dir}).Run(t) })
	t.Run("connect", func(t *testing.T) { (&harness.Meeting{Accepts: bySpxrun, Connects: byPRRTE, Dir: dir}).Run(t) })
	t.Run("both", func(t *testing.T) { (&harness.Meeting{Accepts: byPRRTE, Connects: byPRRTE, Dir: dir}).Run(t) })
}
