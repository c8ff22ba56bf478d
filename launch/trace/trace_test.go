package trace

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// zz_layout.go is what the generator makes of trace_file.h today.
func TestLayoutIsCurrent(t *testing.T) {
	out := filepath.Join(t.TempDir(), "zz.go")
	if msg, err := exec.Command("go", "run", "../../shm/layoutgen",
		"../../capi/dataplane/base/trace_file.h", out, "trace").CombinedOutput(); err != nil {
		t.Fatalf("layoutgen: %v\n%s", err, msg)
	}
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("zz_layout.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(want) {
		t.Error("zz_layout.go is out of date: run  go generate ./launch/trace")
	}
}

// A clock that is ahead by 5 s and gains 20 us each second, seen by answers that were under way for
// different times on the two ways: what is left of the error is less than half the way of the best
// answer.
func TestClock(t *testing.T) {
	const ahead, gain, us = 5e9, 20e-6, 1000
	there := func(here float64) uint64 { return uint64(here + ahead + gain*here) }
	var notes []ClockNote
	for _, begin := range []float64{1e9, 61e9} {
		for i, way := range []struct{ out, back float64 }{{900, 100}, {40, 60}, {300, 30},
			{50, 400}} {
			at := begin + float64(i)*1e6
			notes = append(notes, ClockNote{1, uint64(at), there(at + way.out*us),
				uint64(at + (way.out+way.back)*us)})
		}
	}
	c := clockOf(notes)
	for _, here := range []float64{1e9, 20e9, 61e9} {
		if got := c.here(there(here)); math.Abs(got-here) > 50*us {
			t.Errorf("%v s is taken for %v s", here/1e9, got/1e9)
		}
	}
	if c.err != 50*us {
		t.Errorf("the error is said to be %v us, not 50", c.err/us)
	}
	if clockOf(nil).here(7) != 7 {
		t.Error("a host that was not asked has another clock")
	}
}

// Bytes that a dying process, or another one, may have left do no harm.
func TestDamagedFiles(t *testing.T) {
	good := make([]byte, cTraceHead+cTraceMaps+cTraceSites*traceSiteBytes+4096+traceRecordBytes)
	put := func(at int, v uint64) {
		for i := range 8 {
			good[at+i] = byte(v >> (8 * i))
		}
	}
	put(traceHeadOffMagic, cTraceMagic)
	put(traceHeadOffRecords, 1)
	put(traceHeadOffRoom, 1)
	put(traceHeadOffSitesOff, cTraceHead+cTraceMaps)
	put(traceHeadOffPeersOff, cTraceHead+cTraceMaps+cTraceSites*traceSiteBytes)
	put(traceHeadOffRecordsOff, uint64(len(good)-traceRecordBytes))
	record := len(good) - traceRecordBytes
	put(record+traceRecordOffBegin, 5)
	good[record+traceRecordOffKind], good[record+traceRecordOffFn] = cTraceCall, 1
	try := func(data []byte) int {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "0.1"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		if err := all.Write(&strings.Builder{}, nil); err != nil {
			t.Fatal(err)
		}
		return len(all.Job().Ranks)
	}
	if try(good) != 1 {
		t.Fatal("a file that is right is not read")
	}
	if try(good[:1000]) != 0 || try(nil) != 0 {
		t.Error("a file that is cut short is read")
	}
	for _, at := range []int{traceHeadOffMagic, traceHeadOffRecords, traceHeadOffRoom,
		traceHeadOffSitesOff, traceHeadOffPeersOff, traceHeadOffRecordsOff, traceHeadOffPeers,
		traceHeadOffMaps, traceHeadOffHost,
		record, record + traceRecordOffEnd, record + traceRecordOffKind,
		record + traceRecordOffTimes} {
		bad := slices.Clone(good)
		for i := range 8 {
			bad[at+i] = 0xff
		}
		try(bad)
	}
}
