// Spxrun runs programs as an MPI job; mpiexec and mpirun are its other names. spxrun --help and
// docs/running.md explain it. The agent that it starts on the host is the same binary under the
// name spx-agent; on other hosts it is selected by an argument. So is the master of a host that an
// agent starts, under the name spx-master.
package main

import (
	"os"
	"path/filepath"
	"runtime"

	"libspx/launch/agent"
	"libspx/launch/control"
	"libspx/launch/front"
	"libspx/launch/probe"
	"libspx/launch/process"
	"libspx/launch/service"
)

// The agent's ranks are killed when the thread ends that has started them: it has to be the main
// thread.
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) > 1 && os.Args[1] == process.IgnoreWord {
		os.Exit(process.IgnoreMain(os.Args[2:]))
	}
	if filepath.Base(os.Args[0]) == service.MasterName {
		os.Exit(agent.MasterMain())
	}
	if filepath.Base(os.Args[0]) == agent.Name || len(os.Args) == 2 && os.Args[1] == control.HostWord {
		os.Exit(agent.Main())
	}
	if len(os.Args) == 2 && os.Args[1] == control.KeeperWord {
		os.Exit(front.Keep())
	}
	if len(os.Args) == 2 && os.Args[1] == probe.HostWord {
		os.Exit(probe.Main())
	}
	os.Exit(front.Main(os.Args[1:]))
}
