package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rig is a Mux whose target is a pipe that the test reads.
type rig struct {
	t      *testing.T
	mux    *Mux
	target *os.File // its write end
	out    *os.File
	writer []*os.File
}

func newRig(t *testing.T, ranks int, tag bool) *rig {
	t.Helper()
	out, target, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	mux, err := New(int(target.Fd()), tag, ranks == 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, mux: mux, target: target, out: out}
	for i := range ranks {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		if err := mux.Add(i, p[0]); err != nil {
			t.Fatal(err)
		}
		unix.SetNonblock(p[1], true) // so that deadlines work
		r.writer = append(r.writer, os.NewFile(uintptr(p[1]), "pipe"))
	}
	return r
}

func (r *rig) put(rank int, text string) {
	r.t.Helper()
	if _, err := r.writer[rank].WriteString(text); err != nil {
		r.t.Error(err)
	}
}

// take reads until want bytes are there.
func (r *rig) take(want string) {
	r.t.Helper()
	b := make([]byte, len(want))
	r.out.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, err := io.ReadFull(r.out, b)
	if string(b[:n]) != want || err != nil {
		r.t.Fatalf("got %q (%v), want %q", b[:n], err, want)
	}
}

// end drains and returns the rest.
func (r *rig) end() string {
	r.t.Helper()
	go func() {
		select {
		case <-r.mux.Drain():
		case <-time.After(20 * time.Second):
			r.t.Error("the Mux does not drain")
		}
		r.target.Close()
	}()
	rest, err := io.ReadAll(r.out)
	if err != nil {
		r.t.Error(err)
	}
	return string(rest)
}

func TestWholeLines(t *testing.T) {
	r := newRig(t, 2, false)
	r.put(0, "a1\na2 begin")
	r.take("a1\n")
	r.put(1, "b1\n")
	r.take("b1\n")
	r.put(0, " end\n")
	r.take("a2 begin end\n")
	r.put(1, "no newline")
	r.writer[1].Close()
	r.take("no newline")
	r.put(0, "last")
	if rest := r.end(); rest != "last" { // although the writer is still open
		t.Errorf("rest %q", rest)
	}
}

func TestTags(t *testing.T) {
	r := newRig(t, 12, true)
	r.put(11, "x\n\ny\n")
	r.take("[11] x\n[11] \n[11] y\n")
	r.put(3, "prompt: ")
	r.take("[3] prompt: ")
	r.put(4, "other\n")
	r.take("\n[4] other\n")
	r.put(3, "more\n")
	r.take("[3] more\n")
	r.put(5, "end")
	r.writer[5].Close()
	r.take("[5] end\n")
	r.mux.Say("launcher")
	r.take("launcher\n")
	if rest := r.end(); rest != "" {
		t.Errorf("rest %q", rest)
	}
}

// An unfinished line appears when all are silent, and a single process's at once.
func TestPrompt(t *testing.T) {
	r := newRig(t, 2, false)
	r.put(0, "name? ")
	r.take("name? ")
	r.put(0, "thanks\n")
	r.take("thanks\n")
	r.end()
	r = newRig(t, 1, false)
	r.put(0, "name? ")
	r.take("name? ")
	r.end()
}

// Any bytes pass, and a line without end needs no memory without end.
func TestBinary(t *testing.T) {
	r := newRig(t, 2, false)
	var s *stream
	r.mux.mu.Lock()
	for _, each := range r.mux.streams {
		if each.name == "0" {
			s = each
		}
	}
	r.mux.mu.Unlock()
	block := bytes.Repeat([]byte{0, 1, 255, 'x'}, 100_000)
	go func() {
		r.put(0, string(block))
		r.writer[0].Close()
	}()
	got := make([]byte, len(block))
	if _, err := io.ReadFull(r.out, got); err != nil || !bytes.Equal(got, block) {
		t.Errorf("the bytes have changed (%v)", err)
	}
	r.end()
	<-r.mux.done
	if n := cap(s.partial); n == 0 || n > 4*MaxLine {
		t.Errorf("%d bytes were kept of a line", n)
	}
}

// Sixteen writers, in pieces of all sizes: every line arrives once, unmixed, in its writer's order.
func TestIntegrity(t *testing.T) {
	const ranks, lines = 16, 20_000
	r := newRig(t, ranks, false)
	var wg sync.WaitGroup
	for rank := range ranks {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var b strings.Builder
			for i := range lines {
				fmt.Fprintf(&b, "%d %d %s\n", rank, i, strings.Repeat("z", (rank*7+i)%90))
			}
			text, size := b.String(), 1
			for len(text) > 0 {
				n := min(len(text), size)
				r.put(rank, text[:n])
				text, size = text[n:], size*3%5003+1
			}
			r.writer[rank].Close()
		}()
	}
	go func() {
		wg.Wait()
		<-r.mux.Drain()
		r.target.Close()
	}()
	all, _ := io.ReadAll(r.out)
	var next [ranks]int
	for _, line := range strings.Split(strings.TrimSuffix(string(all), "\n"), "\n") {
		var rank, i int
		var rest string
		if n, _ := fmt.Sscanf(line, "%d %d %s", &rank, &i, &rest); n < 2 || rank >= ranks ||
			i != next[rank] || len(rest) != (rank*7+i)%90 {
			t.Fatalf("line %q, expected number %v", line, next)
		}
		next[rank]++
	}
	for rank, n := range next {
		if n != lines {
			t.Errorf("rank %d: %d lines", rank, n)
		}
	}
}

// A reader that does not read stops the writers: nothing is buffered for it.
func TestBackPressure(t *testing.T) {
	r := newRig(t, 1, false)
	line := strings.Repeat("y", 1023) + "\n"
	r.writer[0].SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	written := 0
	for {
		n, err := r.writer[0].WriteString(line)
		written += n
		if err != nil || n < len(line) {
			break
		}
		if written > 64<<20 {
			t.Fatal("64 MiB were taken from a writer although nobody reads")
		}
	}
	r.writer[0].Close()
	if rest := r.end(); len(rest) != written {
		t.Errorf("%d bytes arrived of %d", len(rest), written)
	}
}

// When the reader goes away, the processes' pipes break, as they would without a launcher.
func TestReaderGone(t *testing.T) {
	r := newRig(t, 2, false)
	r.put(0, "one\n")
	r.take("one\n")
	r.out.Close()
	r.put(0, "two\n")
	deadline := time.Now().Add(20 * time.Second)
	for _, w := range r.writer {
		for {
			if _, err := w.WriteString("more\n"); err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the writers never learn")
			}
		}
	}
	<-r.mux.Drain()
	if err := r.mux.Err(); err != nil {
		t.Error(err)
	}
}

func TestTargetFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full:", err)
	}
	defer full.Close()
	m, err := New(int(full.Fd()), false, true)
	if err != nil {
		t.Fatal(err)
	}
	m.Say("text")
	<-m.Drain()
	if m.Err() != unix.ENOSPC {
		t.Errorf("error %v, want ENOSPC", m.Err())
	}
}

// A Mux that has been drained holds no kernel resources, and late callers do no harm.
func TestNothingIsHeld(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	held := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := held()
	for range 50 {
		m, err := New(int(null.Fd()), false, false)
		if err != nil {
			t.Fatal(err)
		}
		<-m.Drain()
		m.Say("too late")
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		if err := m.Add(0, pipe[0]); err != nil {
			t.Error(err)
		}
		unix.Close(pipe[1])
		<-m.Drain()
	}
	if after := held(); after > before+10 {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// What is written goes to a copy as well, and then to that alone; and what the target cannot take
// is the copy's.
func TestCopies(t *testing.T) {
	target, reader := targetPipe(t)
	m, err := New(target, false, false)
	if err != nil {
		t.Fatal(err)
	}
	var copied bytes.Buffer
	told := make(chan struct{}, 100)
	write := func(b []byte) error {
		copied.Write(b)
		told <- struct{}{}
		return nil
	}
	m.Say("before")
	readLine(t, reader, "before\n")
	m.Copy(write, false)
	m.Say("both")
	readLine(t, reader, "both\n")
	<-told
	m.Copy(write, true)
	m.Say("alone")
	<-told
	m.Copy(write, false)
	reader.Close()
	m.Say("no reader")
	<-told
	m.Say("nor now")
	<-told
	<-m.Drain()
	if got := copied.String(); got != "both\nalone\nno reader\nnor now\n" || m.Err() != nil {
		t.Errorf("%q, %v", got, m.Err())
	}
}

// The reader of the target is gone: with a rescue function the pending output goes there, and the
// processes continue to write. Otherwise they do not.
func TestRescue(t *testing.T) {
	for _, saved := range []bool{true, false} {
		target, reader := targetPipe(t)
		m, err := New(target, false, false)
		if err != nil {
			t.Fatal(err)
		}
		var copied bytes.Buffer
		m.Rescue(func() bool {
			if saved {
				m.Copy(func(b []byte) error { copied.Write(b); return nil }, false)
			}
			return saved
		})
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Dup(int(r.Fd()))
		if r.Close(); err == nil {
			err = m.Add(0, fd)
		}
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		lost := false
		for i := 0; i < 1000 && !lost && (i < 3 || !saved); i++ {
			_, err := w.WriteString("line\n")
			lost = err != nil
			time.Sleep(time.Millisecond)
		}
		w.Close()
		<-m.Drain()
		if want := map[bool]string{true: "line\nline\nline\n"}[saved]; lost == saved ||
			copied.String() != want {
			t.Errorf("saved %v: its writer is told %v, copied %q", saved, lost, &copied)
		}
	}
}

// targetPipe is a pipe for a Mux to write to.
func targetPipe(t *testing.T) (target int, reader *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return int(w.Fd()), r
}

func readLine(t *testing.T, r *os.File, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(r, b); err != nil || string(b) != want {
		t.Fatalf("%q, %v, want %q", b, err, want)
	}
}
