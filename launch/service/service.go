// Package service is what the processes of a job, and those of other jobs on the host, ask of the
// job's agent: starting processes, ports and published names, the memory file (MPI-5.0, 11.7 to
// 11.10).
//
// It owns the form of the messages and the way to an agent: an abstract socket whose name is made
// of the job's id, so that nothing is left in a file system. One connection carries one question
// and its answer; who waits for an answer and dies closes it. It decides nothing: launch/agent
// answers, capi asks.
//
// A message is its length (4 bytes, little endian), then the fields of Message in their order;
// numbers are little endian, and texts and lists stand behind their length (4 bytes).
package service

import (
	"encoding/binary"
	"errors"
	"fmt"

	"libspx/core/ident"
)

// LookEverywhere is the Number of a Lookup that its own job, and others on the host, do not know.
const LookEverywhere = 1

// Kind says what a message asks for.
type Kind uint8

// Questions. The answer has the same kind.
const (
	// Programs, Peer (the root), Number (contexts of the meeting); the answer: World, Slots, Codes
	Spawn Kind = iota + 1
	// World, Class: 0 when parents and children have met; else the children are ended
	SpawnResult
	OpenPort  // the answer: Text
	ClosePort // Text
	Accept    // Text, Peer; the answer, when a process connects: Peer, Number
	Connect   // Text, Peer; the answer, when a process accepts: Peer, Number
	Publish   // Name, Text
	Unpublish // Name, Text
	Lookup    // Name; Number: LookEverywhere or 0; the answer: Text
	// to the agent of another job: Peer; the answer: the memory file, Slots[0]: the external
	// process number there
	Attach
	Externals // Peers of other jobs; the answer: their external process numbers
	// over the connection of an Accept or Connect: its asker waits no longer; the answer: that of
	// its question, or this
	Withdraw
	// to a new agent, from a process without one, with its memory file: Peer, Programs[0] (what
	// that process runs)
	Adopt

	// Programs that change their number of processes (ulfm_dyprc).
	Members // of rank 0, after each change: Slots (processes by rank), Number (grows)
	// of rank 0: commands up to Number are done; the answer, when there is another: Number, Text
	AwaitOrder
	OrderDone // of rank 0: Number, Text (Change)
	// to such a program: Text (a command of ulfm_dyprc); the answer, when it is done: Text (Change)
	Order
	KillRanks // Slots (ranks); the answer, when the others have recovered: Text (Change)
	Describe  // the answer: Text (About, in JSON)

	// Jobs that another launcher has started (join.go). The connection of a process stays open as
	// long as it lives.
	// Number (rank), World (processes of the job), Name (the launcher's name for it), Slots (ranks
	// that should be on this host, by the launcher's word; empty: it says nothing), Programs[0],
	// the socket to the launcher; the answer: of rank 0, Text (Offer)
	Join
	// when all processes have joined: Text (the Offer that rank 0 was given); the answer, when the
	// job begins: Slots[0], the memory file, Number (1: Listener follows)
	Settle
	Listener // to a process: the socket on which it listens

	Hosts       // the answer: Text (a list of Host, in JSON)
	AddHosts    // Text (as of -host); the answer, when they are there: as of Hosts
	RemoveHosts // Text (names, with commas); the answer, when they are gone: as of Hosts

	// Number (a signal for the whole job first; 0: none); the answer, when the job has ended:
	// Number (its exit status)
	AwaitEnd

	// what the processes do: Number (1: with their stacks); the answer: Text (diagnose.Proc, in
	// JSON)
	Inspect

	// May this process say what is wrong, or has another one said it? Asked from C
	// (capi/boundary/once.c), also before MPI_Init. Name (the cause), Text (in short, for who asks
	// later; may be empty), World and Number (who asks), or Slots[0] (host of an agent that asks);
	// the answer: Number (1: it may, 2: it was said)
	Say
	Said // over the connection of a Say that was allowed: it was said; there is no answer

	// of a process of a system of clusters, in MPI_Init: Number (its number in the job); the
	// answer, when those are complete that it waits for. With a Class: Text says who is missing
	Arrive
	// of such a process, of a cluster with standbys: Number (its number in the job), Slots
	// (processes by rank): ranks were taken over; the answer, when that is known
	TookOver
	// of such a process, to its own agent: what the system is like now; the answer: Text (a layout)
	Layout

	// To its own agent, from a process in MPI_Init that is not the one which the agent has started:
	// Number (of its entry), a pidfd of itself; the answer, when the agent watches it. The
	// connection stays open as long as the process lives, which ends with the agent (Hold).
	Enter

	// A descriptor that the agent holds until the connection has gone: its end tells the process
	// that of the agent (Conn.DieWithPeer). There is no answer
	Hold

	// A client of the job in the place of its spxrun (spxrun --attach), which has printed the
	// output up to Number; the first time, Text is where it wants to begin (FromStart, FromLast).
	// The answers: first Number (where it begins), Name (the output's file), World (1: other hosts
	// may go on with the job) and a descriptor of that file; then, each time when there is more,
	// Number (the file's size). When the job has ended the same comes unasked, with Codes[0], its
	// exit status. World (Leaves): the client ends now; the answer has that, too, and the next one
	// begins where this one ends.
	Client
	// of such a client: Number (a signal for the job, as spxrun would hand it on). There is no
	// answer
	Signal

	// of a system whose clusters are started one by one: Name (of a cluster that is to leave),
	// Number (ms that it has for that), World (1: it is not awaited then); the answer, when it has
	// left: Text
	Detach
)

// Where a Client wants to begin.
const (
	FromLast  = "last"  // where output has been written since there was no client
	FromStart = "start" // of the file
)

// Leaves is World in the last word of a Client.
const Leaves = 2

// World of a Describe, Hosts or Inspect of a tool (Waits): it is answered ahead of other work, and
// the tool is told when the agent has asked that of another host, which decides about the job, by a
// word with World (PassedOn) and Name (that host); the answer follows.
const (
	Waits    = 1
	PassedOn = 2
)

// What an answer to Say means (Number). A refusal of Settle has SaidAgain for those of a host that
// need not say why: one of them does.
const (
	SaidFirst = 1
	SaidAgain = 2
)

// A Peer is a process as its own job knows it.
type Peer struct {
	ID   ident.ProcID
	Slot uint32 // in the memory file of its job
	Pid  uint32
}

// A Program is a part of what is to be spawned.
type Program struct {
	Argv            []string
	Procs           uint32
	Soft            []uint32 // allowed numbers of processes, ascending; empty: Procs alone
	Dir, Path, Host string
	Env             []string
}

// A Message is a question or an answer. Class is an MPI error class; with it, Text says why.
type Message struct {
	Kind     Kind
	Class    uint32
	World    uint32
	Number   uint64
	Name     string
	Text     string
	Peer     Peer
	Slots    []uint32
	Codes    []uint32
	Peers    []Peer
	Programs []Program
	// the name service that a question about a name is for (names.Place.Encode); empty: the job's
	Server string

	FD int // a descriptor that travels along; -1: none
}

// maxMessage bounds what a reader accepts, in bytes.
const maxMessage = 64 << 20

type writer struct{ b []byte }

func (w *writer) u32(v uint32) { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *writer) u64(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }
func (w *writer) text(s string) {
	w.u32(uint32(len(s)))
	w.b = append(w.b, s...)
}

func list[T any](w *writer, of []T, each func(T)) {
	w.u32(uint32(len(of)))
	for _, v := range of {
		each(v)
	}
}

func (w *writer) peer(p Peer) {
	w.b = ident.Append(w.b, p.ID)
	w.u32(p.Slot)
	w.u32(p.Pid)
}

func (w *writer) program(p Program) {
	list(w, p.Argv, w.text)
	w.u32(p.Procs)
	list(w, p.Soft, w.u32)
	w.text(p.Dir)
	w.text(p.Path)
	w.text(p.Host)
	list(w, p.Env, w.text)
}

// Encode returns the form of m in which it travels.
func (m *Message) Encode() []byte {
	w := &writer{b: []byte{0, 0, 0, 0, byte(m.Kind)}}
	w.u32(m.Class)
	w.u32(m.World)
	w.u64(m.Number)
	w.text(m.Name)
	w.text(m.Text)
	w.peer(m.Peer)
	list(w, m.Slots, w.u32)
	list(w, m.Codes, w.u32)
	list(w, m.Peers, w.peer)
	list(w, m.Programs, w.program)
	if m.Server != "" { // few have one
		w.text(m.Server)
	}
	binary.LittleEndian.PutUint32(w.b, uint32(len(w.b)-4))
	return w.b
}

var errShort = errors.New("service: a message is cut short")

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, min(max(n, 0), 64))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// text is empty when the message is cut short.
func (r *reader) text() string {
	n := int(r.u32())
	if n > len(r.b) {
		r.bad = true
		return ""
	}
	return string(r.take(n))
}

func lists[T any](r *reader, each func() T) []T {
	n := int(r.u32())
	if n > len(r.b) { // each entry takes a byte at least
		r.bad = true
		return nil
	}
	var out []T
	for range n {
		out = append(out, each())
	}
	return out
}

func (r *reader) peer() (p Peer) {
	p.ID, _ = ident.Decode(r.take(ident.WireSize))
	p.Slot, p.Pid = r.u32(), r.u32()
	return p
}

func (r *reader) program() (p Program) {
	if p.Argv = lists(r, r.text); len(p.Argv) == 0 {
		r.bad = true // there is no command
	}
	p.Procs = r.u32()
	p.Soft = lists(r, r.u32)
	p.Dir, p.Path, p.Host = r.text(), r.text(), r.text()
	p.Env = lists(r, r.text)
	return p
}

// Decode reads what Encode has written, without the length.
func Decode(b []byte) (*Message, error) {
	r := &reader{b: b}
	m := &Message{Kind: Kind(r.take(1)[0]), FD: -1}
	m.Class, m.World, m.Number = r.u32(), r.u32(), r.u64()
	m.Name, m.Text, m.Peer = r.text(), r.text(), r.peer()
	m.Slots, m.Codes = lists(r, r.u32), lists(r, r.u32)
	m.Peers, m.Programs = lists(r, r.peer), lists(r, r.program)
	if len(r.b) > 0 {
		m.Server = r.text()
		r.bad = r.bad || m.Server == ""
	}
	if r.bad || len(r.b) > 0 {
		return nil, errShort
	}
	return m, nil
}

// Address is the name of the socket of a job's agent, by the first eight bytes of the job's id.
func Address(job uint64) string { return fmt.Sprintf("@%s%016x", prefix, job) }

const prefix = "spx-job-"
