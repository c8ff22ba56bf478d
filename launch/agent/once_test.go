package agent

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"libspx/launch/service"
)

// wire is a connection that keeps what was sent.
type wire struct{ name string }

func (w *wire) Send(*service.Message) error { return nil }
func (w *wire) Gone() bool                  { return false }
func (w *wire) Close()                      {}

// answers writes answers shortly: "a first", "b again".
func answers(list []answer) (out []string) {
	for _, x := range list {
		out = append(out, x.to.(*wire).name+map[uint64]string{service.SaidFirst: " first",
			service.SaidAgain: " again"}[x.number])
	}
	return out
}

// The first one speaks; the others wait until it has spoken, and are told then; who comes later is
// told at once.
func TestSayings(t *testing.T) {
	var s sayings
	a, b, c, d := &wire{"a"}, &wire{"b"}, &wire{"c"}, &wire{"d"}
	rank := func(n uint32) sayer { return sayer{rank: n} }
	for n, step := range []struct {
		got  []answer
		want []string
	}{
		{s.ask("x", speaking{rank(2), a, "this"}), []string{"a first"}},
		{s.ask("x", speaking{rank(0), b, "this"}), nil},
		{s.ask("x", speaking{rank(1), c, "this"}), nil},
		{s.ask("y", speaking{sayer{host: "h2"}, d, "that"}), []string{"d first"}}, // another cause
		// has lost patience
		{s.forget(c, false), nil},
		{s.said(a), []string{"b again"}},
		{s.forget(a, false), nil},
		{s.ask("x", speaking{rank(3), c, "this"}), []string{"c again"}},
		{s.ask("x", speaking{rank(2), c, "this"}), []string{"c again"}}, // the speaker itself
		{s.ask("x", speaking{rank(3), c, "this"}), []string{"c again"}},
		{s.ask("x", speaking{sayer{world: 1, rank: 4}, c, "this"}), []string{"c again"}},
		{s.said(d), nil},
		{s.ask("y", speaking{sayer{host: "h3"}, a, "that"}), []string{"a again"}},
		{s.ask("y", speaking{sayer{host: "h1"}, a, "that"}), []string{"a again"}},
		// the other ranks are not listed
		{s.ask("z", speaking{rank(1), b, ""}), []string{"b first"}},
		{s.said(b), nil},
		{s.ask("z", speaking{rank(2), b, ""}), []string{"b again"}},
	} {
		if got := answers(step.got); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q", n, got, step.want)
		}
	}
	want := []string{"also on ranks 0,3, rank 4 of world 1: this", "also on hosts h1, h3: that"}
	if got := s.lines(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A speaker that was ended before it has spoken is followed by the next one.
func TestSpeakerDies(t *testing.T) {
	var s sayings
	a, b, c := &wire{"a"}, &wire{"b"}, &wire{"c"}
	for n, step := range []struct {
		got  []answer
		want []string
	}{
		{s.ask("x", speaking{sayer{rank: 0}, a, "this"}), []string{"a first"}},
		{s.ask("x", speaking{sayer{rank: 1}, b, "this"}), nil},
		{s.ask("x", speaking{sayer{rank: 2}, c, "this"}), nil},
		{s.forget(a, false), []string{"b first"}},
		{s.said(a), nil}, // it is not its turn any more
		{s.said(b), []string{"c again"}},
		{s.ask("y", speaking{sayer{rank: 0}, a, "that"}), []string{"a first"}},
		{s.forget(a, false), nil},
		{s.ask("y", speaking{sayer{rank: 1}, b, "that"}), []string{"b first"}}, // nothing was said
	} {
		if got := answers(step.got); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q", n, got, step.want)
		}
	}
	if got := s.lines(); !slices.Equal(got, []string{"also on rank 2: this"}) {
		t.Errorf("%q", got)
	}
}

// What ends a job is said by one; those that had the same to say are named, and those that had
// something else with that, a few lines of it.
func TestOtherErrors(t *testing.T) {
	var s sayings
	a, b := &wire{"a"}, &wire{"b"}
	s.ask("end", speaking{sayer{rank: 3}, a, "this\n  handler"})
	s.ask("end", speaking{sayer{rank: 1}, b, "that\n  handler"}) // waits
	s.said(a)
	for n, text := range []string{"this\n  handler", "that\n  handler", "", "c", "d", "e", "f",
		"f"} {
		s.ask("end", speaking{sayer{rank: uint32(4 + n)}, b, text})
	}
	want := []string{"at the same time on ranks 1,5: that", "also on rank 4: this",
		"at the same time on rank 7: c", "at the same time on rank 8: d",
		"at the same time on rank 9: e", "at the same time on ranks 10-11: other errors"}
	if got := s.lines(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !s.alike("end", "this\n  handler") || s.alike("end", "that\n  handler") ||
		!s.alike("another", "x") {
		t.Error("what is alike is not known")
	}
}

// Who was ended while it waited for the speaker is named like the others.
func TestEndedWhileWaiting(t *testing.T) {
	var s sayings
	a, b, c := &wire{"a"}, &wire{"b"}, &wire{"c"}
	for i, w := range []*wire{a, b, c} {
		s.ask("end", speaking{sayer{rank: uint32(i)}, w, "this"})
	}
	s.forget(b, true) // c still waits
	if got := s.lines(); !slices.Equal(got, []string{"also on ranks 1-2: this"}) {
		t.Errorf("%q", got)
	}
}

// More causes than are kept may all be said.
func TestSayingsAreBounded(t *testing.T) {
	var s sayings
	for i := range 2 * mostSayings {
		if got := answers(s.ask(fmt.Sprint(i), speaking{sayer{}, &wire{"a"}, "x"})); !slices.Equal(
			got, []string{"a first"}) {
			t.Fatalf("cause %d: %q", i, got)
		}
	}
	if len(s.of) != mostSayings || len(s.inOrder) != mostSayings {
		t.Errorf("%d causes are kept", len(s.of))
	}
}

// The question is written in C, too: the same numbers stand there.
func TestNumbersInC(t *testing.T) {
	text, err := os.ReadFile("../../capi/boundary/once.c")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"SAY": int(service.Say), "SAID": int(service.Said),
		"SAID_FIRST": service.SaidFirst, "SAID_AGAIN": service.SaidAgain} {
		m := regexp.MustCompile(`\b` + name + ` = (\d+)`).FindSubmatch(text)
		if m == nil || string(m[1]) != strconv.Itoa(want) {
			t.Errorf("once.c: %s is not %d", name, want)
		}
	}
}
