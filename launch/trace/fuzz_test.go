package trace

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// The file of a process that may have been killed in any moment, or that writes what it likes: the
// head, and the rest from a place on.
func FuzzFile(f *testing.F) {
	const size = cTraceHead + cTraceMaps + cTraceSites*traceSiteBytes
	head := make([]byte, traceHeadBytes)
	put := binary.LittleEndian.PutUint64
	put(head[traceHeadOffMagic:], cTraceMagic)
	put(head[traceHeadOffSitesOff:], cTraceHead+cTraceMaps)
	put(head[traceHeadOffPeersOff:], cTraceHead+cTraceMaps)
	put(head[traceHeadOffRecordsOff:], cTraceHead+cTraceMaps)
	put(head[traceHeadOffRecords:], 3)
	put(head[traceHeadOffRoom:], 2)
	binary.LittleEndian.PutUint32(head[traceHeadOffPeers:], 4)
	f.Add(head, make([]byte, 3*traceRecordBytes), uint32(cTraceHead+cTraceMaps))
	f.Add(head[:8], []byte{1, 2, 3}, uint32(0))
	path := filepath.Join(f.TempDir(), "0.0")
	f.Fuzz(func(t *testing.T, head, rest []byte, at uint32) {
		b := make([]byte, size, size+len(rest))
		copy(b, head)
		at %= size + 1
		b = append(b[:at], append(rest, b[min(size, int(at)+len(rest)):]...)...)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := open(path)
		if err != nil {
			return
		}
		defer file.close()
		n := uint64(0)
		file.each(func(r *record) {
			n++
			if r.end != 0 && r.end < r.begin || r.args > cTraceArgs {
				t.Errorf("%+v", r)
			}
		})
		if n > file.records {
			t.Errorf("%d of %d records", n, file.records)
		}
		file.sites()
	})
}
