package trace

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"libspx/core/coll"
)

// file is what a process has left.
type file struct {
	data []byte
	rank Rank

	host           int
	began, ended   uint64 // ns of its host's clock; ended 0: MPI_Finalize was not left
	records, room  uint64
	recordsAt      uint64
	sitesAt, peers uint64
	peersAt, ns    uint64
}

var fileName = regexp.MustCompile(`^\d+\.\d+$`)

// openAll opens the files of a directory, ordered by name. Those that cannot be read are left out.
func openAll(dir string) ([]*file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []*file
	for _, e := range entries {
		if !fileName.MatchString(e.Name()) {
			continue
		}
		if f, err := open(filepath.Join(dir, e.Name())); err == nil {
			out = append(out, f)
		}
	}
	return out, nil
}

func open(path string) (*file, error) {
	h, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < cTraceHead+cTraceMaps+cTraceSites*traceSiteBytes {
		return nil, fmt.Errorf("%s is cut short", path)
	}
	data, err := unix.Mmap(int(h.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	f := &file{data: data}
	if err := f.readHead(); err != nil {
		f.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *file) close() { unix.Munmap(f.data) } //nolint:errcheck // nothing depends on it

func (f *file) u64(at uint64) uint64 { return binary.LittleEndian.Uint64(f.data[at:]) }
func (f *file) u32(at uint64) uint32 { return binary.LittleEndian.Uint32(f.data[at:]) }
func (f *file) u16(at uint64) uint16 { return binary.LittleEndian.Uint16(f.data[at:]) }

// fits: n items of size bytes are within the file.
func (f *file) fits(at, n, size uint64) bool {
	return at <= uint64(len(f.data)) && n <= (uint64(len(f.data))-at)/size
}

func (f *file) readHead() error {
	if f.u64(traceHeadOffMagic) != cTraceMagic {
		return fmt.Errorf("no trace of this version")
	}
	f.began, f.ended = f.u64(traceHeadOffBegan), f.u64(traceHeadOffEnded)
	f.records, f.room = f.u64(traceHeadOffRecords), f.u64(traceHeadOffRoom)
	f.sitesAt, f.peersAt, f.recordsAt = f.u64(traceHeadOffSitesOff), f.u64(traceHeadOffPeersOff),
		f.u64(traceHeadOffRecordsOff)
	f.peers, f.ns, f.host = uint64(f.u32(traceHeadOffPeers)), f.u64(traceHeadOffNs),
		int(f.u32(traceHeadOffHost))
	maps := uint64(f.u32(traceHeadOffMaps))
	if !f.fits(f.sitesAt, cTraceSites, traceSiteBytes) || !f.fits(f.peersAt, f.peers,
		tracePeerBytes) || !f.fits(f.recordsAt, min(f.room, f.records), traceRecordBytes) ||
		maps > cTraceMaps {
		return fmt.Errorf("its parts do not lie in it")
	}
	program, _, _ := strings.Cut(
		string(f.data[traceHeadOffProgram:traceHeadOffProgram+cTraceProgram]), "\x00")
	f.rank = Rank{Proc: int(f.u32(traceHeadOffProc)), Rank: int(f.u32(traceHeadOffRank)),
		World: int(f.u32(traceHeadOffWorld)), Pid: int(f.u32(traceHeadOffPid)),
		Host: f.host, Program: program, MPI: seconds(f.ns), Records: f.records +
			f.u64(traceHeadOffRefused), Got: f.u64(traceHeadOffGot),
		Bytes: f.u64(traceHeadOffGotBytes),
		maps:  string(f.data[cTraceHead : cTraceHead+maps])}
	f.rank.Dropped = f.rank.Records - min(f.room, f.records)
	f.rank.Name = fmt.Sprintf("rank %d", f.rank.Rank)
	if f.rank.World != 0 {
		f.rank.Name += fmt.Sprintf(" of world %d", f.rank.World)
	}
	for i := range uint64(cTraceSizes) {
		f.rank.Sizes = append(f.rank.Sizes, f.u64(traceHeadOffSizes+8*i))
	}
	for i := range f.peers {
		at := f.peersAt + i*tracePeerBytes
		if v := (Volume{int(i), f.u64(at + tracePeerOffMessages),
			f.u64(at + tracePeerOffBytes)}); v.Messages > 0 {
			f.rank.Sent = append(f.rank.Sent, v)
		}
	}
	return nil
}

// Kinds of records.
const (
	kindCall   = cTraceCall
	kindSent   = cTraceSent
	kindGot    = cTraceGot
	kindDeath  = cTraceDeath
	kindCast   = cTraceCast
	kindCaught = cTraceCaught
)

// record is one of a process; times are ns of its host's clock.
type record struct {
	begin, end uint64 // end 0: not over
	kind, fn   uint16
	err        int32
	tid        uint32
	flags      uint8
	args       int
	choice     coll.Choice
	site, ctx  uint64
	number     uint32
	times      uint32
	bytes      uint64
	arg        [cTraceArgs]int64
}

// each calls fn for the records that are there, the oldest first.
func (f *file) each(fn func(r *record)) {
	if f.room == 0 {
		return
	}
	var r record
	for n := f.records - min(f.records, f.room); n < f.records; n++ {
		f.read(&r, f.recordsAt+n%f.room*traceRecordBytes)
		if r.kind == 0 || r.begin == 0 || r.end != 0 && r.end < r.begin {
			continue // it died while it wrote this one
		}
		fn(&r)
	}
}

func (f *file) read(r *record, at uint64) {
	*r = record{begin: f.u64(at + traceRecordOffBegin), end: f.u64(at + traceRecordOffEnd),
		kind: f.u16(at + traceRecordOffKind), fn: f.u16(at + traceRecordOffFn),
		err: int32(f.u32(at + traceRecordOffError)), tid: f.u32(at + traceRecordOffTid),
		flags: f.data[at+traceRecordOffFlags],
		args:  min(int(f.data[at+traceRecordOffArgs]), cTraceArgs),
		choice: coll.Choice{Algorithm: f.data[at+traceRecordOffAlgorithm],
			Reason: coll.Reason(f.data[at+traceRecordOffReason])},
		site: f.u64(at + traceRecordOffSite), ctx: f.u64(at + traceRecordOffCtx),
		number: f.u32(at + traceRecordOffNumber), times: f.u32(at + traceRecordOffTimes),
		bytes: f.u64(at + traceRecordOffBytes)}
	for i := range r.args {
		r.arg[i] = int64(f.u64(at + traceRecordOffArg + 8*uint64(i)))
	}
}

// site is what the calls of a function from one place have cost.
type site struct {
	back  uint64
	fn    uint32
	costs Cost
}

// sites lists them.
func (f *file) sites() (out []site) {
	for i := range uint64(cTraceSites) {
		at := f.sitesAt + i*traceSiteBytes
		fn := f.u32(at + traceSiteOffFn)
		if fn == 0 {
			continue
		}
		out = append(out, site{f.u64(at + traceSiteOffSite), fn,
			Cost{Calls: f.u64(at + traceSiteOffCalls), Errors: f.u32(at + traceSiteOffErrors),
				Seconds:  seconds(f.u64(at + traceSiteOffNs)),
				Max:      seconds(f.u64(at + traceSiteOffMax)),
				Min:      seconds(f.u64(at + traceSiteOffMin)),
				Bytes:    f.u64(at + traceSiteOffBytes),
				BytesMax: f.u64(at + traceSiteOffBytesMax)}})
	}
	return out
}

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }
