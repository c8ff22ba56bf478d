package comm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"

	"libspx/core/mpierr"
)

// The message of a DupTree, and the table of MPI_Comm_split, from any bytes.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(EncodeContext(77, nil))
	f.Add(EncodeContext(0, errors.New("no class")))
	f.Add(EncodeContext(5, mpierr.New(mpierr.NoMem, "no memory")))
	f.Add(make([]byte, 5*choiceWire))
	f.Fuzz(func(t *testing.T, b []byte) {
		if ctx, err := DecodeContext(b); err == nil &&
			string(EncodeContext(ctx, nil)) != string(append(make([]byte, 8), b[8:]...)) {
			t.Errorf("%x becomes the context %d", b, ctx)
		}
		table := decodeChoices(b)
		if len(table) != len(b)/choiceWire {
			t.Errorf("%d choices in %d bytes", len(table), len(b))
		}
		if n := len(colors(table)); n > len(table) {
			t.Errorf("%d colors of %d processes", n, len(table))
		}
	})
}

// script is a Link that receives the given messages, whichever process sends.
type script struct{ list [][]byte }

func (s *script) Send(_, _ int, data []byte) error {
	s.list = append(s.list, bytes.Clone(data))
	return nil
}

func (s *script) Recv(_, _ int, buf []byte) (int, error) {
	if len(s.list) == 0 {
		return 0, errors.New("there is no more")
	}
	m := s.list[0]
	s.list = s.list[1:]
	if len(m) > len(buf) {
		return 0, mpierr.New(mpierr.Truncate, "%d bytes for %d", len(m), len(buf))
	}
	return copy(buf, m), nil
}

// messages are those that a payload travels in.
func messages(payload []byte, failure error) [][]byte {
	s := &script{}
	send(s, 0, 0, payload, failure) //nolint:errcheck // a script takes everything
	return s.list
}

// A payload arrives as it was sent, in parts; a length that is not true takes no more memory than
// what has come.
func TestPartsOfAPayload(t *testing.T) {
	for _, n := range []int{0, 1, firstPart - msgHeader, firstPart - msgHeader + 1, nextPart,
		nextPart + firstPart - msgHeader, 2*nextPart + 700} {
		payload := bytes.Repeat([]byte("0123456"), n/7+1)[:n]
		s := &script{messages(payload, nil)}
		if got, err := recv(s, 0, 0); err != nil || !bytes.Equal(got, payload) || len(s.list) != 0 {
			t.Errorf("%d bytes: %d, %v", n, len(got), err)
		}
		if all := messages(payload, nil); len(all) > 1 {
			short := append(all[:len(all)-1:len(all)-1], all[len(all)-1][1:])
			if _, err := recv(&script{short}, 0, 0); !errors.Is(err, errShort) {
				t.Errorf("%d bytes, one less: %v", n, err)
			}
		}
	}
	liar := binary.LittleEndian.AppendUint32(make([]byte, 4, firstPart), math.MaxUint32)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := recv(&script{[][]byte{liar[:firstPart]}}, 0, 0); err == nil {
		t.Error("a payload of 4 GiB of which 512 bytes came is taken")
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 4*nextPart {
		t.Errorf("%d bytes of memory for the 512 that came", after.TotalAlloc-before.TotalAlloc)
	}
	if _, err := recv(&script{messages(nil, mpierr.New(mpierr.NoMem, "no memory"))}, 0,
		0); mpierr.ClassOf(err) != mpierr.NoMem || err.Error() != "no memory" {
		t.Errorf("an error becomes %v", err)
	}
}

// Any bytes in place of a payload: what is accepted is what would have been sent so.
func FuzzReceive(f *testing.F) {
	for _, all := range [][][]byte{messages(nil, nil), messages([]byte("payload"), nil),
		messages(make([]byte, 600), nil), messages(nil, mpierr.New(mpierr.Spawn, "none"))} {
		f.Add(append(all, nil)[0], append(all, nil)[1])
	}
	f.Add(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), []byte{})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s := &script{[][]byte{first, second}}
		got, err := recv(s, 0, 0)
		if err != nil {
			if class := mpierr.ClassOf(err); class <= 0 || class > math.MaxInt32 {
				t.Errorf("the error %v has the class %d", err, class)
			}
			return
		}
		all := messages(got, nil)
		if !bytes.Equal(all[0], first) || len(all) > 1 && !bytes.Equal(all[1], second) {
			t.Errorf("%x %x is accepted as %x", first, second, got)
		}
	})
}

// The blocks of an Exchange.
func FuzzUnframe(f *testing.F) {
	f.Add([]byte{}, 0)
	f.Add(frame(frame(nil, []byte("ab")), nil), 2)
	f.Add([]byte{255, 255, 255, 255}, 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > len(b) {
			return // the number of processes is this process's own knowledge
		}
		blocks, err := unframe(b, n)
		if err != nil {
			return
		}
		var again []byte
		for _, block := range blocks {
			again = frame(again, block)
		}
		if len(blocks) != n || !bytes.Equal(again, b) {
			t.Errorf("%x are the %d blocks %x", b, n, blocks)
		}
	})
}

// The message of the root of a spawn.
func FuzzOutcome(f *testing.F) {
	f.Add(Outcome{Asked: 3}.Encode())
	f.Add(Outcome{Asked: 3, Codes: []uint32{0, 53, 0}}.Encode())
	f.Add(Outcome{Asked: 1 << 33, Failure: mpierr.New(mpierr.Spawn, "too many")}.Encode())
	f.Add(Outcome{Codes: []uint32{1}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := DecodeOutcome(b)
		if err != nil {
			return
		}
		if len(o.Codes) > o.Asked {
			t.Errorf("%d codes of %d processes", len(o.Codes), o.Asked)
		}
		if again := o.Encode(); !bytes.Equal(again, b) &&
			mpierr.ClassOf(o.Failure) != mpierr.Intern {
			t.Errorf("%x is %+v, which is %x", b, o, again)
		}
	})
}
