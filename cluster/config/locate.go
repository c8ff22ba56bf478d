package config

import (
	"strconv"
	"strings"
)

// Positions of keys and values. The TOML library gives the position of syntax errors only; here the
// text was read by it without error, so that this code only locates, and checks nothing.

// position is a place in the text, both from 1. The column counts bytes.
type position struct{ line, col int }

// places maps paths (keys and indices of arrays) to where they stand.
type places map[string]position

func key(path []string) string { return strings.Join(path, "\x00") }

// of is the place of a path, or of the nearest thing around it.
func (p places) of(path ...string) position {
	for n := len(path); n > 0; n-- {
		if at, ok := p[key(path[:n])]; ok {
			return at
		}
	}
	return position{1, 1}
}

// locator walks through a text.
type locator struct {
	text   string
	at     int
	line   int
	start  int // of the line
	places places
	counts map[string]int // tables of an array so far
}

// locate finds all keys and values of a valid text.
func locate(text string) places {
	l := &locator{text: text, line: 1, places: places{}, counts: map[string]int{}}
	var table []string
	for l.skip(); l.at < len(l.text); l.skip() {
		before := l.at
		if l.peek("[") {
			table = l.header()
		} else {
			l.pair(table)
		}
		if l.at == before {
			l.next()
		}
	}
	return l.places
}

func (l *locator) peek(s string) bool { return strings.HasPrefix(l.text[l.at:], s) }

func (l *locator) here() position { return position{l.line, l.at - l.start + 1} }

func (l *locator) next() {
	if l.at >= len(l.text) {
		return
	}
	if l.text[l.at] == '\n' {
		l.line++
		l.start = l.at + 1
	}
	l.at++
}

func (l *locator) advance(n int) {
	for range n {
		l.next()
	}
}

// skip passes blanks, ends of lines and comments.
func (l *locator) skip() {
	for l.at < len(l.text) {
		switch l.text[l.at] {
		case ' ', '\t', '\r', '\n':
			l.next()
		case '#':
			for l.at < len(l.text) && l.text[l.at] != '\n' {
				l.next()
			}
		default:
			return
		}
	}
}

func (l *locator) note(path []string, at position) {
	if _, ok := l.places[key(path)]; !ok {
		l.places[key(path)] = at
	}
}

// header reads [a.b] or [[a.b]] and returns the path of the table that it opens.
func (l *locator) header() []string {
	at := l.here()
	array := l.peek("[[")
	l.advance(1)
	if array {
		l.advance(1)
	}
	l.skip()
	words := l.dotted()
	l.skip()
	for l.peek("]") {
		l.next()
	}
	var path []string
	for i, w := range words {
		path = append(path, w)
		last := i == len(words)-1
		n, counted := l.counts[key(path)]
		switch {
		case last && array:
			l.counts[key(path)] = n + 1
			l.note(path, at)
			path = append(path, strconv.Itoa(n))
		case counted:
			path = append(path, strconv.Itoa(n-1))
		}
		l.note(path, at)
	}
	return path
}

// dotted reads a key: words, with dots between them.
func (l *locator) dotted() (words []string) {
	for l.at < len(l.text) {
		l.skip()
		switch {
		case l.peek(`"`), l.peek("'"):
			words = append(words, l.quoted())
		default:
			begin := l.at
			for l.at < len(l.text) && !strings.ContainsRune(" \t\r\n.=[]{},#\"'",
				rune(l.text[l.at])) {
				l.next()
			}
			words = append(words, l.text[begin:l.at])
		}
		l.skip()
		if !l.peek(".") {
			return words
		}
		l.next()
	}
	return words
}

// quoted reads a string of any form and returns what is between the quotes, with simple escapes
// undone.
func (l *locator) quoted() string {
	quote := l.text[l.at : l.at+1]
	long := strings.Repeat(quote, 3)
	end := quote
	if l.peek(long) {
		end = long
	}
	l.advance(len(end))
	begin := l.at
	for l.at < len(l.text) && !l.peek(end) {
		if quote == `"` && l.text[l.at] == '\\' {
			l.next()
		}
		l.next()
	}
	text := l.text[begin:min(l.at, len(l.text))]
	l.advance(len(end))
	for len(end) == 3 && l.peek(quote) { // up to two quotes may stand before the closing ones
		l.next()
	}
	if quote == `"` {
		if plain, err := strconv.Unquote(`"` + text + `"`); err == nil {
			return plain
		}
	}
	return text
}

// pair reads key = value into the table of that path.
func (l *locator) pair(table []string) {
	at := l.here()
	path := append([]string(nil), table...)
	for _, w := range l.dotted() {
		path = append(path, w)
		l.note(path, at)
	}
	l.skip()
	if l.peek("=") {
		l.next()
	}
	l.skip()
	l.value(path)
}

// value reads a value; arrays and inline tables have places for what is in them.
func (l *locator) value(path []string) {
	if l.at >= len(l.text) {
		return
	}
	switch l.text[l.at] {
	case '"', '\'':
		l.quoted()
	case '[':
		l.inside(']', func(n int) {
			element := append(append([]string(nil), path...), strconv.Itoa(n))
			l.note(element, l.here())
			l.value(element)
		})
	case '{':
		l.inside('}', func(int) { l.pair(path) })
	default:
		for l.at < len(l.text) && !strings.ContainsRune(",]}\n#", rune(l.text[l.at])) {
			l.next()
		}
	}
}

// inside reads what stands between brackets, with commas between.
func (l *locator) inside(end byte, each func(n int)) {
	l.next()
	for n := 0; l.at < len(l.text); n++ {
		l.skip()
		for l.peek(",") {
			l.next()
			l.skip()
		}
		if l.at >= len(l.text) || l.text[l.at] == end {
			break
		}
		before := l.at
		each(n)
		if l.at == before {
			l.next()
		}
	}
	l.next()
}
