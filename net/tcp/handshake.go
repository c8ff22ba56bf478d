package tcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Process is one end: its number in the job, and which of the processes that have had this number.
type Process struct{ Number, Life uint32 }

// An Identity is what an end knows of itself.
type Identity struct {
	Job  [16]byte
	Key  [32]byte
	Self Process
}

// A Verdict is how the end that was called answers.
type Verdict byte

// Verdicts. The zero value is none.
const (
	Taken     Verdict = 1 // the connection is in use from now on
	Elsewhere Verdict = 2 // there is one already, or the other end's own call is the one that counts
)

// What is wrong with who calls, or with whom was called.
var (
	ErrStranger = errors.New("not a process of this job, or of this version")
	ErrOld      = errors.New("an earlier or later process of that number was meant")
	ErrKey      = errors.New("the other end does not hold the job's key")
	ErrTongue   = errors.New("the answer is none of this protocol")
)

const (
	magic      = 0x54585053 // "SPXT"
	version    = 1
	nonceBytes = 32
	macBytes   = sha256.Size
	helloBytes = 4 + 2 + 2 + 16 + 4*4 + nonceBytes
)

type hello struct {
	job      [16]byte
	from, to Process
	nonce    [nonceBytes]byte
}

func (h *hello) encode() []byte {
	b := make([]byte, 0, helloBytes)
	b = binary.LittleEndian.AppendUint32(b, magic)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = append(b, h.job[:]...)
	for _, v := range []uint32{h.from.Number, h.from.Life, h.to.Number, h.to.Life} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, h.nonce[:]...)
}

func decodeHello(b []byte) (h hello, ok bool) {
	if len(b) != helloBytes || binary.LittleEndian.Uint32(b) != magic || binary.LittleEndian.Uint16(b[4:]) != version ||
		binary.LittleEndian.Uint16(b[6:]) != 0 {
		return h, false
	}
	copy(h.job[:], b[8:])
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[24+4*i:]) }
	h.from, h.to = Process{word(0), word(1)}, Process{word(2), word(3)}
	copy(h.nonce[:], b[40:])
	return h, true
}

func mac(key *[32]byte, role string, hello, nonce []byte) []byte {
	m := hmac.New(sha256.New, key[:])
	m.Write([]byte(role))
	m.Write(hello)
	m.Write(nonce)
	return m.Sum(nil)
}

// Call is the handshake of the end that has connected, with the process to. The error is that of the stream, ErrKey or ErrTongue; an end
// that is not to closes the stream.
func Call(s io.ReadWriter, id *Identity, to Process) (Verdict, error) {
	h := hello{job: id.Job, from: id.Self, to: to}
	rand.Read(h.nonce[:])
	said := h.encode()
	if _, err := s.Write(said); err != nil {
		return 0, err
	}
	var challenge [nonceBytes + macBytes]byte
	if _, err := io.ReadFull(s, challenge[:]); err != nil {
		return 0, fmt.Errorf("no challenge: %w", err)
	}
	nonce := challenge[:nonceBytes]
	if !hmac.Equal(challenge[nonceBytes:], mac(&id.Key, "to", said, nonce)) {
		return 0, ErrKey
	}
	if _, err := s.Write(mac(&id.Key, "from", said, nonce)); err != nil {
		return 0, err
	}
	var verdict [1]byte
	if _, err := io.ReadFull(s, verdict[:]); err != nil {
		return 0, fmt.Errorf("no verdict: %w", err)
	}
	if v := Verdict(verdict[0]); v == Taken || v == Elsewhere {
		return v, nil
	}
	return 0, ErrTongue
}

// Answer is the handshake of the end that was called. decide is asked once it is proved who calls. Errors: that of the stream,
// ErrStranger, ErrOld, ErrKey; then nothing that a stranger could use was said.
func Answer(s io.ReadWriter, id *Identity, decide func(from Process) Verdict) (from Process, v Verdict, err error) {
	var said [helloBytes]byte
	if _, err := io.ReadFull(s, said[:]); err != nil {
		return from, 0, err
	}
	h, ok := decodeHello(said[:])
	switch {
	case !ok || h.job != id.Job || h.to.Number != id.Self.Number || h.from.Number == id.Self.Number:
		return from, 0, ErrStranger
	case h.to.Life != id.Self.Life:
		return from, 0, ErrOld
	}
	var nonce [nonceBytes]byte
	rand.Read(nonce[:])
	if _, err := s.Write(append(nonce[:], mac(&id.Key, "to", said[:], nonce[:])...)); err != nil {
		return from, 0, err
	}
	var proof [macBytes]byte
	if _, err := io.ReadFull(s, proof[:]); err != nil {
		return from, 0, err
	}
	if !hmac.Equal(proof[:], mac(&id.Key, "from", said[:], nonce[:])) {
		return from, 0, ErrKey
	}
	v = decide(h.from)
	_, err = s.Write([]byte{byte(v)})
	return h.from, v, err
}
