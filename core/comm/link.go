package comm

import (
	"encoding/binary"

	"libspx/core/mpierr"
)

// Link carries the engine's messages between the processes of a communicator, in order for each pair of processes and tag.
// Both calls wait as long as it takes, without holding any lock, and both fail (class MPIX_ERR_PROC_FAILED or
// MPIX_ERR_REVOKED) when the other process is dead or the communicator revoked.
type Link interface {
	// Send sends data to a rank. The caller may use data again when it returns.
	Send(to, tag int, data []byte) error
	// Recv receives a message of at most len(buf) bytes from a rank, and returns its length.
	Recv(from, tag int, buf []byte) (int, error)
}

// A message is a first part of at most firstPart bytes, and a second part for what does not fit:
//
//	class   4 bytes  0, or an MPI error class: then the payload is the text of the error
//	length  4 bytes  of the payload
//	payload
const (
	msgHeader = 8
	firstPart = 512
)

// send sends a payload, or the error that takes its place.
func send(l Link, to, tag int, payload []byte, failure error) error {
	if failure != nil {
		payload = []byte(failure.Error())
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(mpierr.ClassOf(failure)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	n := min(len(payload), firstPart-msgHeader)
	if err := l.Send(to, tag, append(b, payload[:n]...)); err != nil {
		return err
	}
	if n < len(payload) {
		return l.Send(to, tag, payload[n:])
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
	class := mpierr.Class(binary.LittleEndian.Uint32(first[:]))
	payload := make([]byte, binary.LittleEndian.Uint32(first[4:]))
	if k := copy(payload, first[msgHeader:n]); k < len(payload) {
		if _, err := l.Recv(from, tag, payload[k:]); err != nil {
			return nil, err
		}
	}
	if class != 0 {
		return nil, mpierr.New(class, "%s", payload)
	}
	return payload, nil
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

// errShort is for payloads that are shorter than their form says.
var errShort = &mpierr.Error{Class: mpierr.Intern, Text: "a message of the engine is cut short"}

// takeUint64 splits a number off a payload.
func takeUint64(b []byte) (uint64, []byte, error) {
	if len(b) < 8 {
		return 0, nil, errShort
	}
	return binary.LittleEndian.Uint64(b), b[8:], nil
}
