package control

import (
	"bytes"
	"io"
	"testing"

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
	f.Add(said(&Message{Job: &Job{Version: Version, Programs: []Program{{Procs: 2, Argv: []string{"a", "b"}, Env: []string{"X=1"}}}}}, &Message{Signal: 15}))
	f.Add(said(&Message{Stopped: 20}, &Message{Done: &Done{Status: 3}}))
	f.Add(said(&Message{Job: &Job{Version: 77}}))
	one := []Program{{Procs: 2, Argv: []string{"a"}}}
	f.Add(said(&Message{Job: &Job{Version: Version, Programs: one, Hosts: []string{"h", "k"}, Where: []int{0, 1}, Self: 1, StdinRank: -1}}))
	f.Add(said(&Message{Job: &Job{Version: Version, Programs: one, Hosts: []string{"h", "k"}, Where: []int{0}, Self: 1}}))
	f.Add(said(&Message{Job: &Job{Version: Version, Programs: one, Where: []int{0, 7}}}))
	f.Add(said(&Message{Job: &Job{Version: Version, Programs: []Program{{Procs: -2, Argv: []string{"a"}}, {Procs: 1 << 40}}}}))
	f.Add(said(&Message{Event: job.Ended{Proc: -1, Connected: []int{-3}}}, &Message{Action: job.SendTo{Procs: []int{-1}, Signal: 9}}))
	f.Add(said(&Message{Ready: &Ready{Addresses: []Address{{Proc: -1}}}}, &Message{Output: &Output{Stream: -1}}, &Message{Taken: &Taken{Bytes: -1}}))
	f.Add(said(&Message{Hello: &Hello{Version: Version, Host: "h", Ranks: []int{0, -1, 1 << 40}}}, &Message{Hello: &Hello{}}))
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
		}
		if _, err := c.Receive(); err == nil {
			t.Error(io.ErrNoProgress)
		}
	})
}

// wellFormed does what those do who run a job.
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
