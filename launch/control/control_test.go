package control

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMessages(t *testing.T) {
	a, b := net.Pipe()
	deadline := time.Now().Add(20 * time.Second)
	a.SetDeadline(deadline)
	b.SetDeadline(deadline)
	from, to := NewConn(a), NewConn(b)
	messages := []*Message{
		{Job: &Job{Version: Version, Timeout: time.Second, StdinRank: -1,
			Programs: []Program{{Procs: 2, Argv: []string{"a", "not UTF-8: \xff\x00\xfe"},
				Env: []string{"X=\xc3("}}}}},
		{Signal: 2},
		{Stopped: 20},
		{Done: &Done{Status: 0}}, // distinct from an empty message
		{Done: &Done{Status: 139}},
	}
	go func() {
		for _, m := range messages {
			if err := from.Send(m); err != nil {
				t.Error(err)
			}
		}
		from.Close()
	}()
	for _, want := range messages {
		got, err := to.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	if m, err := to.Receive(); err != io.EOF {
		t.Errorf("after the end: %v, %v", m, err)
	}
}

func TestOtherVersion(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	go NewConn(a).Send(&Message{Job: &Job{Version: Version + 1}})
	if _, err := NewConn(b).Receive(); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("a job of another version: %v", err)
	}
}
