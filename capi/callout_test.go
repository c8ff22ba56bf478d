package main

import "testing"

// A continuation is found once, and its number is used again.
func TestContinuations(t *testing.T) {
	ran := 0
	next := func(int64) error { ran++; return nil }
	for range 1000 {
		a, b := addContinuation(next), addContinuation(next)
		if a == b || a == 0 || b == 0 {
			t.Fatalf("numbers %d and %d", a, b)
		}
		if err := resume(a, 0); err != nil {
			t.Fatal(err)
		}
		if takeContinuation(b) == nil {
			t.Fatal("the second is lost")
		}
		if err := resume(b, 0); err == nil {
			t.Fatal("a dropped continuation ran")
		}
	}
	if ran != 1000 || len(continuations.next) != 2 {
		t.Errorf("%d ran, %d slots; want 1000 and 2", ran, len(continuations.next))
	}
}
