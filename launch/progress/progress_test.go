package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLine(t *testing.T) {
	b := &Bar{what: "measuring", all: 40, done: 10, note: "SPX_SPIN"}
	if got, want := b.line(200, 3*time.Second),
		"measuring [#####...............] 10 of 40, 3 s: SPX_SPIN"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := b.line(20, time.Second); len(got) != 20 {
		t.Errorf("%q is not of 20 letters", got)
	}
	if got, want := (&Bar{what: "probing"}).line(80, time.Second), "probing, 1 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// In a pipe there is no bar, and no call writes anything.
func TestQuietInAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	old := os.Stderr
	os.Stderr = w
	b := Start("work", 3)
	os.Stderr = old
	if b != nil {
		t.Error("there is a bar in a pipe")
	}
	b.Set(1, 3)
	b.Step()
	b.Say("x")
	b.Clear()
	b.End()
	w.Close()
	if text, _ := io.ReadAll(r); len(text) > 0 {
		t.Errorf("%q was written", text)
	}
}

// On a terminal the line comes when the work takes longer, and is gone at the end.
func TestOnATerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stderr
	os.Stderr = terminal
	b := Start("work", 3)
	os.Stderr = old
	if b == nil {
		t.Fatal("there is no bar on a terminal")
	}
	b.Step() // too early
	b.next = time.Now().Add(-time.Second)
	b.Step()
	b.End()
	b.Step()
	fmt.Fprint(terminal, "end\n")
	var text strings.Builder
	for c := make([]byte, 256); !strings.Contains(text.String(), "end"); {
		n, err := master.Read(c)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(c[:n])
	}
	terminal.Close()
	if want := "\rwork [#############.......] 2 of 3, 0 s\x1b[K\r\x1b[Kend"; !strings.HasPrefix(
		text.String(), want) {
		t.Errorf("%q, want %q", text.String(), want)
	}
}
