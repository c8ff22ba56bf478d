package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Parse reads a system file. name is the system's name if the file gives none. The error, if any,
// is of type Problems and has all of them, except that nothing can be read after a syntax error in
// the TOML itself.
func Parse(text []byte, name string) (*System, error) {
	if len(text) > MaxText {
		return nil,
			Problems{{1, 1, fmt.Sprintf(
				"the file has %d bytes, at most %d are possible; is it a system file?", len(text),
				MaxText)}}
	}
	var m map[string]any
	if _, err := toml.Decode(string(text), &m); err != nil {
		return nil, syntax(string(text), err)
	}
	r := &reader{places: locate(string(text))}
	s := &System{Name: name}
	r.top(s, m)
	r.check(s)
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	return s, nil
}

// syntax is the TOML library's error, at a place within the text: the library's may be behind
// the end of the line.
func syntax(text string, err error) Problems {
	line, col, says := 1, 1, strings.TrimPrefix(err.Error(), "toml: ")
	var p toml.ParseError
	if errors.As(err, &p) {
		if says = p.Message; p.LastKey != "" {
			says += " (the last key that was read is " + strconv.Quote(p.LastKey) + ")"
		}
		lines := strings.Split(text, "\n")
		line = max(1, min(p.Position.Line, len(lines)))
		col = max(1, min(p.Position.Col, len(lines[line-1])+1))
	}
	return Problems{{line, col, "this is not TOML: " + says}}
}

// tables are the names at the top of a file.
var tables = []string{"system", "start", "failure", "cluster", "link"}

// top reads the tables of the file.
func (r *reader) top(s *System, m map[string]any) {
	presetStart := Start{Wait: WaitSystem, LimitMS: 60_000}
	s.Masters, s.Start, s.Failure = MastersAgent, presetStart,
		Failure{IOP: Restart, Cluster: Stop, Restarts: 3, WithinMS: 3_600_000, Hang: Report,
			IOPHang: Report, HangMS: 30_000}
	for k := range m {
		if !contains(tables, k) {
			r.wrong([]string{k},
				"a system file has no %q%s; it has [system], [start], [failure], [[cluster]] "+
					"and [[link]]", k, meant(k, tables))
		}
	}
	one := func(name string, read func(m map[string]any, path []string)) {
		switch x := m[name].(type) {
		case nil:
		case map[string]any:
			read(x, []string{name})
		default:
			r.wrong([]string{name}, "%s: this is %s, a table is wanted: [%s]", name, kind(x), name)
		}
	}
	one("system", func(m map[string]any, path []string) {
		readTable(r, path, "[system]", m,
			systemFields(), s)
	})
	one("start", func(m map[string]any, path []string) {
		readTable(r, path, "[start]", m,
			startFields(), &s.Start)
	})
	one("failure", func(m map[string]any, path []string) {
		readTable(r, path, "[failure]", m,
			failureFields(), &s.Failure)
	})
	for i, t := range r.array(m, "cluster") {
		path := []string{"cluster", strconv.Itoa(i)}
		c := Cluster{Start: Start{}, Line: r.places.of(path...).line,
			Failure: Failure{Restarts: -1, WithinMS: -1, SilentMS: -1}}
		readTable(r, path, "cluster "+nameOf(t, i), t, clusterFields(), &c)
		s.Clusters = append(s.Clusters, c)
	}
	for i, t := range r.array(m, "link") {
		path := []string{"link", strconv.Itoa(i)}
		l := Link{IOPs: 1, Program: Relay, Choice: ChoiceRoundRobin, Security: SecurityKey,
			Line: r.places.of(path...).line}
		readTable(r, path, "link "+nameOf(t, i), t, linkFields(), &l)
		s.Links = append(s.Links, l)
	}
	if s.Messages == "" {
		s.Messages = presetMessages(s)
	}
}

// presetMessages: messages are kept where all I/O processes are relays. Those of a user's own, if
// they take messages and send nothing for them, must report when they have finished with them.
func presetMessages(s *System) string {
	for _, l := range s.Links {
		if l.Program != Relay {
			return MessagesFast
		}
	}
	return MessagesKept
}

// array is an array of tables of the top.
func (r *reader) array(m map[string]any, name string) (out []map[string]any) {
	v := value{r, []string{name}, name, m[name]}
	if v.v == nil {
		return nil
	}
	elements, ok := v.elements()
	if !ok {
		v.wrong("this is %s, there may be several: write [[%s]]", kind(v.v), name)
		return nil
	}
	for _, e := range elements {
		t, ok := e.v.(map[string]any)
		if !ok {
			e.wrong("this is %s, a table is wanted: write [[%s]]", kind(e.v), name)
			continue
		}
		out = append(out, t)
	}
	return out
}

// nameOf is how a message calls a table of an array.
func nameOf(t map[string]any, i int) string {
	if s, ok := t["name"].(string); ok && s != "" {
		return strconv.Quote(s)
	}
	return "number " + strconv.Itoa(i+1)
}
