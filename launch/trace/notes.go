package trace

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// notesFile holds what the agent that decides has seen of the job, a line each, as it happens.
const notesFile = "notes"

// A Note is a thing that an agent has seen. Exactly one of the pointers is set.
type Note struct {
	Host  *HostNote  `json:"host,omitempty"`
	End   *EndNote   `json:"end,omitempty"`
	Clock *ClockNote `json:"clock,omitempty"`
}

// HostNote names a host by its number.
type HostNote struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
}

// EndNote: a process has ended.
type EndNote struct {
	Proc int    `json:"process"`
	At   uint64 `json:"at"`            // ns of this host's clock
	How  string `json:"how,omitempty"` // empty: well
}

// ClockNote is a comparison of this host's clock with another host's: that one reported There
// between Before and After.
type ClockNote struct {
	Host                 int `json:"number"`
	Before, There, After uint64
}

// Now is the clock that traces are written by, in ns.
func Now() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return uint64(t.Nano())
}

// Notes writes them.
type Notes struct {
	mu sync.Mutex
	to *os.File
}

// OpenNotes begins to write in a directory.
func OpenNotes(dir string) (*Notes, error) {
	f, err := os.OpenFile(filepath.Join(dir, notesFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Notes{to: f}, nil
}

// Add writes one; a nil Notes takes none.
func (n *Notes) Add(note Note) {
	if n == nil {
		return
	}
	line, err := json.Marshal(note)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.to.Write(append(line, '\n')) //nolint:errcheck // the trace has no mark then
}

// readNotes reads what was written; a line that is cut short is left out.
func readNotes(dir string) (out []Note) {
	f, err := os.Open(filepath.Join(dir, notesFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n Note
		if json.Unmarshal(lines.Bytes(), &n) == nil {
			out = append(out, n)
		}
	}
	return out
}
