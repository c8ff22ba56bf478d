package hydra

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"libspx/tests/harness"
)

func spxrun(t *testing.T) string { return filepath.Join(harness.Build(t), "bin/spxrun") }

// Jobs of Hydra's meet those of spxrun, and each other, on one host: in memory.
func TestMeets(t *testing.T) {
	hydra, run := mpiexec(t), spxrun(t)
	byHydra := func(env []string, words ...string) harness.Command {
		return harness.Command{Args: append([]string{hydra, "-n", "2"}, words...), Env: env}
	}
	bySpxrun := func(env []string, words ...string) harness.Command {
		return harness.Command{Args: append([]string{run, "-n", "2"}, words...), Env: env}
	}
	dir := t.TempDir()
	t.Run("accept", func(t *testing.T) {
		(&harness.Meeting{Accepts: byHydra, Connects: bySpxrun, Dir: dir}).Run(t)
	})
	t.Run("connect", func(t *testing.T) {
		(&harness.Meeting{Accepts: bySpxrun, Connects: byHydra, Dir: dir}).Run(t)
	})
	t.Run("both", func(t *testing.T) {
		(&harness.Meeting{Accepts: byHydra, Connects: byHydra, Dir: dir}).Run(t)
	})
	t.Run("no file", func(t *testing.T) {
		o := harness.Run(t, byHydra([]string{"SPX_NAME_SERVER=" + dir + "/none"}, program(t, "tests/hosts/testdata/where.c")))
		check(t, o, max(o.Status, 1), nil, "SPX_NAME_SERVER: ", "(spxctl names serve "+dir+"/none)")
	})
}

// The same on hosts that the jobs do not share: over the network. A job on one host is to be told so (SPX_MORE_HOSTS).
func TestMeetsOnHosts(t *testing.T) {
	hydra, run, script, bed := mpiexec(t), spxrun(t), harness.HostsScript(), harness.NewBed(t, "y", 3, nil)
	server := filepath.Join(bed.Dir(), "names")
	harness.ServeNames(t, bed.On(3), server)
	rsh := filepath.Join(bed.Dir(), "rsh")
	text := fmt.Sprintf("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\nexec %s rsh \"$host\" \"LD_LIBRARY_PATH='$LD_LIBRARY_PATH' $*\"\n", script)
	if err := os.WriteFile(rsh, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	byHydra := func(on int, hosts string, more ...string) func([]string, ...string) harness.Command {
		return func(env []string, words ...string) harness.Command {
			args := bed.On(on, hydra, "-launcher", "ssh", "-launcher-exec", rsh, "-iface", "eth0", "-hosts", hosts, "-n", "2")
			return harness.Command{Args: append(args, words...), Env: append(append([]string{"SPX_SPIN=0"}, more...), env...)}
		}
	}
	two, third := byHydra(1, bed.Host(1)+":1,"+bed.Host(2)+":1"), byHydra(3, bed.Host(3)+":2", "SPX_MORE_HOSTS=1")
	bySpxrun := func(env []string, words ...string) harness.Command {
		return harness.Command{Args: append(bed.On(3, run, "--more-hosts", "-n", "2"), words...), Env: append(env, "SPX_SPIN=0")}
	}
	t.Run("spxrun's", func(t *testing.T) {
		(&harness.Meeting{Accepts: bySpxrun, Connects: two, Dir: bed.Dir(), Server: server}).Run(t)
	})
	t.Run("both", func(t *testing.T) {
		(&harness.Meeting{Accepts: two, Connects: third, Dir: bed.Dir(), Server: server}).Run(t)
	})
}
