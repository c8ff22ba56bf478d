package shm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A death is published in the order that readers rely on: state first, then the sequence number,
// then the bells.
func TestLifeOfAProcess(t *testing.T) {
	s, err := Create(8, 2, 2, WithFT)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 2 {
		if err := s.AddProc(i, Member{Rank: uint32(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddProc(8, Member{}); err == nil {
		t.Error("a process beyond the capacity was accepted")
	}
	if got := s.Procs(); got != 2 {
		t.Errorf("Procs() = %d, want 2", got)
	}
	s.MarkStarted(1, 4711)
	if err := s.AddProc(1, Member{Rank: 1}); err == nil {
		t.Error("a slot in use was given again")
	}
	s.MarkDead(1, syscall.WaitStatus(9))
	if s.AgentState(1) != AgentDead || s.Pid(1) != 4711 || s.get32(segOffDeathSeq) != 1 || s.get32(s.proc(0)+procOffBell) == 0 {
		t.Errorf("after a death: state %d, pid %d, death_seq %d, bell %d", s.AgentState(1), s.Pid(1), s.get32(segOffDeathSeq), s.get32(s.proc(0)+procOffBell))
	}
	bell := s.get32(s.proc(1) + procOffBell)
	s.put32(s.proc(1)+procOffSleeping, 1)
	s.MarkExited(0, 0)
	if s.get32(segOffDeathSeq) != 2 || s.get32(s.proc(1)+procOffBell) != bell+1 {
		t.Error("who sleeps is not told of a proper end")
	}
	s.put32(s.proc(1)+procOffSleeping, 0)
	s.put32(segOffAbortClaim, 2)
	s.put32(segOffAbortCode, 0xfffffff9)
	if claimed, rank, code := s.AbortCode(); !claimed || rank != 1 || code != -7 {
		t.Errorf("AbortCode() = %v %d %d, want true 1 -7", claimed, rank, code)
	}
}

// A process sleeps on its sockets, and a peer dies that was about to wake it: the peer had cleared
// the sleep mark, and has sent nothing. The death wakes the sleeper.
func TestDeathWakesWhoSeemsAwake(t *testing.T) {
	s, err := Create(4, 2, 1, WithFT)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 2 {
		if err := s.AddProc(i, Member{Rank: uint32(i)}); err != nil {
			t.Fatal(err)
		}
		s.MarkStarted(i, 4711+i)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	name := uint64(os.Getpid())<<32 | 0x5eed
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: fmt.Sprintf("@spx-bell-%016x", name)}); err != nil {
		t.Fatal(err)
	}
	s.put64(s.proc(0)+procOffBellName, name)
	s.put32(s.proc(0)+procOffSleeping, 0)
	s.MarkDead(1, syscall.WaitStatus(9))
	if n, err := syscall.Read(fd, make([]byte, 8)); n != 1 {
		t.Errorf("nothing has woken process 0: %d bytes, %v", n, err)
	}
}

// Deaths that are published together are all visible to the woken process, and wake it once.
func TestDeathsTogether(t *testing.T) {
	const n = 5
	s, err := Create(n, n, 1, WithFT)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range n {
		if err := s.AddProc(i, Member{Rank: uint32(i)}); err != nil {
			t.Fatal(err)
		}
		s.MarkStarted(i, 4711+i)
	}
	bell := func() uint32 { return s.get32(s.proc(0) + procOffBell) }
	before := bell()
	s.Together(func() {
		s.Together(func() {
			for i := 1; i < n; i++ {
				s.MarkDead(i, syscall.WaitStatus(9))
			}
		})
		if bell() != before {
			t.Error("process 0 was woken up before all was published")
		}
	})
	if got, dead := bell()-before, s.get32(segOffDeathSeq); got != 1 || dead != n-1 {
		t.Errorf("%d deaths have rung %d times", dead, got)
	}
	s.Together(func() {})
	if bell()-before != 1 {
		t.Error("nothing has happened, and process 0 was woken up")
	}
}

// Parts of the file never overlap and the file holds them all, whatever the capacity.
func TestGeometry(t *testing.T) {
	for _, n := range []int{1, 2, 16, 63, 64, 65, 1024, MaxProcsLimit} {
		g := geometryFor(n, n)
		ends := []int{segBytes, g.procOff, g.procOff + n*procBytes, g.dirtyOff, g.dirtyOff + n*g.dirtyStride, g.heldOff, g.heldOff + n*g.heldStride,
			g.shareOff, g.shareOff + cShareEntries*dirEntryBytes, g.chanOff,
			g.chanOff + n*g.chanRow, g.sdescOff, g.sdescOff + n*g.sdescRow, g.ringOff, g.ringOff + n*g.ringRow}
		for i := 1; i < len(ends); i++ {
			if ends[i] < ends[i-1] {
				t.Errorf("%d processes: part %d ends at %d, next begins at %d", n, i, ends[i-1], ends[i])
			}
		}
		if n <= 32 && g.ringBytes != cRingBytes || n <= 256 && g.ringBytes < cRingBytes/2 || g.ringBytes < 16384 {
			t.Errorf("%d processes: rings of %d bytes", n, g.ringBytes)
		}
		if g.total < ends[len(ends)-1] || g.chanRow < n*cChanBytes || g.dirtyStride < n {
			t.Errorf("%d processes: %+v", n, g)
		}
	}
}

// zz_layout.go is what the generator makes of layout.h today.
func TestLayoutIsCurrent(t *testing.T) {
	out := filepath.Join(t.TempDir(), "zz.go")
	if msg, err := exec.Command("go", "run", "./layoutgen", "../capi/dataplane/segment/layout.h", out).CombinedOutput(); err != nil {
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
		t.Error("zz_layout.go is out of date: run  go generate ./shm")
	}
}

// The generated offsets are those of the C compiler.
func TestLayoutAgreesWithC(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler")
	}
	src, err := os.ReadFile("zz_layout.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	prog := `#include <stdio.h>
#include <stddef.h>
#include "layout.h"
int main(void) { printf("%zu %zu %zu %zu %zu %zu %zu\n", sizeof(spx_seg), offsetof(spx_seg, death_seq), offsetof(spx_seg, abort_code),
  offsetof(spx_seg, sdesc_row), sizeof(spx_proc), offsetof(spx_proc, bell), offsetof(spx_proc, cma_nonce)); }`
	if err := os.WriteFile(filepath.Join(dir, "x.c"), []byte(prog), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "x")
	if msg, err := exec.Command(cc, "-I../capi/dataplane/segment", "-o", bin, filepath.Join(dir, "x.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"segBytes", "segOffDeathSeq", "segOffAbortCode", "segOffSdescRow", "procBytes", "procOffBell", "procOffCmaNonce"}
	for i, v := range strings.Fields(string(out)) {
		if !strings.Contains(strings.Join(strings.Fields(string(src)), " "), " "+names[i]+" = "+v+" ") {
			t.Errorf("%s is %s in C, and not so in zz_layout.go", names[i], v)
		}
	}
}

// Two processes of different worlds are connected while one of them holds the other for good, and
// the other has not left it.
func TestConnected(t *testing.T) {
	s, err := Create(4, 1, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 3 { // 1 and 2 are of one world
		if err := s.AddProc(i, Member{World: uint32(min(i, 1)), Rank: uint32(max(i-1, 0))}); err != nil {
			t.Fatal(err)
		}
		s.MarkStarted(i, 100+i)
	}
	tie := func(a, b int, v byte) { s.mem[s.geo.heldOff+a*s.geo.heldStride+b] = v }
	for _, c := range []struct {
		mine, theirs byte
		connected    bool
	}{
		{cTieNone, cTieNone, false}, {cTieHeld, cTieHeld, true}, {cTieHeld, cTieNone, false}, {cTieNone, cTieHeld, false},
		{cTieParting, cTieHeld, true}, {cTieHeld, cTieParting, true}, {cTieParting, cTieParting, false}, {cTieParting, cTieNone, false},
	} {
		tie(0, 2, c.mine)
		tie(2, 0, c.theirs)
		if got := len(s.Connected(1)) == 3; got != c.connected {
			t.Errorf("%d and %d: connected %v", c.mine, c.theirs, got)
		}
	}
}

// No process that has the file can make it smaller: the other processes would end by SIGBUS at
// their next access. It may grow, as windows do.
func TestFileKeepsItsSize(t *testing.T) {
	s, err := Create(4, 2, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := s.File().Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.File().Truncate(info.Size() - pageBytes); !errors.Is(err, syscall.EPERM) {
		t.Errorf("the file is made smaller: %v", err)
	}
	if err := s.File().Truncate(info.Size() + pageBytes); err != nil {
		t.Errorf("the file cannot grow: %v", err)
	}
	const addSeals, sealGrow = 1033, 4
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, s.File().Fd(), addSeals, sealGrow); errno == 0 {
		t.Error("a process can keep it from growing")
	}
}

// The data that a slot's processes have written to other slots is distinguished by the low 16 bits
// of their incarnations: it is cleared when these wrap around.
func TestIncarnationsGoRound(t *testing.T) {
	s, err := Create(4, 1, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	channel := int64(s.geo.chanOff + 3*s.geo.chanRow + 1*cChanBytes)
	word := []byte{0}
	for _, c := range []struct {
		life uint32
		gone bool
	}{{1<<16 - 2, false}, {0, false}, {0, true}, {0, false}, {1<<17 + 5, true}} {
		if err := s.AddProc(1, Member{Life: c.life}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.file.ReadAt(word, channel+8); err != nil {
			t.Fatal(err)
		}
		if gone := word[0] == 0; gone != c.gone && s.Incarnation(1) > 1<<16-2 {
			t.Errorf("incarnation %#x: what an earlier one has written is gone: %v", s.Incarnation(1), gone)
		}
		if _, err := s.file.WriteAt([]byte{47}, channel+8); err != nil {
			t.Fatal(err)
		}
		s.MarkStarted(1, 100)
		s.MarkExited(1, 0)
	}
}

// No state of a process is left when another one gets its number: the descriptor of its message log
// would be looked up in the new one. The bell counter is kept.
func TestNothingStaysOfAProcess(t *testing.T) {
	s, err := Create(4, 2, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.AddProc(1, Member{}); err != nil {
		t.Fatal(err)
	}
	p := s.proc(1)
	for off := procOffBell; off < procBytes; off++ {
		s.mem[p+off] = 1
	}
	s.MarkStarted(1, 4711)
	s.MarkExited(1, 0)
	bell := s.get32(p + procOffBell)
	if err := s.AddProc(1, Member{}); err != nil {
		t.Fatal(err)
	}
	for off := procOffSleeping; off < procBytes; off++ {
		if s.mem[p+off] != 0 {
			t.Errorf("byte %d of the entry is that of the process before", off)
		}
	}
	if s.get32(p+procOffBell) != bell || s.AgentState(1) != AgentEmpty || s.Pid(1) != 0 {
		t.Errorf("bell %d, before %d; state %d, pid %d", s.get32(p+procOffBell), bell, s.AgentState(1), s.Pid(1))
	}
}
