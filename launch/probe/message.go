// Package probe measures the network between hosts, for net/topo, which determines the measurements
// and evaluates them: round-trip times, and the throughput of paths at once.
//
// It owns the program that runs on each host meanwhile (host.go), started as agents are, by ssh or
// similar, and controlled over its standard input and output; the run of a measurement (run.go),
// within its bounds; networks known without measuring (slurm.go); and the file in which results are
// kept for later jobs (cache.go). It decides nothing about jobs. Connections between hosts prove by
// the run's key that they belong to it.
package probe

import (
	"encoding/gob"
	"io"
	"net/netip"
	"sync"
	"time"

	"libspx/launch/control"
)

// HostWord is the first argument of the program on a host.
const HostWord = "spx-probe"

// version of the messages.
const version = 2

// A message between the run and a host; exactly one field is set.
type message struct {
	Begin *begin           // to a host, first
	Ready *ready           // from it
	Peers []netip.AddrPort // to it: where every host is reached
	Ping  *ping            // to it
	Times *times           // from it: the answer
	Flow  *flow            // to it: send to another host, until Stop
	Flows int              // from it: that flow has begun
	Watch *watch           // to the host that a flow goes to
	Rate  *rate            // from it: the answer
	Stop  int              // to the sender of a flow: it is enough
	Ended *ended           // from the receiver: nothing of the flow is under way any more
	Fails *fails           // from it: a measurement that cannot be made
}

type begin struct {
	Version int
	Job     control.Job // Hosts, Self, ID, Key, Near and Iface alone
	Ports   string      // SPX_PORTS
}

type ready struct {
	Text    string // why it is not; empty: it is
	At      netip.AddrPort
	Switch  string // SLURM_TOPOLOGY_ADDR there
	Pattern string // SLURM_TOPOLOGY_ADDR_PATTERN
}

type ping struct {
	ID, To, Echoes int
	Spaced         bool
}

type times struct {
	ID   int
	Took []int64 // ns, the shortest
}

type flow struct{ ID, To int }

// watch requests the rate at which a flow comes, in slices of the window.
type watch struct {
	ID     int
	Window time.Duration
}

type rate struct {
	ID    int
	Bytes float64 // a second
}

type ended struct {
	ID    int
	Bytes int64
}

type fails struct {
	ID   int
	Text string
}

// conn sends messages from several goroutines, and receives them in one.
type conn struct {
	rw  io.ReadWriteCloser
	mu  sync.Mutex // guards enc
	enc *gob.Encoder
	dec *gob.Decoder
}

func newConn(rw io.ReadWriteCloser) *conn {
	return &conn{rw: rw, enc: gob.NewEncoder(rw), dec: gob.NewDecoder(rw)}
}

func (c *conn) send(m *message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.enc.Encode(m)
}

func (c *conn) receive() (*message, error) {
	m := new(message)
	err := c.dec.Decode(m)
	return m, err
}
