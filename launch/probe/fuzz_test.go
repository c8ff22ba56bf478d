package probe

import (
	"bytes"
	"testing"
)

type stream struct{ *bytes.Buffer }

func (stream) Close() error { return nil }

// Bytes from a measured host are a message or an error, and its description of switches is a tree
// or nothing.
func FuzzReceive(f *testing.F) {
	for _, m := range []*message{
		{Ready: &ready{Switch: "s0.s4.node17", Pattern: "switch.switch.node"}},
		{Times: &times{ID: -1, Took: []int64{-1}}}, {Rate: &rate{ID: 1 << 40}},
		{Fails: &fails{ID: 3, Text: "x"}}, {Begin: &begin{Version: version}},
	} {
		s := stream{&bytes.Buffer{}}
		if err := newConn(s).send(m); err != nil {
			f.Fatal(err)
		}
		f.Add(s.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newConn(stream{bytes.NewBuffer(b)})
		var peers []*peer
		for range len(b) + 1 {
			m, err := c.receive()
			if err != nil {
				break
			}
			if m.Ready != nil {
				peers = append(peers, &peer{ready: m.Ready})
			}
			if m.Begin != nil && m.Begin.Version != version {
				(&host{}).settle(m.Begin)
			}
		}
		if len(peers) > 0 {
			if tree := fromSlurm(peers); tree != nil {
				tree.Splits()
			}
		}
	})
}
