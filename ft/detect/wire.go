package detect

import (
	"encoding/binary"
	"errors"

	"libspx/ft/rankset"
)

// Wire form, all numbers unsigned varints, the set as in package rankset. The number of a message
// counts those of its sender, from 1.
//
//	Beat    1, number, tick, epoch, the limit in microseconds, hosts that are out; of these, those with OutClosed, and with OutChanged
//	Echo    2, number, 1 or 0, the longest silence that has ended, in microseconds
//	Seek    3, number
//	Report  4, number, how many, and for each a host and its silence in microseconds
//	Out     5, number, epoch, reason
const (
	kindBeat = iota + 1
	kindEcho
	kindSeek
	kindReport
	kindOut
)

type message struct {
	kind     byte
	number   uint64
	tick     uint64
	epoch    uint64
	out      rankset.Set
	closed   rankset.Set
	changed  rankset.Set
	why      Reason
	limit    Time
	complete bool
	worst    Time
	silents  []silent
}

func (msg message) append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, msg.kind), msg.number)
	switch msg.kind {
	case kindBeat:
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, msg.tick), msg.epoch)
		dst = msg.out.Append(binary.AppendUvarint(dst, uint64(msg.limit)))
		dst = msg.changed.Append(msg.closed.Append(dst))
	case kindEcho:
		complete := byte(0)
		if msg.complete {
			complete = 1
		}
		dst = binary.AppendUvarint(append(dst, complete), uint64(msg.worst))
	case kindReport:
		dst = binary.AppendUvarint(dst, uint64(len(msg.silents)))
		for _, s := range msg.silents {
			dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(s.host)), uint64(s.time))
		}
	case kindOut:
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, msg.epoch), uint64(msg.why))
	}
	return dst
}

var errMalformed = errors.New("detect: malformed message")

// A reader takes numbers from the front of a message; the first that is not there spoils it.
type reader struct {
	src []byte
	bad bool
}

func (r *reader) number(most uint64) uint64 {
	v, k := binary.Uvarint(r.src)
	if k <= 0 || v > most {
		r.bad = true
		return 0
	}
	r.src = r.src[k:]
	return v
}

// most is more than any number of messages, ticks, epochs or microseconds.
const most = 1 << 62

// mostSilence is longer than any host is waited for: products with it fit.
const mostSilence = 1 << 50

// mostHosts is more than any job has.
const mostHosts = 1 << 20

// decode reads a message in a job of n hosts, as known here: hosts unknown here may be out already.
func decode(src []byte, n int) (msg message, err error) {
	if len(src) == 0 || src[0] < kindBeat || src[0] > kindOut {
		return message{}, errMalformed
	}
	r := &reader{src: src[1:]}
	msg.kind, msg.number = src[0], r.number(most)
	switch msg.kind {
	case kindBeat:
		msg.tick, msg.epoch, msg.limit = r.number(most), r.number(most), Time(r.number(most))
		for _, set := range []*rankset.Set{&msg.out, &msg.closed, &msg.changed} {
			if *set, r.src, err = rankset.Decode(r.src, max(n, mostHosts)); err != nil ||
				!msg.out.Contains(*set) {
				return message{}, errMalformed
			}
		}
		if msg.out.Has(0) || !msg.closed.Intersect(msg.changed).Empty() {
			return message{}, errMalformed
		}
	case kindEcho:
		msg.complete, msg.worst = r.number(1) == 1, Time(r.number(mostSilence))
	case kindReport:
		for range r.number(uint64(n)) {
			msg.silents = append(msg.silents, silent{int(r.number(uint64(n - 1))),
				Time(r.number(most))})
		}
	case kindOut:
		msg.epoch, msg.why = r.number(most), Reason(r.number(uint64(OutChanged)))
		r.bad = r.bad || msg.why < OutSilent
	}
	if r.bad || len(r.src) != 0 {
		return message{}, errMalformed
	}
	return msg, nil
}
