package tcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Process is one end: its number in the job, and which of the processes that have had this
// number.
type Process struct{ Number, Life uint32 }

// An Identity is an end's description of itself.
type Identity struct {
	Job  [16]byte
	Key  [32]byte
	Self Process
	// which ways messages take, in words: the same in all processes of a job, or they would not
	// arrive
	Ways string
	// Stream is which of the streams of its pair a caller makes; 0: the connection. It is part of
	// what is proved.
	Stream uint16
	TLS    bool // what follows the proofs is encrypted; it has to be in Ways
}

// A Verdict is how the end that was called answers.
type Verdict byte

// Verdicts. The zero value is none.
const (
	// the connection is in use as soon as the caller has confirmed the verdict
	Taken Verdict = 1
	// there is one already, or the other end's own call is the one that counts
	Elsewhere Verdict = 2
	Differs   Verdict = 3 // the two ends' messages take other ways: a WaysError
	// the caller has ended, or another process has its number, as known to the end that was called
	Gone Verdict = 4
	// the end that was called has as many connections as it may have: to be called again
	Full Verdict = 5
)

// A WaysError contains the ways of the messages of the end that was called.
type WaysError struct{ Theirs string }

func (e *WaysError) Error() string {
	return fmt.Sprintf("messages take other ways there (%q)", e.Theirs)
}

// Errors of the caller, or of the end that was called.
var (
	ErrStranger = errors.New("not a process of this job, or not for this one")
	ErrVersion  = errors.New(
		"a handshake of another version: all processes of a job need the same libspx")
	ErrOld    = errors.New("an earlier or later process of that number was meant")
	ErrKey    = errors.New("the other end does not hold the job's key")
	ErrTongue = errors.New("the answer is none of this protocol")
)

const (
	magic      = 0x54585053 // "SPXT"
	version    = 7
	nonceBytes = 32
	macBytes   = sha256.Size
	waysBytes  = 16
	frontBytes = 4 + 2 // of the hello of every version
	helloBytes = frontBytes + 2 + 16 + 4*4 + nonceBytes + waysBytes
	mostWays   = 1000 // bytes of Ways that are sent
)

type hello struct {
	job      [16]byte
	stream   uint16
	from, to Process
	nonce    [nonceBytes]byte
	ways     [waysBytes]byte // of a digest
}

func digest(ways string) (d [waysBytes]byte) {
	sum := sha256.Sum256([]byte(ways))
	copy(d[:], sum[:])
	return d
}

func (h *hello) encode() []byte {
	b := make([]byte, 0, helloBytes)
	b = binary.LittleEndian.AppendUint32(b, magic)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = binary.LittleEndian.AppendUint16(b, h.stream)
	b = append(b, h.job[:]...)
	for _, v := range []uint32{h.from.Number, h.from.Life, h.to.Number, h.to.Life} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = append(b, h.nonce[:]...)
	return append(b, h.ways[:]...)
}

// readHello reads a caller's hello. Its first bytes determine whether the rest has the expected
// length, so they are checked before the rest is awaited. b is the part read so far.
func readHello(s io.Reader, b *[helloBytes]byte) (h hello, err error) {
	if _, err := io.ReadFull(s, b[:frontBytes]); err != nil {
		return h, err
	}
	switch {
	case binary.LittleEndian.Uint32(b[:]) != magic:
		return h, ErrStranger
	case binary.LittleEndian.Uint16(b[4:]) != version:
		return h, ErrVersion
	}
	if _, err := io.ReadFull(s, b[frontBytes:]); err != nil {
		return h, err
	}
	return decodeHello(b), nil
}

func decodeHello(b *[helloBytes]byte) (h hello) {
	h.stream = binary.LittleEndian.Uint16(b[6:])
	copy(h.job[:], b[8:])
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[24+4*i:]) }
	h.from, h.to = Process{word(0), word(1)}, Process{word(2), word(3)}
	copy(h.nonce[:], b[40:])
	copy(h.ways[:], b[40+nonceBytes:])
	return h
}

func mac(key *[32]byte, role string, hello, nonce []byte) []byte {
	m := hmac.New(sha256.New, key[:])
	m.Write([]byte(role))
	m.Write(hello)
	m.Write(nonce)
	return m.Sum(nil)
}

// The roles in which a proof is given.
const (
	roleFrom = "from"
	roleTo   = "to"
	// of the end that was called, if messages take other ways there
	roleDiffer = "to, and it differs"
)

// Call is the handshake of the end that has connected, with the process to, over a stream that
// stays as it is: not for an identity with TLS. The error is that of the stream, ErrKey, ErrTongue,
// or a *WaysError; an end that is not to closes the stream. A caller that gets an error does not
// use the stream, and closes it: the other end, which waits for the confirmation of Taken, sees
// that.
func Call(s io.ReadWriter, id *Identity, to Process) (Verdict, error) {
	_, v, err := call(s, id, to)
	return v, err
}

// call is Call for any identity, and returns the resulting stream: with TLS it is a new one.
func call(s io.ReadWriter, id *Identity, to Process) (io.ReadWriter, Verdict, error) {
	h := hello{job: id.Job, stream: id.Stream, from: id.Self, to: to, ways: digest(id.Ways)}
	rand.Read(h.nonce[:])
	said := h.encode()
	if _, err := s.Write(said); err != nil {
		return s, 0, err
	}
	var challenge [nonceBytes + macBytes]byte
	if _, err := io.ReadFull(s, challenge[:]); err != nil {
		return s, 0, fmt.Errorf("no challenge: %w", err)
	}
	nonce := challenge[:nonceBytes]
	differ := hmac.Equal(challenge[nonceBytes:], mac(&id.Key, roleDiffer, said, nonce))
	if !differ && !hmac.Equal(challenge[nonceBytes:], mac(&id.Key, roleTo, said, nonce)) {
		return s, 0, ErrKey
	}
	if _, err := s.Write(mac(&id.Key, roleFrom, said, nonce)); err != nil {
		return s, 0, err
	}
	if !differ {
		sealed, err := seal(s, id, true, said, nonce)
		if err != nil {
			return s, 0, err
		}
		s = sealed
	}
	var verdict [1]byte
	if _, err := io.ReadFull(s, verdict[:]); err != nil {
		return s, 0, fmt.Errorf("no verdict: %w", err)
	}
	v := Verdict(verdict[0])
	if differ && v != Differs {
		return s, 0, ErrTongue
	}
	switch v {
	case Taken:
		_, err := s.Write(verdict[:])
		return s, v, err
	case Elsewhere, Gone, Full:
		return s, v, nil
	case Differs:
		if !differ {
			return s, 0, ErrTongue
		}
		return s, v, readWays(s)
	}
	return s, 0, ErrTongue
}

func readWays(s io.Reader) error {
	var length [2]byte
	if _, err := io.ReadFull(s, length[:]); err != nil {
		return err
	}
	text := make([]byte, min(int(binary.LittleEndian.Uint16(length[:])), mostWays))
	if _, err := io.ReadFull(s, text); err != nil {
		return err
	}
	return &WaysError{Theirs: string(text)}
}

func writeWays(s io.Writer, ways string) error {
	ways = ways[:min(len(ways), mostWays)]
	b := binary.LittleEndian.AppendUint16([]byte{byte(Differs)}, uint16(len(ways)))
	_, err := s.Write(append(b, ways...))
	return err
}

// Answer is the handshake of the end that was called. decide is called once the caller's identity
// is proved. Errors: that of the stream, ErrStranger, ErrVersion, ErrOld, ErrKey; then nothing that
// a stranger could use was sent. As Call, it is not for an identity with TLS. A caller that was
// sent Taken may have hung up meanwhile: so it confirms, and Answer returns Taken without an error
// only then.
func Answer(s io.ReadWriter, id *Identity, decide func(from Process) Verdict) (from Process,
	v Verdict, err error) {
	_, from, _, v, err = respond(s, only(id), first(decide))
	return from, v, err
}

// only is which identity an end that has one answers with.
func only(id *Identity) func(h *hello) *Identity {
	return func(*hello) *Identity { return id }
}

// first is decide for callers that take no further streams.
func first(decide func(from Process) Verdict) func(Process, uint16) Verdict {
	return func(from Process, stream uint16) Verdict {
		if stream != 0 {
			return Elsewhere
		}
		return decide(from)
	}
}

// respond is Answer for any identity, chosen by the caller's hello, and returns the resulting
// stream, and its number within the pair.
func respond(s io.ReadWriter, choose func(h *hello) *Identity,
	decide func(from Process, stream uint16) Verdict) (t io.ReadWriter, from Process, stream uint16,
	v Verdict, err error) {
	var said [helloBytes]byte
	h, err := readHello(s, &said)
	if err != nil {
		return s, from, 0, 0, err
	}
	id := choose(&h)
	switch {
	case h.job != id.Job || h.to.Number != id.Self.Number || h.from.Number == id.Self.Number:
		return s, from, 0, 0, ErrStranger
	case h.to.Life != id.Self.Life:
		return s, from, 0, 0, ErrOld
	}
	if hasLeft(s) {
		return s, from, 0, 0, io.ErrUnexpectedEOF
	}
	var nonce [nonceBytes]byte
	rand.Read(nonce[:])
	role, differ := roleTo, h.ways != digest(id.Ways)
	if differ {
		role = roleDiffer
	}
	if _, err := s.Write(append(nonce[:], mac(&id.Key, role, said[:], nonce[:])...)); err != nil {
		return s, from, 0, 0, err
	}
	var proof [macBytes]byte
	if _, err := io.ReadFull(s, proof[:]); err != nil {
		return s, from, 0, 0, unproved(err)
	}
	if !hmac.Equal(proof[:], mac(&id.Key, roleFrom, said[:], nonce[:])) {
		return s, from, 0, 0, ErrKey
	}
	if differ {
		return s, h.from, h.stream, Differs, writeWays(s, id.Ways)
	}
	if t, err = seal(s, id, false, said[:], nonce[:]); err != nil {
		return s, from, 0, 0, err
	}
	s = t
	v = decide(h.from, h.stream)
	word := [1]byte{byte(v)}
	if _, err = s.Write(word[:]); err == nil && v == Taken {
		_, err = io.ReadFull(s, word[:])
	}
	return s, h.from, h.stream, v, err
}

// hasLeft: the caller hung up before it was answered, and so not because of this end's proof. Its
// patience may have ended.
func hasLeft(s io.ReadWriter) bool {
	c, ok := s.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	left := false
	raw.Control(func(fd uintptr) { //nolint:errcheck // closed: the next read says so
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		left = err == nil && n == 0
	})
	return left
}

// unproved is the error of a caller that has given no proof. A caller that hangs up has seen this
// end's proof and rejected it: the two keys differ. One that stays silent, or was dropped here, may
// have the key.
func unproved(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w: it has hung up on this end's proof (%v)", ErrKey, err)
	}
	return err
}
