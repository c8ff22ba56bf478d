package harness

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// RunLine is one comment of a C test program that says how to run it:
//
//	// run: n=1,2,4 args="-x 3" env=K=V status=3 stdout~^done stderr~regexp timeout=20 spxrun="--with-ft" cflags=-lm stdin="text"
//
// n is a list of rank counts (default 2); every other word is optional. Without status the exit status must be 0; without
// stdout~ and stderr~ the output does not matter. A pattern may be repeated: all must match. A value with blanks stands
// in double quotes. A file may have several such lines: each is a test. alone=1 keeps other tests of the folder from running
// at the same time. full=1 is for what takes long and is much like another line: it is run by make test-all alone (Full). Where
// only numbers make it long, n.few= and args.few= stand beside n= and args=: make test takes those instead.
type RunLine struct {
	Ranks          []int
	Args, Env      []string
	Spxrun, CFlags []string
	Status         int
	Stdout, Stderr []*regexp.Regexp
	Stdin          string
	Limit          time.Duration
	Alone, Full    bool
}

// ReadRunLines finds the run lines of a source file. A file without one is an error: it would never run.
func ReadRunLines(path string) ([]RunLine, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines []RunLine
	for n, line := range strings.Split(string(text), "\n") {
		body, ok := strings.CutPrefix(strings.TrimSpace(line), "// run:")
		if !ok {
			continue
		}
		r, err := ParseRunLine(body)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
		}
		lines = append(lines, r)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s: no line '// run: n=2 ...' says how to run this test", path)
	}
	return lines, nil
}

// ParseRunLine reads what follows "// run:".
func ParseRunLine(text string) (RunLine, error) {
	r := RunLine{Ranks: []int{2}, Limit: 20 * time.Second}
	words, err := splitWords(text)
	if err != nil {
		return r, err
	}
	for few := range 2 { // the others first: in whatever order they stand
		for _, w := range words {
			rest, isFew := strings.CutPrefix(w, "n.few=")
			if isFew {
				w = "n=" + rest
			} else if rest, isFew = strings.CutPrefix(w, "args.few="); isFew {
				w = "args=" + rest
			}
			if isFew != (few == 1) || isFew && Full() {
				continue
			}
			if err := r.set(w); err != nil {
				return r, fmt.Errorf("%q: %w", w, err)
			}
		}
	}
	return r, nil
}

func (r *RunLine) set(word string) (err error) {
	at := strings.IndexAny(word, "=~")
	if at < 0 {
		return fmt.Errorf("want key=value or key~pattern")
	}
	key, value := word[:at], word[at+1:]
	switch key + word[at:at+1] {
	case "n=":
		r.Ranks = nil
		for _, s := range strings.Split(value, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return fmt.Errorf("not a number of ranks: %q", s)
			}
			r.Ranks = append(r.Ranks, n)
		}
	case "args=":
		r.Args, err = splitWords(value)
	case "env=":
		r.Env = append(r.Env, value)
	case "spxrun=":
		r.Spxrun, err = splitWords(value)
	case "cflags=":
		r.CFlags, err = splitWords(value)
	case "stdin=":
		r.Stdin = value
	case "status=":
		r.Status, err = strconv.Atoi(value)
	case "timeout=":
		var s int
		s, err = strconv.Atoi(value)
		r.Limit = time.Duration(s) * time.Second
	case "alone=":
		r.Alone, err = strconv.ParseBool(value)
	case "full=":
		r.Full, err = strconv.ParseBool(value)
	case "stdout~", "stderr~":
		var re *regexp.Regexp
		if re, err = regexp.Compile("(?m)" + value); err != nil {
			return err
		}
		if key == "stdout" {
			r.Stdout = append(r.Stdout, re)
		} else {
			r.Stderr = append(r.Stderr, re)
		}
	default:
		return fmt.Errorf("unknown word (n= n.few= args= args.few= env= spxrun= cflags= stdin= status= timeout= alone= full= stdout~ stderr~)")
	}
	return err
}

// Check returns what is wrong with an outcome, or "".
func (r RunLine) Check(o Outcome) string {
	if o.Late {
		return fmt.Sprintf("no end after %v", r.Limit)
	}
	if o.Status != r.Status {
		return fmt.Sprintf("exit status %d, want %d", o.Status, r.Status)
	}
	for _, re := range r.Stdout {
		if !re.MatchString(o.Stdout) {
			return fmt.Sprintf("stdout has nothing that matches %q", strings.TrimPrefix(re.String(), "(?m)"))
		}
	}
	for _, re := range r.Stderr {
		if !re.MatchString(o.Stderr) {
			return fmt.Sprintf("stderr has nothing that matches %q", strings.TrimPrefix(re.String(), "(?m)"))
		}
	}
	return ""
}

// splitWords splits at blanks outside double quotes; \" and \\ stand for themselves inside quotes.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	started, quoted := false, false
	for i := 0; i < len(text); i++ {
		ch := text[i]
		switch {
		case quoted && ch == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			word.WriteByte(text[i])
		case ch == '"':
			quoted, started = !quoted, true
		case !quoted && (ch == ' ' || ch == '\t'):
			if started {
				words = append(words, word.String())
				word.Reset()
				started = false
			}
		default:
			word.WriteByte(ch)
			started = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed in %q", text)
	}
	if started {
		words = append(words, word.String())
	}
	return words, nil
}
