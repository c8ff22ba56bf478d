// Package control is what spxrun and the agent of a host say to each other: messages on a stream socket.
//
// It owns the form of the messages alone. The first message to the agent is the Job; then Signals follow. The agent answers with
// Stopped and, last, Done. The form is that of encoding/gob: arguments and variables may hold any bytes, and a reader passes over
// fields that it does not know.
package control

import (
	"encoding/gob"
	"fmt"
	"io"
	"sync"
	"time"
)

// Version of the messages; both ends are the same binary on one host, and will not always be between hosts.
const Version = 1

// MemoryFD is the number under which a rank inherits the memory file: out of the way of shells and of programs that count from 3.
const MemoryFD = 62

// ListenFD is the number under which a rank inherits the socket on which it listens, if it is reached over the network.
const ListenFD = 63

// A Job is all that an agent needs to know to run its part of a job.
type Job struct {
	Version           int
	Programs          []Program
	Tag               bool
	OutputDir         string
	Timeout           time.Duration
	Bind              string
	OnDeath           string
	WithFT            bool
	StdinAll          bool
	StdinRank         int // -1: nobody
	InitialErrhandler string
	Universe          int // MPI_UNIVERSE_SIZE, if the user has said it
	Verbose           bool
}

// A Program is a part of the job's command line; ranks are counted through all programs.
type Program struct {
	Procs int
	Argv  []string
	Dir   string
	Path  string
	Env   []string
}

// A Message is one thing said; exactly one field is set.
type Message struct {
	Job     *Job  // to the agent, first
	Signal  int   // to the agent: spxrun has got this signal
	Stopped int   // from the agent: the signal that stops has been passed on
	Done    *Done // from the agent, last
}

// Done says that the job is over.
type Done struct{ Status int }

// A Conn sends and receives messages. Send may be called from several goroutines, Receive from one.
type Conn struct {
	rw  io.ReadWriteCloser
	mu  sync.Mutex // guards enc
	enc *gob.Encoder
	dec *gob.Decoder
}

// NewConn makes a Conn of a stream.
func NewConn(rw io.ReadWriteCloser) *Conn {
	return &Conn{rw: rw, enc: gob.NewEncoder(rw), dec: gob.NewDecoder(rw)}
}

// Send sends a message.
func (c *Conn) Send(m *Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.enc.Encode(m)
}

// Receive waits for a message; the error is io.EOF when the other side is gone.
func (c *Conn) Receive() (*Message, error) {
	m := new(Message)
	if err := c.dec.Decode(m); err != nil {
		return nil, err
	}
	if m.Job != nil && m.Job.Version != Version {
		return nil, fmt.Errorf("control: job of version %d, this is version %d", m.Job.Version, Version)
	}
	return m, nil
}

// Close closes the stream.
func (c *Conn) Close() error { return c.rw.Close() }
