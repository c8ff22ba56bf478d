package main

import (
	"testing"

	"libspx/core/tool"
)

// Every counter of the process has a place of its own.
func TestPlacesOfCounters(t *testing.T) {
	at := map[uintptr]tool.Counter{}
	for c := range tool.UnexpectedLength {
		place := countedAt[c]
		if other, taken := at[place]; taken || (place == 0) != (c == tool.Sent) || place%8 != 0 {
			t.Errorf("counter %d is at %d; so is %d", c, place, other)
		}
		at[place] = c
	}
}
