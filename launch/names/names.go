// Package names is a name service for jobs that share no host (MPI-5.0, 11.9.4): a server, which
// `spxctl names serve` runs, and how the agents of jobs ask it.
//
// Whoever asks makes a connection for each question, proves by it that it has the key of the
// server's file (File), and sends one Request, which one Answer follows. What is said is encrypted:
// the names of ports have keys in them. So there is no connection whose end would mean anything. A
// name belongs to the job that has published it, which holds it by saying so again and again
// (Hold): when it has not for Lease, it is gone, with its job. A server that begins anew has no
// names until the jobs have said theirs again, and answers for what it does not know when they have
// had the time to (Settle).
//
// The package owns the table, the form of the messages and of the file. It starts no job and knows
// no port.
package names

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Times of names.
const (
	Renew = 2 * time.Second        // between two times that a job says which names it has
	Retry = 500 * time.Millisecond // after one that was not heard
	Lease = 6 * Renew              // a name of which nothing was heard for so long is gone
	// so long after its beginning a server waits for what jobs have published at the one before
	Settle = Renew + time.Second
)

// Version of the messages.
const Version = 1

// Kinds of requests.
const (
	Publish   = "publish"   // Name is Port's, if it is not another job's
	Unpublish = "unpublish" // Name is free again
	Lookup    = "lookup"    // what is the port of Name
	Hold      = "hold"      // the job has these Names
	Leave     = "leave"     // the job has none any more
	List      = "list"      // all names
)

// A Request is what a job asks.
type Request struct {
	Version int
	Kind    string
	Job     uint64
	Name    string            `json:",omitempty"`
	Port    string            `json:",omitempty"`
	Names   map[string]string `json:",omitempty"` // ports by name
}

// An Answer is what it is told.
type Answer struct {
	Version int
	Port    string `json:",omitempty"` // of Lookup; of a name that another job has: that one's
	Job     uint64 `json:",omitempty"` // that has the name
	// names that another job has, of those that were to be published or held
	Taken   []string `json:",omitempty"`
	Unknown bool     `json:",omitempty"` // there is no such name, or it is not this job's
	// why the request was refused as a whole; empty: it was not
	Text string  `json:",omitempty"`
	List []Entry `json:",omitempty"`
}

// An Entry is a name.
type Entry struct {
	Name, Port string
	Job        uint64
}

// Limits on messages and names.
const (
	MostMessage = 1 << 20
	MostName    = 4096
	MostPort    = 1024
	MostNames   = 1 << 16 // of a server
	MostHeld    = 128     // in one request
)

var errForm = errors.New("this is no message of the name service")

// Write sends a Request or an Answer.
func Write(w io.Writer, m any) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(text) > MostMessage {
		return fmt.Errorf("a message of %d bytes; at most %d are possible", len(text), MostMessage)
	}
	_, err = w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

func read(r io.Reader, into any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > MostMessage {
		return errForm
	}
	// grows with what comes, not with what is said to come
	text, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return err
	}
	if len(text) < int(n) {
		return io.ErrUnexpectedEOF
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(into); err != nil || d.InputOffset() != int64(len(text)) {
		return errForm
	}
	return nil
}

// ReadRequest reads what a job asks, and checks it.
func ReadRequest(r io.Reader) (*Request, error) {
	q := new(Request)
	if err := read(r, q); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	return q, nil
}

func (q *Request) check() error {
	switch q.Kind {
	case Publish:
		if q.Name == "" || q.Port == "" {
			return errForm
		}
	case Unpublish, Lookup:
		if q.Name == "" {
			return errForm
		}
	}
	if len(q.Name) > MostName || len(q.Port) > MostPort || len(q.Names) > MostHeld {
		return errForm
	}
	for name, port := range q.Names {
		if name == "" || port == "" || len(name) > MostName || len(port) > MostPort {
			return errForm
		}
	}
	return nil
}

// ReadAnswer reads an answer.
func ReadAnswer(r io.Reader) (*Answer, error) {
	a := new(Answer)
	if err := read(r, a); err != nil {
		return nil, err
	}
	if len(a.Port) > MostPort {
		return nil, errForm
	}
	return a, nil
}
