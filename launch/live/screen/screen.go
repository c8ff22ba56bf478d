// Package screen is `spxctl top`: a running job on a terminal (docs/live.md). It owns what is shown
// and which keys do what; it is given looks at the job (launch/live), and the terminal is
// bubbletea's.
package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"libspx/core/diagnose"
	"libspx/launch/live"
)

// Views of a job, in the order in which the tab key goes through them.
const (
	ranks = iota
	hosts
	clusters
	links
	views
)

var viewNames = [views]string{"ranks", "hosts", "clusters", "links"}

// Screen is the state of the display: a bubbletea model.
type Screen struct {
	take  func() (*live.Look, error)
	every time.Duration

	before, now *live.Look
	err         error // of the last look: the job has ended, if there was one before
	width       int
	height      int

	view    int
	key     int // of live.Keys
	reverse bool
	filter  string
	typing  bool // the filter is being typed
	paused  bool
	help    bool
	top     int // the first line that is shown
}

// New is a screen that looks at a job every so often.
func New(take func() (*live.Look, error), every time.Duration) *Screen {
	return &Screen{take: take, every: every, width: 80, height: 24}
}

type looked struct {
	look *live.Look
	err  error
}

type lookAgain struct{}

func (s *Screen) look() tea.Msg {
	l, err := s.take()
	return looked{l, err}
}

// Init begins with a look.
func (s *Screen) Init() tea.Cmd { return s.look }

// Update handles an event.
func (s *Screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case looked:
		return s, s.taken(m)
	case lookAgain:
		return s, s.look
	case tea.PasteMsg:
		if s.typing {
			s.filter += strings.Join(strings.Fields(m.Content), " ")
		}
	case tea.KeyPressMsg:
		if s.typing {
			return s, s.typed(m)
		}
		return s, s.pressed(m.String())
	}
	return s, nil
}

func (s *Screen) taken(m looked) tea.Cmd {
	s.err = m.err
	if m.err == nil && !s.paused {
		s.before, s.now = s.now, m.look
	}
	every := s.every
	if s.before == nil {
		every = min(every, 300*time.Millisecond) // the first rates come soon
	}
	return tea.Tick(every, func(time.Time) tea.Msg { return lookAgain{} })
}

func (s *Screen) typed(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		s.typing = false
	case "esc":
		s.typing, s.filter = false, ""
	case "ctrl+c":
		return tea.Quit
	case "backspace":
		if r := []rune(s.filter); len(r) > 0 {
			s.filter = string(r[:len(r)-1])
		}
	case "ctrl+u":
		s.filter = ""
	default:
		s.filter += k.Text
	}
	s.top = 0
	return nil
}

func (s *Screen) pressed(key string) tea.Cmd {
	page := max(1, s.height-8)
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "s":
		s.key = (s.key + 1) % len(live.Keys)
	case "S":
		s.key = (s.key + len(live.Keys) - 1) % len(live.Keys)
	case "r":
		s.reverse = !s.reverse
	case "/":
		s.typing = true
	case "esc":
		s.filter, s.help = "", false
	case "p", "space":
		s.paused = !s.paused
	case "?":
		s.help = !s.help
	case "tab":
		s.turn(1)
	case "shift+tab":
		s.turn(views - 1)
	case "up", "k":
		s.top--
	case "down", "j":
		s.top++
	case "pgup", "b":
		s.top -= page
	case "pgdown", "f":
		s.top += page
	case "home", "g":
		s.top = 0
	case "end", "G":
		s.top = 1 << 30
	}
	return nil
}

// turn goes to the next view that there is.
func (s *Screen) turn(by int) {
	s.top = 0
	for {
		s.view = (s.view + by) % views
		if s.view < clusters || s.now != nil && s.now.Layout != nil {
			return
		}
	}
}

const keysText = `tab        ranks, hosts; in a system of clusters also clusters and links
s S        sort by the next, by the previous of
           ` + "%s" + `
r          turn the order round
/          show only what has these words: a host, a cluster, a state, a call,
           r3 or r4-9 for ranks; enter keeps the filter, esc takes it away
p          stand still
up down pgup pgdown home end   move
q          leave; the job goes on`

var (
	plain    = ansi.Style{}
	headline = plain.Reverse(true)
	bold     = plain.Bold()
	faint    = plain.Faint()
	red      = plain.ForegroundColor(ansi.Red).Bold()
	yellow   = plain.ForegroundColor(ansi.Yellow)
)

// View draws the screen.
func (s *Screen) View() tea.View {
	v := tea.NewView(strings.Join(s.lines(), "\n"))
	v.AltScreen = true
	if s.now != nil {
		v.WindowTitle = "spxctl top " + s.now.About.Job
	}
	return v
}

// lines are what is shown, no more than fit.
func (s *Screen) lines() []string {
	if s.now == nil {
		text := "looking at the job ..."
		if s.err != nil {
			text = s.err.Error()
		}
		return []string{ansi.Truncate(text, s.width, "~")}
	}
	rows := live.Rows(s.before, s.now)
	out := live.Summary(s.now, rows, s.width)
	out[0] = bold.Styled(out[0])
	switch {
	case s.err != nil:
		out = append(out, red.Styled(ansi.Truncate(
			"the job has ended, or does not answer; this is how it was at "+
				s.now.At.Format("15:04:05"), s.width, "~")))
	case s.paused:
		out = append(out, yellow.Styled("stands still: p goes on"))
	default:
		out = append(out, "")
	}
	room := max(1, s.height-len(out)-2) // the head of the table, and the line of keys
	if s.help {
		text := strings.Split(fmt.Sprintf(keysText, strings.Join(live.Keys, ", ")), "\n")
		out = append(out, bold.Styled("keys"))
		for _, line := range text[:min(len(text), room)] {
			out = append(out, ansi.Truncate(line, s.width, "~"))
		}
	} else {
		out = s.table(out, rows, room)
	}
	for len(out) < s.height-1 {
		out = append(out, "")
	}
	return append(out, s.footer())
}

// table adds the table of the view, from the line that is to be at its top.
func (s *Screen) table(out []string, rows []live.Row, room int) []string {
	var t live.Table
	var loud func(i int) ansi.Style
	shown := live.Filter(rows, s.filter)
	switch s.view {
	case ranks:
		live.Sort(shown, live.Keys[s.key], s.reverse)
		t = live.RankTable(shown, s.width)
		loud = func(i int) ansi.Style { return styleOf(&shown[i]) }
	case hosts:
		g := live.GroupBy(shown, func(r *live.Row) string { return r.Host })
		t = live.GroupTable("HOST", g, s.width)
		loud = func(i int) ansi.Style { return groupStyle(&g[i]) }
	case clusters:
		c := live.Clusters(s.now, shown)
		t = live.ClusterTable(c, s.width)
		loud = func(i int) ansi.Style { return groupStyle(&c[i].Group) }
	case links:
		l := live.Links(s.now, shown)
		t = live.LinkTable(l, s.width)
		loud = func(i int) ansi.Style { return groupStyle(&l[i].Group) }
	}
	s.top = max(0, min(s.top, len(t.Lines)-room))
	out = append(out, headline.Styled(t.Head+strings.Repeat(" ",
		max(0, s.width-ansi.StringWidth(t.Head)))))
	for i := s.top; i < len(t.Lines) && i < s.top+room; i++ {
		line := ansi.Truncate(t.Lines[i], s.width, "~")
		if st := loud(i); len(st) > 0 {
			line = st.Styled(line)
		}
		out = append(out, line)
	}
	return out
}

func styleOf(r *live.Row) ansi.Style {
	switch r.State {
	case diagnose.Dead:
		return red
	case diagnose.Stopped, diagnose.Silent:
		return yellow
	case diagnose.Ended, diagnose.Finalized:
		return faint
	}
	return nil
}

func groupStyle(g *live.Group) ansi.Style {
	if g.Dead > 0 {
		return red
	}
	return nil
}

func (s *Screen) footer() string {
	if s.typing {
		return ansi.Truncate("/"+s.filter+"_", s.width, "~")
	}
	order := live.Keys[s.key]
	if s.reverse {
		order += " reversed"
	}
	parts := []string{"q quit", "tab " + viewNames[s.view], "s sort: " + order, "/ filter",
		"? keys"}
	if s.filter != "" {
		parts = slices.Insert(parts, 3, "only: "+s.filter)
	}
	return faint.Styled(ansi.Truncate(strings.Join(parts, "   "), s.width, "~"))
}

// Choose sets the order, by a key of live.Keys, and the filter to begin with.
func (s *Screen) Choose(key, filter string) {
	s.key, s.filter = max(0, slices.Index(live.Keys, key)), filter
}
