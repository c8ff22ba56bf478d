package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/trace"
)

// What --trace and --profile want of the agents: a directory on each host into which its processes
// write, notes of how they have ended, comparisons of the hosts' clocks; at the end the files of
// other hosts come to spxrun's, which makes one of all (package trace).

// comparisons of clocks with a host, at its beginning and at its end.
const comparisons = 12

// shipped is the size of the parts in which a file comes from another host.
const shipped = 256 << 10

type tracing struct {
	dir    string // empty: nothing is traced
	room   int
	notes  *trace.Notes // of the host that decides
	parted atomic.Int64 // when a part of a file has come last, ns since 1970
}

// environment tells a process that it is traced.
func (t *tracing) environment() []string {
	if t.dir == "" {
		return nil
	}
	return []string{trace.EnvDir + "=" + t.dir, trace.EnvRoom + "=" + strconv.Itoa(t.room)}
}

// begin prepares it on spxrun's host.
func (t *tracing) begin(a *agent) (err error) {
	if a.spec.Trace == "" {
		return nil
	}
	t.dir, t.room = a.spec.Trace, a.spec.TraceRoom
	if t.notes, err = trace.OpenNotes(t.dir); err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	for i := range max(1, len(a.spec.Hosts)) {
		t.notes.Add(trace.Note{Host: &trace.HostNote{Number: i, Name: a.hostName(i)}})
	}
	return nil
}

// beginOnRemoteHosts prepares it on another host.
func (t *tracing) beginOnRemoteHosts(a *agent) (err error) {
	if a.spec.Trace == "" {
		return nil
	}
	t.room = a.spec.TraceRoom
	t.dir, err = TraceDir(len(a.ranks) * t.room * trace.RecordBytes)
	return err
}

// TraceDir makes a directory for so many bytes: in memory if they have room there, since writing to
// it is never held up.
func TraceDir(bytes int) (string, error) {
	const memory = "/dev/shm"
	var s unix.Statfs_t
	if unix.Statfs(memory, &s) == nil && uint64(s.Bavail)*uint64(s.Bsize)/2 > uint64(bytes) {
		if dir, err := os.MkdirTemp(memory, "spx-trace-"); err == nil {
			return dir, nil
		}
	}
	dir, err := os.MkdirTemp("", "spx-trace-")
	if err != nil {
		return "", fmt.Errorf("--trace: no directory for what the processes write: %w", err)
	}
	return dir, nil
}

// note writes down the ends of processes.
func (t *tracing) note(e job.Event) {
	end, ok := e.(job.Ended)
	if !ok || t.notes == nil {
		return
	}
	how := ""
	switch w := end.Wait; {
	case w.Unknown:
	case w.Signal != 0:
		how = fmt.Sprintf("was killed by signal %d (%v)", w.Signal, syscall.Signal(w.Signal))
	case end.Owner == job.OwnerAborted:
		how = fmt.Sprintf("has ended the job (status %d)", w.Code)
	case end.Owner == job.OwnerInit:
		how = fmt.Sprintf("exited with status %d without calling MPI_Finalize", w.Code)
	case w.Code != 0:
		how = fmt.Sprintf("exited with status %d", w.Code)
	}
	t.notes.Add(trace.Note{End: &trace.EndNote{Proc: end.Proc, At: trace.Now(), How: how}})
}

// ask asks another host for its time, some times: each answer leads to the next question.
func (t *tracing) ask(h *remoteHost) {
	if t.notes == nil {
		return
	}
	if h.asked.Swap(comparisons) == 0 {
		h.box.put(&control.Message{Clock: &control.Clock{Before: trace.Now()}})
	}
}

// compare takes an answer: on the goroutine that reads, so that it waits for nothing.
func (t *tracing) compare(h *remoteHost, c *control.Clock) {
	after := trace.Now()
	if h.asked.Load() <= 0 || c.Before > after {
		return
	}
	t.notes.Add(trace.Note{Clock: &trace.ClockNote{Host: h.number, Before: c.Before, There: c.There,
		After: after}})
	if h.asked.Add(-1) > 0 {
		h.box.put(&control.Message{Clock: &control.Clock{Before: trace.Now()}})
	}
}

// take takes a part of a file of another host. That host may be broken: it cannot write elsewhere.
func (t *tracing) take(h *remoteHost, p *control.TracePart) {
	if t.notes == nil || p.At < 0 || filepath.Base(p.Name) != p.Name || !isTraceFile(p.Name) {
		return
	}
	t.parted.Store(time.Now().UnixNano())
	f, err := os.OpenFile(filepath.Join(t.dir, p.Name), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	f.WriteAt(p.Data, p.At) //nolint:errcheck // what is missing is seen when it is read
}

func isTraceFile(name string) bool {
	proc, life := 0, 0
	n, err := fmt.Sscanf(name, "%d.%d", &proc, &life)
	return err == nil && n == 2 && fmt.Sprintf("%d.%d", proc, life) == name
}

// latest is when a part of a file has come last.
func (t *tracing) latest() time.Time { return time.Unix(0, t.parted.Load()) }

// ship sends the files of this host to spxrun's, and removes them.
func (t *tracing) ship(a *agent) {
	if t.dir == "" {
		return
	}
	defer os.RemoveAll(t.dir)
	if a.fenced || a.up.Hurried() {
		return
	}
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if isTraceFile(e.Name()) && shipFile(a.up.conn, t.dir, e.Name()) != nil {
			return
		}
	}
}

// shipFile sends the parts of a file that hold anything.
func shipFile(to *control.Conn, dir, name string) error {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	b := make([]byte, shipped)
	for at := int64(0); at < info.Size(); {
		from, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err != nil { // nothing but a hole is left
			return to.Send(&control.Message{Trace: &control.TracePart{Name: name,
				At: info.Size() - 1, Data: []byte{0}}})
		}
		n, err := f.ReadAt(b, from)
		if n == 0 {
			return err
		}
		if err := to.Send(&control.Message{Trace: &control.TracePart{Name: name, At: from,
			Data: b[:n]}}); err != nil {
			return err
		}
		at = from + int64(n)
	}
	return nil
}
