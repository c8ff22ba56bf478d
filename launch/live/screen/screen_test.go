package screen

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"libspx/core/diagnose"
	"libspx/launch/live"
	"libspx/launch/service"
)

func look(ranks int, at float64) *live.Look {
	l := &live.Look{At: time.Unix(int64(at), 0),
		About: service.About{Job: "0123456789abcdef", Program: strings.Repeat("long ", 50)}}
	for i := range ranks {
		l.Procs = append(l.Procs, diagnose.Proc{Proc: i, Rank: i, Host: fmt.Sprintf("node%d", i%3),
			Pid: 1000 + i, State: diagnose.Running,
			Traffic: diagnose.Traffic{At: at, Life: 1, Sent: uint64(at) * uint64(i)}})
	}
	return l
}

func keys(s *Screen, list ...string) {
	for _, k := range list {
		m := tea.KeyPressMsg{Text: k}
		switch k {
		case "enter":
			m = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			m = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "tab":
			m = tea.KeyPressMsg{Code: tea.KeyTab}
		case "end":
			m = tea.KeyPressMsg{Code: tea.KeyEnd}
		case "backspace":
			m = tea.KeyPressMsg{Code: tea.KeyBackspace}
		default:
			m.Code = []rune(k)[0]
		}
		s.Update(m)
	}
}

func text(s *Screen) string { return ansi.Strip(strings.Join(s.lines(), "\n")) }

// Whatever the size of the terminal and the keys, nothing is wider or higher than it.
func TestFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {132, 50}, {80, 8}, {76, 10}} {
		s := New(nil, time.Second)
		s.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		s.Update(looked{look: look(100, 1)})
		s.Update(looked{look: look(100, 2)})
		for _, k := range []string{"", "s", "r", "tab", "tab", "?", "?", "end", "/", "x", "enter",
			"esc", "p"} {
			if k != "" {
				keys(s, k)
			}
			lines := s.lines()
			if len(lines) > size[1] {
				t.Errorf("%v after %q: %d lines", size, k, len(lines))
			}
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > size[0] {
					t.Errorf("%v after %q: %d columns: %q", size, k, w, l)
				}
			}
		}
	}
}

func TestKeys(t *testing.T) {
	s := New(nil, time.Second)
	if !strings.Contains(text(s), "looking at the job") {
		t.Errorf("at first: %s", text(s))
	}
	s.Update(looked{look: look(100, 1)})
	s.Update(looked{look: look(100, 2)})
	keys(s, "s", "s", "s") // by messages
	if lines := strings.Split(text(s), "\n"); !strings.HasPrefix(strings.TrimSpace(lines[4]),
		"99 ") {
		t.Errorf("by messages: %s", text(s))
	}
	keys(s, "/", "r", "1", "2", "backspace", "enter")
	if got := text(s); !strings.Contains(got, "only: r1") || strings.Contains(got, "node0") {
		t.Errorf("rank 1 only: %s", got)
	}
	keys(s, "esc", "tab")
	if got := text(s); !strings.Contains(got, "HOST") || !strings.Contains(got, "34 running") {
		t.Errorf("hosts: %s", got)
	}
	keys(s, "tab", "p")
	s.Update(looked{look: look(3, 3)})
	if got := text(s); !strings.Contains(got, "100 processes") ||
		!strings.Contains(got, "stands still") {
		t.Errorf("it does not stand still: %s", got)
	}
	s.Update(looked{err: errors.New("gone")})
	if got := text(s); !strings.Contains(got, "the job has ended") ||
		!strings.Contains(got, "100 processes") {
		t.Errorf("the end: %s", got)
	}
	if _, quit := s.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); quit == nil {
		t.Error("q does not leave")
	}
}
