package control

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// A message relayed too often, or with invalid content, is refused by the receiver, at any depth.
func TestRelayedCheck(t *testing.T) {
	deep := func(m *Message, times int) *Message {
		for range times {
			m = &Message{Relayed: &Relayed{Index: 1, Message: m}}
		}
		return m
	}
	for name, c := range map[string]struct {
		m     *Message
		wrong string
	}{
		"a few times": {deep(&Message{Ping: 1}, 5), ""},
		"an end": {&Message{Relayed: &Relayed{Index: 2, End: &Ending{How: "x"}}},
			""},
		"too often": {deep(&Message{Ping: 1}, mostRelays+1), "was relayed"},
		"from number 0": {&Message{Relayed: &Relayed{Index: 0, Kill: true}},
			"from number 0"},
		"from number -1": {&Message{Relayed: &Relayed{Index: -1,
			Message: &Message{Ping: 1}}}, "from number -1"},
		"another version": {deep(
			&Message{Attach: &Arrival{Version: Version - 1, Host: "h"}}, 2), "has version"},
		"no such host": {&Message{Attach: &Arrival{Version: Version, Cluster: "b",
			Hosts: []Host{{"n1", 2}}, Placed: []Placed{{"cluster b", []int{0, 1, 2}}}}},
			"is to run on hosts [0 1 2] of 2"},
		"a host before the first": {&Message{Attach: &Arrival{Version: Version,
			Placed: []Placed{{"cluster b", []int{-1}}}}}, "is to run on hosts [-1] of 1"},
		"behind it is the first": {&Message{Stand: &Stand{Behind: []Behind{{Host: 3, Index: 1},
			{Host: 0, Index: 2}}}}, "host 0 behind another one"},
		"one that is not numbered": {deep(&Message{Stand: &Stand{Behind: []Behind{{Host: 3}}}}, 1),
			"as number 0"},
		"good": {&Message{Attach: &Arrival{Version: Version,
			Hosts: []Host{{"n1", 2}}, Placed: []Placed{{"cluster b", []int{0, 1, 1}}}}}, ""},
	} {
		s := stream{&bytes.Buffer{}}
		conn := NewConn(s)
		if err := conn.Send(c.m); err != nil {
			t.Fatal(err)
		}
		_, err := conn.Receive()
		if c.wrong == "" && err != nil || c.wrong != "" &&
			(err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The hosts of processes: as given, the host of the spxrun by default, and an error where both ends
// count differently.
func TestArrivalOn(t *testing.T) {
	a := &Arrival{Placed: []Placed{{"cluster b", []int{0, 1, 1}}}}
	if on, err := a.On("cluster b", 3); err != nil || !slices.Equal(on, []int{0, 1, 1}) {
		t.Error(on, err)
	}
	if on, err := a.On("I/O process", 2); err != nil || !slices.Equal(on, []int{0, 0}) {
		t.Error(on, err)
	}
	if _, err := a.On("cluster b", 4); err == nil || !strings.Contains(err.Error(),
		"its file has 3 processes of cluster b, the system that runs has 4") {
		t.Error(err)
	}
}
