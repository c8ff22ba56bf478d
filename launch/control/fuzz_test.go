package control

import (
	"bytes"
	"io"
	"testing"

	"libspx/cluster/manage"
	"libspx/core/ident"
	"libspx/launch/abroad"
	"libspx/launch/job"
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
	f.Add(said(&Message{Job: &Job{Version: Version,
		Programs: []Program{{Procs: 2, Argv: []string{"a", "b"}, Env: []string{"X=1"}}}}},
		&Message{Signal: 15}))
	f.Add(said(&Message{Stopped: 20}, &Message{Done: &Done{Status: 3}}))
	f.Add(said(&Message{Job: &Job{Version: 77}}))
	one := []Program{{Procs: 2, Argv: []string{"a"}}}
	f.Add(said(&Message{Job: &Job{Version: Version, Programs: one, Hosts: []string{"h", "k"},
		Where: []int{0, 1}, Self: 1, StdinRank: -1}}))
	f.Add(said(&Message{Job: &Job{Version: Version, Programs: one, Hosts: []string{"h", "k"},
		Where: []int{0}, Self: 1}}))
	f.Add(said(&Message{Job: &Job{Version: Version, Programs: one, Where: []int{0, 7}}}))
	f.Add(said(&Message{Job: &Job{Version: Version,
		Programs: []Program{{Procs: -2, Argv: []string{"a"}}, {Procs: 1 << 40}}}}))
	f.Add(said(&Message{Event: job.Ended{Proc: -1, Connected: []int{-3}}},
		&Message{Action: job.SendTo{Procs: []int{-1}, Signal: 9}}))
	f.Add(said(&Message{Ready: &Ready{Addresses: []Address{{Proc: -1}}}},
		&Message{Output: &Output{Stream: -1}}, &Message{Taken: &Taken{Bytes: -1}}))
	f.Add(said(&Message{Hello: &Hello{Version: Version, Host: "h", Ranks: []int{0, -1, 1 << 40}}},
		&Message{Hello: &Hello{}}))
	f.Add(said(&Message{Mesh: &Mesh{First: []int{-1, 1 << 40}, Members: []int{0, 0}}},
		&Message{Copies: -1}, &Message{Copy: &Copy{Number: -1, Leader: 1 << 40}},
		&Message{Sequence: []byte{1, 1}}))
	tree := func(self, member int) *Message {
		return &Message{Tree: &Tree{Epoch: 1, Config: manage.Config{Self: self,
			Agents: make([]manage.Agent, 2), BeatMS: 100, LimitMS: 400,
			Clusters: []manage.Cluster{{Name: "a", Agents: []int{member}}}}}}
	}
	f.Add(said(tree(1, 0), &Message{Managed: &Managed{Epoch: 1, Text: []byte{1, 2}}},
		&Message{Left: []int{-1}}, &Message{Failed: &Failed{Part: -1}}))
	f.Add(said(tree(2, 0)))
	f.Add(said(tree(0, 7)))
	f.Add(said(&Message{Link: &Link{Version: Version, Job: [16]byte{1}, Off: "x"}},
		&Message{Question: &Question{Number: 1, Text: []byte{1}}},
		&Message{Answer: &Answer{Number: 1 << 63}}))
	f.Add(said(&Message{Abroad: &abroad.Message{Meet: &abroad.Meet{Number: 1,
		Wanted: make([]ident.ProcID, 2)}, Met: &abroad.Met{People: make([]abroad.Person, 1)},
		Ended: &abroad.Ended{How: 7}}}))
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
			if m.Job != nil {
				wellFormed(t, m.Job)
			}
			if m.Tree != nil {
				manage.Resume(m.Tree.Config, m.Tree.View, 0).Step(manage.Tick{}, 1)
			}
		}
		if _, err := c.Receive(); err == nil {
			t.Error(io.ErrNoProgress)
		}
	})
}

// wellFormed uses a job as its runners do.
func wellFormed(t *testing.T, j *Job) {
	rank := 0
	for _, p := range j.Programs {
		if len(p.Argv) == 0 {
			t.Error("a program without a name")
		}
		for range p.Procs {
			if h := j.Host(rank); h < 0 || h >= max(1, len(j.Hosts)) {
				t.Errorf("rank %d is on host %d of %d", rank, h, len(j.Hosts))
			}
			rank++
		}
	}
	if rank == 0 || j.Self >= max(1, len(j.Hosts)) {
		t.Errorf("a job of %d processes for host %d", rank, j.Self)
	}
}
