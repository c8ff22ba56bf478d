package control

import (
	"bytes"
	"io"
	"testing"
)

type stream struct{ *bytes.Buffer }

func (stream) Close() error { return nil }

// Whatever comes over the socket is a message or an error, and it ends.
func FuzzReceive(f *testing.F) {
	said := func(messages ...*Message) []byte {
		s := stream{&bytes.Buffer{}}
		c := NewConn(s)
		for _, m := range messages {
			if err := c.Send(m); err != nil {
				f.Fatal(err)
			}
		}
		return s.Bytes()
	}
	f.Add([]byte{})
	f.Add(said(&Message{Job: &Job{Version: Version, Programs: []Program{{Procs: 2, Argv: []string{"a", "b"}, Env: []string{"X=1"}}}}}, &Message{Signal: 15}))
	f.Add(said(&Message{Stopped: 20}, &Message{Done: &Done{Status: 3}}))
	f.Add(said(&Message{Job: &Job{Version: 77}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := NewConn(stream{bytes.NewBuffer(b)})
		for range len(b) + 1 {
			m, err := c.Receive()
			if err != nil {
				if m != nil {
					t.Errorf("a message %+v with the error %v", m, err)
				}
				return
			}
		}
		if _, err := c.Receive(); err == nil {
			t.Error(io.ErrNoProgress)
		}
	})
}
