package comm

import (
	"encoding/binary"
	"math"
	"slices"

	"libspx/core/mpierr"
)

// Link carries the engine's messages between the processes of a communicator, in order for each
// pair of processes and tag. Both calls wait as long as it takes, without holding any lock, and
// both fail (class MPIX_ERR_PROC_FAILED or MPIX_ERR_REVOKED) when the other process is dead or the
// communicator revoked.
type Link interface {
	// Send sends data to a rank. The caller may use data again when it returns.
	Send(to, tag int, data []byte) error
	// Recv receives a message of at most len(buf) bytes from a rank, and returns its length.
	Recv(from, tag int, buf []byte) (int, error)
}

// A message is a first part of at most firstPart bytes, and for what does not fit, parts of
// nextPart bytes (the last one: what remains), so that memory is needed for what has come, not for
// what a length claims:
//
//	class   4 bytes  0, or an MPI error class: then the payload is the text of the error
//	length  4 bytes  of the payload
//	payload
const (
	msgHeader = 8
	firstPart = 512
	nextPart  = 1 << 20
)

// send sends a payload, or the error that takes its place.
func send(l Link, to, tag int, payload []byte, failure error) error {
	if failure == nil && int64(len(payload)) > math.MaxUint32 {
		failure = mpierr.New(mpierr.Intern, "a message of the engine would have %d bytes",
			len(payload))
	}
	if failure != nil {
		payload = []byte(failure.Error())
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(mpierr.ClassOf(failure)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	n := min(len(payload), firstPart-msgHeader)
	if err := l.Send(to, tag, append(b, payload[:n]...)); err != nil {
		return err
	}
	for payload = payload[n:]; len(payload) > 0; payload = payload[n:] {
		n = min(len(payload), nextPart)
		if err := l.Send(to, tag, payload[:n]); err != nil {
			return err
		}
	}
	return nil
}

// recv receives a payload. An error that was sent in its place is returned as this process's own.
func recv(l Link, from, tag int) ([]byte, error) {
	var first [firstPart]byte
	n, err := l.Recv(from, tag, first[:])
	if err != nil {
		return nil, err
	}
	if n < msgHeader {
		return nil, mpierr.New(mpierr.Intern, "a message of the engine has %d bytes", n)
	}
	length := int64(binary.LittleEndian.Uint32(first[4:]))
	if int64(n-msgHeader) != min(length, firstPart-msgHeader) {
		return nil, errShort
	}
	payload := slices.Clone(first[msgHeader:n])
	for have := int64(len(payload)); have < length; have = int64(len(payload)) {
		k := int(min(length-have, nextPart))
		payload = slices.Grow(payload, k)
		n, err := l.Recv(from, tag, payload[have:int(have)+k])
		if err != nil {
			return nil, err
		}
		if n != k {
			return nil, errShort
		}
		payload = payload[:int(have)+k]
	}
	if failure := ClassError(binary.LittleEndian.Uint32(first[:]), "%s", payload); failure != nil {
		return nil, failure
	}
	return payload, nil
}

// ClassError is the error of a class that another process has sent; nil for 0. What is no class is
// an internal error.
func ClassError(class uint32, format string, args ...any) error {
	switch {
	case class == 0:
		return nil
	case class > math.MaxInt32:
		return mpierr.New(mpierr.Intern, "a message of the engine has the error class %d", class)
	}
	return mpierr.New(mpierr.Class(class), format, args...)
}

// swap exchanges payloads, or errors, with a process that does the same. One of the two goes first.
func swap(l Link, with, tag int, first bool, payload []byte, failure error) ([]byte, error) {
	var sent error
	if first {
		sent = send(l, with, tag, payload, failure)
	}
	theirs, err := recv(l, with, tag)
	if !first {
		sent = send(l, with, tag, payload, failure)
	}
	return theirs, firstError(failure, err, sent)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// errShort is for payloads that are shorter than their form requires.
var errShort = &mpierr.Error{Class: mpierr.Intern, Text: "a message of the engine is cut short"}

// takeUint64 splits a number off a payload.
func takeUint64(b []byte) (uint64, []byte, error) {
	if len(b) < 8 {
		return 0, nil, errShort
	}
	return binary.LittleEndian.Uint64(b), b[8:], nil
}
