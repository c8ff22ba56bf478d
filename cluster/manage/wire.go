package manage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The wire format of messages: numbers of variable length, those that may be negative folded.
// Decoded messages contain no agents, clusters or states unknown to the receiver.

// wireVersion is the first byte.
const wireVersion = 1

// Flags of a message.
const (
	flagBeat = 1 << iota
	flagHeld
	flagGranted
	flagView
	flagStopping
)

// Encode is the form of a message.
func (m *Message) Encode() []byte {
	flags := flag(m.Beat, flagBeat) | flag(m.Held, flagHeld) | flag(m.Granted, flagGranted) |
		flag(m.View != nil, flagView) | flag(m.View != nil && m.View.Stopping, flagStopping)
	b := []byte{wireVersion, flags}
	for _, n := range []int64{int64(m.From), int64(m.To), int64(m.Hops), int64(m.Way),
		int64(m.Seat), m.Sent, m.Age, int64(m.Voter), int64(m.Promised), int64(m.Holder)} {
		b = binary.AppendVarint(b, n)
	}
	for _, n := range []uint64{m.Term, m.Term2, m.Version, uint64(len(m.Counts))} {
		b = binary.AppendUvarint(b, n)
	}
	for i, c := range m.Counts {
		b = append(b, flag(c.Failed, 1))
		for _, n := range []uint64{uint64(m.Clusters[i]), uint64(c.Life), uint64(c.Alive),
			uint64(c.Lost), uint64(c.Done)} {
			b = binary.AppendUvarint(b, n)
		}
	}
	if m.View == nil {
		return b
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, m.View.Term), m.View.Version)
	b = binary.AppendVarint(b, int64(m.View.Master))
	for _, c := range m.View.Clusters {
		b = binary.AppendUvarint(binary.AppendUvarint(append(b, byte(c.State)), uint64(c.Life)),
			uint64(c.Alive))
		b = binary.AppendVarint(b, int64(c.Master))
	}
	return b
}

func flag(is bool, bit byte) byte {
	if is {
		return bit
	}
	return 0
}

var errWire = errors.New("manage: no message of this system")

// reader takes numbers; after the first that is wrong all are 0.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() int64 {
	r.b, r.bad = nil, true
	return 0
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		return byte(r.fail())
	}
	x := r.b[0]
	r.b = r.b[1:]
	return x
}

// signed takes a number from least to most.
func (r *reader) signed(least, most int64) int64 {
	x, n := binary.Varint(r.b)
	if n <= 0 || x < least || x > most {
		return r.fail()
	}
	r.b = r.b[n:]
	return x
}

func (r *reader) unsigned(most uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 || x > most {
		return uint64(r.fail())
	}
	r.b = r.b[n:]
	return x
}

// Bounds: terms and times are far from where they would overflow.
const (
	mostTerm  = 1 << 62
	mostTime  = 1 << 53
	mostCount = 1 << 24
)

// Decode reads a message for agents of that system.
func Decode(b []byte, cfg *Config) (m Message, err error) {
	r := &reader{b: b}
	agents, clusters := int64(len(cfg.Agents)), int64(len(cfg.Clusters))
	if version := r.byte(); !r.bad && version != wireVersion {
		return m, fmt.Errorf("manage: a message of version %d, this is version %d", version,
			wireVersion)
	}
	flags := r.byte()
	m.Beat, m.Held, m.Granted = flags&flagBeat != 0, flags&flagHeld != 0, flags&flagGranted != 0
	m.From, m.To = int(r.signed(0, agents-1)), int(r.signed(0, agents-1))
	m.Hops, m.Way = int(r.signed(0, mostHops)), int(r.signed(0, math.MaxInt32))
	m.Seat = int(r.signed(Watch, clusters-1))
	m.Sent, m.Age = r.signed(0, mostTime), r.signed(0, mostTime)
	voters := agents
	if m.Seat == System {
		voters = clusters
	}
	m.Voter = int(r.signed(0, voters-1))
	m.Promised, m.Holder = int(r.signed(-1, agents-1)), int(r.signed(-1, agents-1))
	m.Term, m.Term2, m.Version = r.unsigned(mostTerm), r.unsigned(mostTerm), r.unsigned(mostTerm)
	for range r.unsigned(uint64(clusters)) {
		failed := r.byte() == 1
		m.Clusters = append(m.Clusters, int(r.unsigned(uint64(clusters-1))))
		m.Counts = append(m.Counts, Count{Failed: failed, Life: uint32(r.unsigned(math.MaxUint32)),
			Alive: int(r.unsigned(mostCount)), Lost: int(r.unsigned(mostCount)),
			Done: int(r.unsigned(mostCount))})
	}
	if flags&flagView != 0 {
		m.View = r.view(cfg, flags&flagStopping != 0)
	}
	if r.bad || len(r.b) > 0 || flags >= flagStopping<<1 || m.Seat == Watch && m.Beat &&
		m.View == nil {
		return Message{}, errWire
	}
	return m, nil
}

func (r *reader) view(cfg *Config, stopping bool) *View {
	agents := int64(len(cfg.Agents))
	v := &View{Stopping: stopping, Term: r.unsigned(mostTerm), Version: r.unsigned(mostTerm),
		Master: int(r.signed(-1, agents-1))}
	for range cfg.Clusters {
		state := State(r.byte())
		if state > Done {
			r.fail()
		}
		v.Clusters = append(v.Clusters, ClusterView{State: state,
			Life: uint32(r.unsigned(math.MaxUint32)), Alive: int(r.unsigned(mostCount)),
			Master: int(r.signed(-1, agents-1))})
	}
	return v
}

// A Slot identifies the subject of a message. A later message with the same slot supersedes an
// earlier one, and messages may be lost: the transport may drop a waiting message when a later one
// has come.
type Slot struct {
	From, To, Seat, Voter int
	Kind                  byte
}

// Kinds of messages in slots.
const (
	slotBeat byte = iota
	slotAnswer
	slotReport // it answers no beat
)

// Slot is that of a message.
func (m *Message) Slot() Slot {
	s := Slot{From: m.From, To: m.To, Seat: m.Seat, Voter: m.Voter, Kind: slotReport}
	switch {
	case m.Beat:
		s.Kind = slotBeat
	case m.Sent != 0:
		s.Kind = slotAnswer
	}
	return s
}

// SlotOf is that of a message in the form in which it travels, which may be one of any system;
// false: it is none.
func SlotOf(b []byte) (Slot, bool) {
	r := &reader{b: b}
	if version, flags := r.byte(), r.byte(); !r.bad && version == wireVersion {
		number := func() int { return int(r.signed(Watch, math.MaxInt32)) }
		m := Message{Beat: flags&flagBeat != 0, From: number(), To: number()}
		number() // hops
		number() // which way
		m.Seat, m.Sent = number(), r.signed(0, mostTime)
		r.signed(0, mostTime) // age
		m.Voter = number()
		return m.Slot(), !r.bad
	}
	return Slot{}, false
}
