// Package transcript reads the commands that a page shows behind "$ ", with what they print, and tells whether other output is the same but for
// what differs from run to run. It runs nothing itself.
package transcript

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Step is a command of a page and what the page shows as its output.
type Step struct {
	Page    string
	Line    int
	Command string // of several lines, if it has a text to read (<<'END')
	Shows   []string
}

var here = regexp.MustCompile(`<<'(\w+)'`)

// Steps are the commands of a page in their order: lines of code that begin with "$ ". What follows in the block is output, or the text that the command reads.
func Steps(page, text string) (list []Step) {
	open, until := false, ""
	for n, line := range strings.Split(text, "\n") {
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case !indented && strings.TrimSpace(line) != "":
			open, until = false, ""
		case until != "":
			last := &list[len(list)-1]
			last.Command += "\n" + code
			if code == until {
				until = ""
			}
		case strings.HasPrefix(code, "$ ") && indented:
			list, open = append(list, Step{Page: page, Line: n + 1, Command: code[2:]}), true
			if m := here.FindStringSubmatch(code); m != nil {
				until = m[1]
			}
		case open && code != "":
			last := &list[len(list)-1]
			last.Shows = append(last.Shows, code)
		}
	}
	return list
}

// What differs from run to run: it is taken as equal.
var varies = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\bpid \d+`), "pid N"},
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "JOB"},
	{regexp.MustCompile(`\bjob [0-9a-f]{8}\b`), "job JOB"},
	{regexp.MustCompile(`\b\d+\.\d+\b`), "0.0"},
	{regexp.MustCompile(`\(SIGKILL\) in \w+`), "(SIGKILL)"},
	{regexp.MustCompile(`-{4,}`), "----"}, // a drawing is as wide as the states in it
	{regexp.MustCompile(`\s+`), " "},
}

func even(line, host string) string {
	line = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAllString(strings.TrimSpace(line), "node1")
	for _, v := range varies {
		line = v.what.ReplaceAllString(line, v.as)
	}
	return line
}

// Missing are the lines that the step shows and the output, on the named host, does not have, in whatever order; "..." stands for any lines, within a line for any
// part of it.
func (s Step) Missing(output, host string) (missing []string) {
	seen := map[string]bool{}
	for _, line := range strings.Split(output, "\n") {
		seen[even(line, host)] = true
	}
	for _, want := range s.Shows {
		if want != "..." && !seen[even(want, host)] && !hasLike(seen, even(want, host)) {
			missing = append(missing, want)
		}
	}
	return missing
}

// hasLike: one of the lines is like one in which "..." stands for any text.
func hasLike(lines map[string]bool, want string) bool {
	if !strings.Contains(want, "...") {
		return false
	}
	like := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), `\.\.\.`, ".*") + "$")
	for line := range lines {
		if like.MatchString(line) {
			return true
		}
	}
	return false
}

const mark = "@@@@ end of step "

// Script carries out the steps one after another in one shell; Outcomes reads its output.
func Script(list []Step) string {
	script := "exec 2>&1\n"
	for i, s := range list {
		script += fmt.Sprintf("%s\nspx_status=$?; echo; echo '%s%d' $spx_status $EPOCHREALTIME; (exit $spx_status)\n", s.Command, mark, i)
	}
	return script
}

// An Outcome is what came of a step.
type Outcome struct {
	Output string
	Status int
	At     float64 // seconds since 1970, at its end
}

// Outcomes are those of the first steps of a script, as many as its output has to the end.
func Outcomes(output string) (list []Outcome) {
	for {
		out, after, found := strings.Cut(output, "\n"+mark+strconv.Itoa(len(list))+" ")
		line, rest, whole := strings.Cut(after, "\n")
		var o Outcome
		if _, err := fmt.Sscan(line, &o.Status, &o.At); !found || !whole || err != nil {
			return list
		}
		o.Output = out
		list, output = append(list, o), rest
	}
}

// Allowed tells whether the status of step i may be what it is: 0, or shown by the next step.
func Allowed(list []Step, i, status int) bool {
	return status == 0 || i+1 < len(list) && list[i+1].Command == "echo $?"
}
