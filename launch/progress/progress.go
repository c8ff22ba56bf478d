// Package progress shows on a terminal how far long work of our tools has come: one line of
// standard error, which is gone at the end. In a pipe or a file it writes nothing, and work that is
// over soon shows nothing either.
package progress

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Times of the display.
const (
	patience = 700 * time.Millisecond // before anything is shown
	interval = 100 * time.Millisecond // between two changes
)

// A Bar shows work in progress. A nil Bar shows nothing, and accepts all calls.
type Bar struct {
	mu    sync.Mutex
	to    *os.File
	what  string
	all   int // steps; 0: not known
	done  int
	note  string
	began time.Time
	next  time.Time // when it is written again
	shown bool
	over  bool
}

// Start begins; all is the number of steps, 0 if it is not known. The result is nil if standard
// error is no terminal.
func Start(what string, all int) *Bar {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	now := time.Now()
	return &Bar{to: os.Stderr, what: what, all: all, began: now, next: now.Add(patience)}
}

// Set sets the number of steps done, and of all.
func (b *Bar) Set(done, all int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.all = done, all
	b.show()
}

// Say shows the current activity.
func (b *Bar) Say(note string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note = note
	b.show()
}

// Step counts one more step as done.
func (b *Bar) Step() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	b.show()
}

// Clear takes the line away for a moment, for other text on the terminal.
func (b *Bar) Clear() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

func (b *Bar) clear() {
	if b.shown {
		fmt.Fprint(b.to, "\r\x1b[K")
		b.shown = false
	}
}

// End takes the line away for good.
func (b *Bar) End() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	b.over = true
}

func (b *Bar) show() {
	now := time.Now()
	if b.over || now.Before(b.next) {
		return
	}
	b.next, b.shown = now.Add(interval), true
	width, _, err := term.GetSize(int(b.to.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	fmt.Fprintf(b.to, "\r%s\x1b[K", b.line(width-1, now.Sub(b.began)))
}

// line is the text for a terminal of that width.
func (b *Bar) line(width int, since time.Duration) string {
	text := b.what
	if b.all > 0 {
		const cells = 20
		full := min(cells, cells*b.done/b.all)
		text += fmt.Sprintf(" [%s%s] %d of %d", strings.Repeat("#", full),
			strings.Repeat(".", cells-full), b.done, b.all)
	}
	text += fmt.Sprintf(", %.0f s", since.Seconds())
	if b.note != "" {
		text += ": " + b.note
	}
	if r := []rune(text); len(r) > width {
		text = string(r[:width])
	}
	return text
}
