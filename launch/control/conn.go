package control

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"io"
	"sync"
)

// A connection that carries the messages, and what is checked of them as they come.

// A Conn sends and receives messages. Send may be called from several goroutines, Receive from one.
type Conn struct {
	rw  io.ReadWriteCloser
	mu  sync.Mutex // guards enc and out
	enc *gob.Encoder
	out *bufio.Writer
	dec *gob.Decoder
}

// NewConn makes a Conn of a stream.
func NewConn(rw io.ReadWriteCloser) *Conn {
	// gob writes the description of every type by itself: before the first message there are fifty
	out := bufio.NewWriter(rw)
	return &Conn{rw: rw, enc: gob.NewEncoder(out), out: out, dec: gob.NewDecoder(rw)}
}

// Send sends a message.
func (c *Conn) Send(m *Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enc.Encode(m); err != nil {
		return err
	}
	return c.out.Flush()
}

// Receive waits for a message; the error is io.EOF when the other side is gone.
func (c *Conn) Receive() (*Message, error) {
	m := new(Message)
	if err := c.dec.Decode(m); err != nil {
		return nil, err
	}
	if m.Job != nil {
		if err := m.Job.check(); err != nil {
			return nil, err
		}
	}
	if m.Own != nil && m.Own.Job != nil {
		if err := m.Own.Job.check(); err != nil {
			return nil, err
		}
	}
	if m.Tree != nil {
		if err := m.Tree.check(); err != nil {
			return nil, err
		}
	}
	if err := m.checkRelayed(); err != nil {
		return nil, err
	}
	if m.Hello != nil && (m.Hello.Version != Version || len(m.Hello.Ranks) == 0) {
		return nil, fmt.Errorf(
			"control: host %q, with the ranks %v, has version %d, this is version %d", m.Hello.Host,
			m.Hello.Ranks, m.Hello.Version, Version)
	}
	return m, nil
}

func (t *Tree) check() error {
	if n := len(t.View.Clusters); n > 0 && n != len(t.Config.Clusters) {
		return fmt.Errorf("control: a view of %d clusters of %d", n, len(t.Config.Clusters))
	}
	return t.Config.Check()
}

// mostProcs is more than any job has.
const mostProcs = 1 << 20

// check tells what is wrong with a job as it was received: who runs it counts on all that is asked
// here.
func (j *Job) check() error {
	if j.Version != Version {
		return fmt.Errorf("control: job of version %d, this is version %d", j.Version, Version)
	}
	total := 0
	for i, p := range j.Programs {
		if p.Procs < 0 || p.Procs > mostProcs-total || len(p.Argv) == 0 {
			return fmt.Errorf(
				"control: program %d of the job has %d processes and the arguments %q", i, p.Procs,
				p.Argv)
		}
		if p.Added {
			continue
		}
		if p.Part < 0 || p.Part > len(j.Parts) {
			return fmt.Errorf("control: program %d belongs to part %d of %d", i, p.Part,
				len(j.Parts))
		}
		total += p.Procs
	}
	if total == 0 || j.StdinRank < -1 {
		return fmt.Errorf("control: job of %d processes, with standard input for rank %d", total,
			j.StdinRank)
	}
	hosts := max(1, len(j.Hosts))
	if j.Self < 0 || j.Self >= hosts || j.Where != nil && len(j.Where) != total {
		return fmt.Errorf(
			"control: job of %d processes on %d hosts, for host %d; it says where %d are", total,
			hosts, j.Self, len(j.Where))
	}
	for rank, host := range j.Where {
		if host < 0 || host >= hosts {
			return fmt.Errorf("control: rank %d of the job is on host %d of %d", rank, host, hosts)
		}
	}
	return nil
}

// Close closes the stream.
func (c *Conn) Close() error { return c.rw.Close() }
