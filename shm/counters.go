package shm

import (
	"encoding/binary"
	"io"
)

// Counters are what a process of this host has counted since it began (spx_counters in layout.h).
// They stay when it has ended.
type Counters struct {
	Sent, SentBytes, Received, ReceivedBytes uint64 // messages, and bytes in them
	Collectives, Failures                    uint64 // begun; of others, noticed
	WaitNS, Sleeps                           uint64 // in waits: polled, yielded, slept
	Unexpected, UnexpectedBytes              uint64 // messages before their receive
	Peers                                    uint64 // processes sent to
	NetOpen, NetAgain                        uint64 // connections to other hosts; frames sent again
	// an I/O process: held, as it reports (MPISP_Held)
	HeldMessages, HeldBytes uint64
}

// Counters are those of process i of this host, at the time now (ns of CLOCK_MONOTONIC).
func (s *Segment) Counters(i int, now uint64) (c Counters) {
	var b [countersBytes]byte
	u := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	at := int64(s.geo.diagOff + i*cDiagBytes + cDiagCounts)
	var asleep, slept uint64
	for range 4 { // until it did not fall asleep, nor wake, meanwhile
		if _, err := s.file.ReadAt(b[:], at); err != nil && err != io.EOF {
			return c
		}
		same := asleep == u(countersOffAsleep) && slept == u(countersOffSleepNs)
		if asleep, slept = u(countersOffAsleep), u(countersOffSleepNs); same {
			break
		}
	}
	c = Counters{Sent: u(countersOffSent), SentBytes: u(countersOffSentBytes), Received: u(countersOffReceived), ReceivedBytes: u(countersOffReceivedBytes),
		Collectives: u(countersOffCollectives), Failures: u(countersOffFailures), WaitNS: u(countersOffIdleNs) + slept,
		Sleeps: u(countersOffSleeps), Unexpected: u(countersOffUnexpected), UnexpectedBytes: u(countersOffUnexpectedBytes),
		Peers: u(countersOffConnections), NetOpen: u(countersOffNetOpen), NetAgain: u(countersOffNetAgain),
		HeldMessages: uint64(s.get32(s.proc(i) + procOffIoMessages)), HeldBytes: s.get64(s.proc(i) + procOffIoBytes)}
	if st := s.AgentState(i); asleep != 0 && now > asleep && st != AgentDead && st != AgentExited {
		c.WaitNS += now - asleep
	}
	return c
}
