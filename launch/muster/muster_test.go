package muster

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// A tree of five hosts: 1 starts 2 and 3, 4 is started from here.
func five() *Machine {
	return New(Config{Cluster: "b", Hosts: []string{"n0", "n1", "n2", "n3", "n4"},
		Starters: []int{0, 0, 1, 1, 0}, Limit: 20 * time.Second})
}

func expect(t *testing.T, m *Machine, e Event, now time.Duration, want ...Action) {
	t.Helper()
	if got := m.Step(e, now); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("%#v at %v: %#v, not %#v", e, now, got, want)
	}
}

// Each agent is started by the one whose it is to start, as soon as that is there, and all are
// there once.
func TestAllCome(t *testing.T) {
	m := five()
	expect(t, m, Began{}, 0, Start{1, 0}, Start{4, 0})
	expect(t, m, Here{4}, time.Second)
	expect(t, m, Here{4}, time.Second) // again: nothing of it
	expect(t, m, Here{2}, time.Second) // which was not started
	expect(t, m, Here{1}, 2*time.Second, Start{2, 1}, Start{3, 1})
	expect(t, m, Here{3}, 3*time.Second)
	expect(t, m, Here{2}, 3*time.Second, Complete{})
	if at, ok := m.Deadline(); ok {
		t.Errorf("there is nothing to wait for, and it waits until %v", at)
	}
	expect(t, m, Tick{}, time.Hour)
	// before the cluster is attached
	expect(t, m, Gone{3, "its shell has ended"}, 4*time.Second,
		Fail{Text: "cluster b: host n3: its shell has ended"})
	expect(t, m, Gone{2, "its shell has ended"}, 4*time.Second)
}

// A cluster of one host is complete at once.
func TestAlone(t *testing.T) {
	m := New(Config{Hosts: []string{"n0"}, Starters: []int{0}})
	expect(t, m, Began{}, 0, Complete{})
}

// Who does not come is named, now and then, and given up in the end: each host has its time from
// when it was started.
func TestLate(t *testing.T) {
	m := five()
	m.Step(Began{}, 0)
	m.Step(Here{4}, time.Second)
	if at, ok := m.Deadline(); !ok || at != FirstWord {
		t.Errorf("the user is told at %v (%v)", at, ok)
	}
	expect(t, m, Tick{}, FirstWord-1)
	expect(t, m, Tick{}, FirstWord,
		Say{"cluster b: waiting for n1, which are to start those of 2 more hosts"})
	expect(t, m, Tick{}, FirstWord+1)
	m.Step(Here{1}, 10*time.Second)
	expect(t, m, Tick{}, FirstWord+NextWord, Say{"cluster b: waiting for n2, n3"})
	m.Step(Here{2}, 21*time.Second)
	if at, ok := m.Deadline(); !ok || at != 30*time.Second {
		t.Errorf("n3 has until %v (%v)", at, ok)
	}
	expect(t, m, Tick{}, 30*time.Second-1)
	expect(t, m, Tick{}, 30*time.Second,
		Fail{"cluster b: host n3: its agent has not answered within 20s", []int{3}})
	expect(t, m, Here{3}, 31*time.Second)
	expect(t, m, Gone{3, ""}, 31*time.Second)
	if _, ok := m.Deadline(); ok {
		t.Error("it still waits")
	}
}

// Without a limit it waits for ever, and says so.
func TestNoLimit(t *testing.T) {
	m := New(Config{Cluster: "b", Hosts: make([]string, 20), Starters: make([]int, 20)})
	m.Step(Began{}, 0)
	list := m.Step(Tick{}, time.Hour)
	if s, ok := list[0].(Say); len(list) != 1 || !ok || !strings.HasSuffix(s.Text, " and 11 more") {
		t.Errorf("%#v", list)
	}
}
