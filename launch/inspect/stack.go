package inspect

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/diagnose"
	"libspx/shm"
)

// Stacks. A thread that waits has published its registers, and does not run: its stack is read by
// process_vm_readv, and followed from here. A process that is in no call that waits is stopped by
// ptrace for as long as that takes. This is done by a process of its own (Word), because the agent
// is the parent, which would take the stops for ends.

// Word is the first argument of that process; the rest are process ids.
const Word = "spx-stacks"

const mostFrames = 64

// stacks fills in those of all processes. waits are the records of those that wait, by their
// places.
func stacks(segment *shm.Segment, procs []diagnose.Proc, waits [][]shm.Wait) {
	if runtime.GOARCH != "amd64" {
		for i := range procs {
			procs[i].Missing = "the stack is not shown: this is possible on x86-64 only"
		}
		return
	}
	known := newFiles()
	var run []int
	for i := range procs {
		switch p := &procs[i]; {
		case p.Missing != "":
		case len(waits[i]) > 0:
			w := &waits[i][0]
			p.Stack, p.Missing = known.follow(p.Pid, registersOf(w))
			if !still(segment, p.Proc, w) {
				p.Stack, p.Missing = nil, "it has gone on meanwhile"
			}
		case p.State == diagnose.Running || p.State == diagnose.Starting ||
			p.State == diagnose.Stopped:
			run = append(run, i)
		}
	}
	if len(run) > 0 {
		traced(procs, run)
	}
}

// registersOf are those that a thread has published.
func registersOf(w *shm.Wait) *registers {
	r := &registers{}
	for k, n := range []int{regPC, regSP, regBP, regBX, regR12, regR12 + 1, regR12 + 2,
		regR12 + 3} {
		r.set(n, w.Registers[k])
	}
	return r
}

// follow is the stack of a thread with these registers, from the MPI call upwards; missing
// describes what cannot be shown.
func (s *files) follow(pid int, r *registers) (out []diagnose.Frame, missing string) {
	maps, err := mappings(pid)
	if err != nil {
		return nil, "the stack cannot be read: " + err.Error()
	}
	denied := error(nil)
	read := func(b []byte, at uint64) bool {
		n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}},
			[]unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
		if err != nil {
			denied = err
		}
		return err == nil && n == len(b)
	}
	word := func(at uint64) (uint64, bool) {
		var b [8]byte
		ok := read(b[:], at)
		return binary.LittleEndian.Uint64(b[:]), ok
	}
	for n := 0; n < mostFrames; n++ {
		pc := r.v[regPC]
		if pc == 0 {
			break
		}
		look := pc
		if n > 0 {
			look-- // the call, not what follows it
		}
		m, f := s.find(pid, maps, look, read)
		if f == nil {
			missing = fmt.Sprintf("the stack ends at %#x, of which nothing is known", pc)
			break
		}
		at, ok := f.address(m, look)
		if !ok {
			missing = fmt.Sprintf("the stack ends in %s", f.path)
			break
		}
		out = append(out, f.frames(at)...)
		fn := f.function(at)
		if fn == nil {
			missing = "the stack ends in " + out[len(out)-1].Text() +
				", which has no call frame information"
			break
		}
		t, err := fn.row(at)
		if err != nil {
			missing = err.Error()
			break
		}
		next, ok := t.up(r, word)
		if !ok || next.v[regSP] <= r.v[regSP] {
			break // the first function of a thread has no caller
		}
		*r = next
	}
	if denied != nil {
		missing = fmt.Sprintf(
			"the rest of the stack cannot be read: %v (does the system forbid reading other "+
				"processes' memory?)", denied)
	}
	return trim(out), missing
}

func (s *files) find(pid int, maps []Mapping, pc uint64, read func([]byte, uint64) bool) (Mapping,
	*file) {
	for _, m := range maps {
		if pc >= m.from && pc < m.to {
			return m, s.open(pid, m, read)
		}
	}
	return Mapping{}, nil
}

// trim takes away what is within libspx, but for the MPI function that was called, and what has
// called main.
func trim(stack []diagnose.Frame) []diagnose.Frame {
	inner := 0
	for i, f := range stack {
		if (&file{path: f.Object}).ours() {
			inner = i
			switch {
			case strings.HasPrefix(f.Function, "PMPI_"):
				stack[i].Function = f.Function[1:]
			case strings.HasPrefix(f.Function, "spx_c_"): // called in place of its caller
				stack[i].Function = "MPI_" + f.Function[len("spx_c_"):]
			}
		}
	}
	stack = stack[inner:]
	for i, f := range stack {
		switch f.Function {
		case "main":
			return stack[:i+1]
		case "_start", "start_thread", "__libc_start_main", "__libc_start_call_main":
			return stack[:i]
		}
	}
	return stack
}

// ---- processes that do not wait ----

// answer is what Word answers, for each process.
type answer struct {
	Stack   []diagnose.Frame
	Missing string
}

const traceLimit = 3 * time.Second

// traced fills in the stacks of processes that are in no call that waits.
func traced(procs []diagnose.Proc, run []int) {
	args := []string{Word}
	for _, i := range run {
		args = append(args, strconv.Itoa(procs[i].Pid))
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "spx-agent"
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	answers := map[int]answer{}
	if err == nil {
		// it may have ended
		late := time.AfterFunc(traceLimit, func() { cmd.Process.Kill() }) //nolint:errcheck
		err = json.NewDecoder(out).Decode(&answers)
		late.Stop()
		cmd.Wait() //nolint:errcheck // the agent may have reaped it as an orphan
	}
	for _, i := range run {
		p := &procs[i]
		a, ok := answers[p.Pid]
		p.Stack, p.Missing = a.Stack, a.Missing
		if !ok {
			p.Missing = fmt.Sprintf("the stack cannot be read (%v)", err)
		}
	}
}

// TraceMain is the process that briefly stops others: it writes their stacks to its standard
// output.
func TraceMain(args []string) int {
	runtime.LockOSThread()
	answers := map[int]answer{}
	known := newFiles()
	for _, a := range args {
		if pid, err := strconv.Atoi(a); err == nil {
			answers[pid] = known.trace(pid)
		}
	}
	if json.NewEncoder(os.Stdout).Encode(answers) != nil {
		return 1
	}
	return 0
}

// Of ptrace(2).
const (
	stopLimit = 500 * time.Millisecond
	stopPoll  = 200 * time.Microsecond
)

// trace stops the first thread of a process, reads its stack, and lets it go on.
func (s *files) trace(pid int) (out answer) {
	if err := unix.PtraceSeize(pid); err != nil {
		out.Missing = fmt.Sprintf(
			"the stack cannot be read: ptrace: %v (do containers or kernel.yama.ptrace_scope "+
				"forbid it?)", err)
		return out
	}
	signal := 0
	defer func() {
		unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(signal), 0, 0)
	}()
	if err := unix.PtraceInterrupt(pid); err != nil {
		out.Missing = fmt.Sprintf("the process cannot be stopped: %v", err)
		return out
	}
	var ws unix.WaitStatus
	for until := time.Now().Add(stopLimit); ; time.Sleep(stopPoll) {
		got, err := unix.Wait4(pid, &ws, unix.WNOHANG|unix.WALL, nil)
		if got == pid && ws.Stopped() {
			break
		}
		if err != nil && err != unix.EINTR || got == pid || time.Now().After(until) {
			out.Missing = "the process does not stop: it is held in the kernel, or has ended"
			return out
		}
	}
	if uint32(ws)>>16 == 0 { // a signal that it is about to get: it gets it
		signal = int(ws.StopSignal())
	}
	var v unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &v); err != nil {
		out.Missing = fmt.Sprintf("its registers cannot be read: %v", err)
		return out
	}
	out.Stack, out.Missing = s.follow(pid, registersFrom(&v))
	return out
}
