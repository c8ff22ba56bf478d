package main

import "testing"

// A continuation is found once, and its number is used again.
func TestContinuations(t *testing.T) {
	ran := 0
	next := func(int64) error { ran++; return nil }
	for range 1000 {
		a, b := addContinuation(continuation{next: next}), addContinuation(continuation{next: next})
		if a == b || a == 0 || b == 0 {
			t.Fatalf("numbers %d and %d", a, b)
		}
		if err := takeContinuation(a).next(0); err != nil {
			t.Fatal(err)
		}
		if takeContinuation(b).none() {
			t.Fatal("the second is lost")
		}
		if !takeContinuation(b).none() {
			t.Fatal("a dropped continuation is there again")
		}
	}
	if ran != 1000 || len(continuations.list) != 2 {
		t.Errorf("%d ran, %d slots; want 1000 and 2", ran, len(continuations.list))
	}
}
