package agree

import (
	"encoding/binary"
	"errors"

	"libspx/ft/rankset"
)

// Wire form, all numbers unsigned varints, sets as in package rankset:
//
//	Gather   1, ballot, decision
//	Propose  2, ballot, decision
//	Accept   3, ballot
//	Commit   4, decision
//	decision = flags, context, acked, failed
const (
	kindGather = iota + 1
	kindPropose
	kindAccept
	kindCommit
)

type message struct {
	kind     byte
	ballot   int
	decision Decision // Gather: the merged contributions, without a context
}

func (msg message) append(dst []byte) []byte {
	dst = append(dst, msg.kind)
	if msg.kind != kindCommit {
		dst = binary.AppendUvarint(dst, uint64(msg.ballot))
	}
	if msg.kind != kindAccept {
		dst = msg.decision.append(dst)
	}
	return dst
}

func (d Decision) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(d.Flags))
	dst = binary.AppendUvarint(dst, d.Context)
	return d.Failed.Append(d.Acked.Append(dst))
}

var errMalformed = errors.New("agree: malformed message")

// decode reads a message of a communicator of n ranks.
func decode(src []byte, n int) (msg message, err error) {
	if len(src) == 0 || src[0] < kindGather || src[0] > kindCommit {
		return message{}, errMalformed
	}
	msg.kind = src[0]
	src = src[1:]
	if msg.kind != kindCommit {
		if msg.ballot, src, err = decodeBallot(src, n); err != nil {
			return message{}, err
		}
	}
	if msg.kind != kindAccept {
		if msg.decision, src, err = decodeDecision(src, n); err != nil {
			return message{}, err
		}
	}
	if len(src) != 0 {
		return message{}, errMalformed
	}
	return msg, nil
}

func decodeBallot(src []byte, n int) (int, []byte, error) {
	v, k := binary.Uvarint(src)
	if k <= 0 || v >= uint64(n) {
		return 0, nil, errMalformed
	}
	return int(v), src[k:], nil
}

func decodeDecision(src []byte, n int) (d Decision, rest []byte, err error) {
	flags, k := binary.Uvarint(src)
	if k <= 0 || flags > 0xffffffff {
		return d, nil, errMalformed
	}
	src = src[k:]
	if d.Context, k = binary.Uvarint(src); k <= 0 {
		return d, nil, errMalformed
	}
	d.Flags = uint32(flags)
	if d.Acked, src, err = rankset.Decode(src[k:], n); err != nil {
		return d, nil, err
	}
	d.Failed, src, err = rankset.Decode(src, n)
	return d, src, err
}
