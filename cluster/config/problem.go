package config

import (
	"fmt"
	"sort"
	"strings"
)

// A Problem is one mistake in a system file: where it is, what is wrong and what to do.
type Problem struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

// Problems are all mistakes of a file, in its order.
type Problems []Problem

// Error has a line for each problem, as LINE:COLUMN: TEXT.
func (p Problems) Error() string {
	var b strings.Builder
	for i, x := range p {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d:%d: %s", x.Line, x.Column, x.Text)
	}
	return b.String()
}

func (p Problems) sorted() Problems {
	sort.SliceStable(p, func(i, j int) bool {
		if p[i].Line != p[j].Line {
			return p[i].Line < p[j].Line
		}
		return p[i].Column < p[j].Column
	})
	return p
}

// Nearest is the name that was probably meant by word, or empty if none is near.
func Nearest(word string, names []string) string {
	best, least := "", 1+max(1, len(word)/3)
	for _, n := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is Levenshtein's, with two letters changed about counting once.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// meant is " (did you mean X?)", or empty if no name is near.
func meant(word string, names []string) string {
	if n := Nearest(word, names); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", n)
	}
	return ""
}

// list is a, b and c.
func list(names []string, last string) string {
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}
