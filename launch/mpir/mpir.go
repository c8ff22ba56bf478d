package mpir

// A Process is an entry of the table.
type Process struct {
	Host, File string
	Pid        int
}

// BeingDebugged tells whether a debugger has asked for the table.
func BeingDebugged() bool { return beingDebugged != 0 }

// Spawned shows the processes, by rank. If a debugger has asked for them it stops this program
// meanwhile.
func Spawned(list []Process) {
	iAmStarter, partialAttachOK = 1, 1
	table := make([]procDesc, max(1, len(list)))
	for i, p := range list {
		table[i] = procDesc{text(p.Host), text(p.File), int32(p.Pid)}
	}
	// kept for good: the garbage collector moves nothing
	proctable, proctableSize = &table[0], int32(len(list))
	debugState = stateSpawned
	if BeingDebugged() {
		breakpoint()
	}
}

// Aborting tells the debugger that the job has failed.
func Aborting(why string) {
	abortString, debugState = text(why), stateAborting
	if BeingDebugged() {
		breakpoint()
	}
}

func text(s string) *byte { return &append([]byte(s), 0)[0] }
