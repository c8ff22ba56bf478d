package command

import (
	"fmt"
	"strings"
)

const usage = `Usage: spxrun [options] [-n N] program [arguments] [: [options] [-n N] program [arguments]] ...

Runs N processes of a program, MPI or not, as one job; several programs, with a lone ":" between them, form one
MPI_COMM_WORLD. Options stand before the program, with one dash or two; a value follows as the next word or after "=".
`

const ending = `
The exit status is that of the first process that fails: its own, or 128 + the signal that ended it; the code
given to MPI_Abort; 124 after --timeout; 2 for a mistake on the command line; 127 or 126 for a program that is
missing or cannot be run.
`

// Help is the text of --help, made from the table of options.
func Help() string {
	var b strings.Builder
	b.WriteString(usage)
	group := ""
	for _, o := range table {
		if o.group != group {
			group = o.group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		b.WriteString(o.describe())
	}
	b.WriteString(ending)
	return b.String()
}

func (o *option) describe() string {
	var names []string
	for _, n := range o.names {
		if len(n) == 1 {
			n = "-" + n
		} else {
			n = "--" + n
		}
		names = append(names, n)
	}
	if o.apply == nil {
		return wrap("  ", strings.Join(names, ", ")+
			map[bool]string{true: "  (with " + o.meta + ")"}[o.meta != ""]) + "\n"
	}
	left := "  " + strings.Join(names, ", ")
	if o.meta != "" {
		left += " " + o.meta
	}
	if len(left) < 34 {
		return fmt.Sprintf("%-34s%s\n", left, indentRest(wrap("", o.help)))
	}
	return fmt.Sprintf("%s\n%34s%s\n", left, "", indentRest(wrap("", o.help)))
}

const helpWidth = 84

// wrap breaks text into lines of at most helpWidth characters, each with the indent.
func wrap(indent, text string) string {
	var lines []string
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line) > len(indent) && len(line)+1+len(word) > helpWidth {
			lines = append(lines, line)
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}

func indentRest(text string) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 34))
}

// find looks an option up by its name without dashes.
func find(name string) *option {
	for _, o := range table {
		for _, n := range o.names {
			if n == name {
				return o
			}
		}
	}
	return nil
}

// suggestion names the option that was probably meant.
func suggestion(name string) string {
	best, bestDistance := "", 3
	for _, o := range table {
		for _, n := range o.names {
			if d := distance(name, n); d < bestDistance && d < len(n) && len(n) > 2 {
				best, bestDistance = n, d
			}
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean --%s?)", best)
}

// distance is the number of letters to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
