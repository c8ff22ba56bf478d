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

func TestSayings(t *testing.T) {
	var s sayings
	rank := func(n uint32) sayer { return sayer{rank: n} }
	for n, step := range []struct {
		cause, short string
		who          sayer
		may          bool
	}{
		{"a", "this", rank(2), true},
		{"a", "this", rank(2), false}, // it has said it
		{"a", "this", rank(0), false},
		{"a", "this", rank(1), false},
		{"a", "this", rank(1), false},
		{"b", "", rank(0), true},
		{"b", "", rank(1), false},
		{"a", "this", sayer{world: 1, rank: 4}, false},
		{"c", "that", sayer{host: "y"}, true},
		{"c", "that", sayer{host: "z"}, false},
		{"c", "that", sayer{host: "x"}, false},
		{"d", "once", rank(7), true},
	} {
		if got := s.may(step.cause, step.short, step.who); got != step.may {
			t.Errorf("step %d: may %+v say %q? %v, want %v", n, step.who, step.cause, got, step.may)
		}
	}
	want := []string{"also on ranks 0-1, rank 4 of world 1: this", "also on hosts x, z: that"}
	if got := s.lines(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// More causes than are kept may all be said.
func TestSayingsAreBounded(t *testing.T) {
	var s sayings
	for i := range 2 * mostSayings {
		if !s.may(fmt.Sprint(i), "x", sayer{}) {
			t.Fatalf("cause %d", i)
		}
	}
	if len(s.of) != mostSayings || s.may("0", "x", sayer{rank: 1}) {
		t.Errorf("%d causes are kept", len(s.of))
	}
}

// The question is written in C, too: the same numbers stand there.
func TestNumbersInC(t *testing.T) {
	text, err := os.ReadFile("../../capi/shim/once.c")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"SAY": int(service.Say), "SAID_AGAIN": saidAgain} {
		m := regexp.MustCompile(`\b` + name + ` = (\d+)`).FindSubmatch(text)
		if m == nil || string(m[1]) != strconv.Itoa(want) {
			t.Errorf("once.c: %s is not %d", name, want)
		}
	}
}
