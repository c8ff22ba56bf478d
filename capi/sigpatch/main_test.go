package main

import (
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runtimeTable makes a table like the runtime's: every signal may be notified (1), some unblock.
func runtimeTable() []byte {
	t := make([]byte, 65*entryBytes)
	for sig := range 65 {
		flags := uint32(1)
		for _, s := range append(append([]int(nil), keep...), clear...) {
			if s == sig {
				flags |= unblock
			}
		}
		binary.LittleEndian.PutUint32(t[sig*entryBytes:], flags)
	}
	return t
}

func TestEditClearsTheFlagOfTheApplicationsSignals(t *testing.T) {
	table := runtimeTable()
	if err := edit(table, binary.LittleEndian); err != nil {
		t.Fatal(err)
	}
	left := map[uint32]bool{}
	for sig := range uint32(65) {
		flags := binary.LittleEndian.Uint32(table[sig*entryBytes:])
		if flags&^unblock != 1 {
			t.Errorf("signal %d: other flags have changed: %#x", sig, flags)
		}
		if flags&unblock != 0 {
			left[sig] = true
		}
	}
	for _, sig := range keep {
		if !left[uint32(sig)] {
			t.Errorf("signal %d has lost the flag", sig)
		}
		delete(left, uint32(sig))
	}
	if len(left) != 0 {
		t.Errorf("these still have it: %v", left)
	}
}

func TestEditRefusesATableThatItDoesNotKnow(t *testing.T) {
	for name, change := range map[string]func(t []byte){
		"SIGPROF without the flag": func(t []byte) {
			binary.LittleEndian.PutUint32(
				t[27*entryBytes:], 1)
		},
		"SIGTERM with the flag": func(t []byte) {
			binary.LittleEndian.PutUint32(
				t[15*entryBytes:], 1|unblock)
		},
	} {
		table := runtimeTable()
		change(table)
		before := string(table)
		if edit(table, binary.LittleEndian) == nil {
			t.Errorf("%s: accepted", name)
		}
		if string(table) != before {
			t.Errorf("%s: changed all the same", name)
		}
	}
}

// The table of this machine's Go is the one that the program knows: it is in every Go program.
func TestThisGoIsKnown(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sigpatch")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := patch(program); err != nil {
		t.Fatal(err)
	}
	if err := patch(program); err == nil || !strings.Contains(err.Error(),
		"another version of Go") {
		t.Errorf("a patched file was patched again: %v", err)
	}
}
