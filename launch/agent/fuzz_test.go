package agent

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"libspx/ft/detect"
)

// Datagrams from any sender: one that was not sealed with the job's key for this host is dropped; any other is a message to a
// machine that stays sound.
func FuzzUnseal(f *testing.F) {
	h := &heartbeat{self: 1, job: [16]byte{1, 2, 3}, key: [32]byte{9}}
	f.Add(h.seal(1, []byte{5, 1, 1, 2}), false)
	f.Add([]byte{1, 9, 9, 1, 0}, true)
	f.Add(make([]byte, beatHead+beatProof), false)
	f.Fuzz(func(t *testing.T, b []byte, proved bool) {
		h := &heartbeat{self: 1, job: [16]byte{1, 2, 3}, key: [32]byte{9}}
		h.peers = append(h.peers, h.at, h.at, h.at)
		m := detect.New(detect.Config{Self: 1, Hosts: 3, Period: 10, Limit: 100}, 0)
		if proved { // by another host of the job, which is broken
			from := int(binary.LittleEndian.Uint32(append(bytes.Clone(b), 0, 0, 0, 0)))
			b = (&heartbeat{self: from, job: h.job, key: h.key}).seal(1, b)
		}
		from, text, ok := h.unseal(b)
		if !ok {
			return
		}
		if from < 0 || from >= len(h.peers) || !bytes.Equal((&heartbeat{self: from, job: h.job, key: h.key}).seal(1, text), b) {
			t.Fatalf("host %d, %x of %x", from, text, b)
		}
		m.Receive(from, text, 1) //nolint:errcheck // must not panic
	})
}

// A core file is what a process has left, or any other file.
func FuzzCore(f *testing.F) {
	head := make([]byte, 64+56)
	copy(head, "\x7fELF\x02\x01\x01")
	for at, v := range map[int]uint16{16: 4, 18: 62, 52: 64, 54: 56, 56: 1} {
		binary.LittleEndian.PutUint16(head[at:], v)
	}
	binary.LittleEndian.PutUint32(head[20:], 1)
	binary.LittleEndian.PutUint64(head[32:], 64)
	binary.LittleEndian.PutUint32(head[64:], 4) // PT_NOTE
	binary.LittleEndian.PutUint64(head[64+8:], uint64(len(head)))
	note := []byte("\x05\x00\x00\x00\x28\x00\x00\x00ELIFCORE\x00\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00")
	note = append(note, make([]byte, 24)...)
	binary.LittleEndian.PutUint64(head[64+32:], uint64(len(note)))
	f.Add(append(head, note...))
	f.Add([]byte("\x7fELF"))
	file := filepath.Join(f.TempDir(), "core")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		pidOfCore(file)
		programOfCore(file)
	})
}
