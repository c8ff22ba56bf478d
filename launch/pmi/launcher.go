package pmi

import (
	"fmt"
	"os"
)

// A Launcher is the way to the other processes of a job that something else than spxrun has
// started, while it begins. PMI-1 is one (Open); PMIx, which needs its library, is in capi.
type Launcher interface {
	// Place is this process's rank, and the number of processes.
	Place() (rank, size int)
	// Name is the launcher's name for the job, which no other job on this machine has.
	Name() string
	// Appnum is the number of this process's program on the command line, -1 if the launcher does
	// not give it.
	Appnum() int
	// Near are the ranks that share this host, as reported by the launcher, possibly wrong; nil if
	// not reported.
	Near() []int
	// Socket is a descriptor on which Abort can be sent, also by other processes; -1 if there is
	// none.
	Socket() int
	// Put stores text of rank 0, which all processes can Get after the next Barrier.
	Put(key string, data []byte) error
	// Get returns what rank 0 has put.
	Get(key string) ([]byte, error)
	// Barrier waits for all processes of the job.
	Barrier() error
	// Close ends the conversation; the launcher does not notice if there is a Socket.
	Close()
}

// wire1 is the Launcher that speaks PMI-1.
type wire1 struct {
	*Client
	place  Place
	file   *os.File
	appnum int
	near   []int
}

// Open makes the acquaintance of the server that Find has found.
func Open(place Place) (Launcher, error) {
	w := &wire1{place: place, file: os.NewFile(uintptr(place.FD), "PMI")}
	if w.file == nil {
		return nil, fmt.Errorf("PMI_FD=%d is no descriptor", place.FD)
	}
	err := func() (err error) {
		if w.Client, err = Connect(w.file); err != nil {
			return fmt.Errorf(
				"%w (PMI_FD=%d. A program that a process of the job starts is not in the job: "+
					"unset PMI_FD in its environment to run it alone)", err, place.FD)
		}
		if w.appnum, err = w.Client.Appnum(); err != nil {
			return err
		}
		w.near = w.mapping()
		return nil
	}()
	if err != nil {
		w.file.Close()
		return nil, err
	}
	return w, nil
}

// mapping returns the ranks on this process's node, as reported by the server.
func (w *wire1) mapping() (near []int) {
	value, err := w.GetWord("PMI_process_mapping")
	if err != nil {
		return nil
	}
	nodes, err := Mapping(value, w.place.Size)
	if err != nil {
		return nil
	}
	for rank, node := range nodes {
		if node == nodes[w.place.Rank] {
			near = append(near, rank)
		}
	}
	return near
}

func (w *wire1) Place() (rank, size int)           { return w.place.Rank, w.place.Size }
func (w *wire1) Name() string                      { return w.KVS() + " " + w.place.Job }
func (w *wire1) Appnum() int                       { return w.appnum }
func (w *wire1) Near() []int                       { return w.near }
func (w *wire1) Socket() int                       { return w.place.FD }
func (w *wire1) Put(key string, data []byte) error { return w.PutBytes(key, data) }
func (w *wire1) Get(key string) ([]byte, error)    { return w.GetBytes(key) }
func (w *wire1) Close()                            { w.file.Close() }

// AbortRequest is what is written to a launcher's Socket to have the job ended with a status.
func AbortRequest(status int) []byte { return fmt.Appendf(nil, "cmd=abort exitcode=%d\n", status) }

// FinalizeRequest is what is written there when a process has left the job; the server answers with
// a line.
func FinalizeRequest() []byte { return []byte("cmd=finalize\n") }
