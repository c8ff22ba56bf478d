package malleable

import (
	"fmt"
	"strconv"
	"strings"
)

// TextMax is the number of bytes of commands that are taken at once, and of an answer.
const TextMax = 4095

// Command is a command that all processes execute together: change to Size processes, or the
// processes of Kill end themselves.
type Command struct {
	Size int   // 0: Kill holds
	Kill []int // different ranks
}

// ParseCommand reads a command without blanks for size processes: "8", or "k3,0,12". The error
// describes what is wrong.
func ParseCommand(word string, size int) (Command, error) {
	if list, ok := strings.CutPrefix(word, "k"); ok {
		ranks, ok := parseRanks(list, size)
		switch {
		case !ok:
			return Command{}, fmt.Errorf(
				"k%s: after k stand ranks from 0 to %d, separated by commas", list, size-1)
		case len(ranks) == size:
			return Command{}, fmt.Errorf("k%s: one of the %d processes has to stay", list, size)
		}
		return Command{Kill: ranks}, nil
	}
	n, ok := parseNumber(word)
	if !ok || n < 1 {
		return Command{}, fmt.Errorf(
			"%.80s: a command is a number of processes, 1 or more, or k and ranks (k3,5)", word)
	}
	return Command{Size: n}, nil
}

// parseNumber reads digits, and nothing else.
func parseNumber(text string) (int, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil
}

// parseRanks reads ranks below size, separated by commas; equal ones count once.
func parseRanks(list string, size int) (ranks []int, ok bool) {
	seen := map[int]bool{}
	for text := range strings.SplitSeq(list, ",") {
		rank, ok := parseNumber(text)
		if !ok || rank >= size {
			return nil, false
		}
		if !seen[rank] {
			seen[rank] = true
			ranks = append(ranks, rank)
		}
	}
	return ranks, true
}

// blanks are those of C's isspace.
const blanks = " \t\n\v\f\r"

// Commands extracts the commands from text, without blanks and comments (from # to the end of the
// line), each with a semicolon behind it. They are parsed when they are executed.
func Commands(text string) string {
	var out []byte
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for word := range strings.SplitSeq(line, ";") {
			before := len(out)
			for _, c := range []byte(word) {
				if strings.IndexByte(blanks, c) < 0 {
					out = append(out, c)
				}
			}
			if len(out) > before {
				out = append(out, ';')
			}
		}
	}
	return string(out)
}

// answered stands before the time in an answer in the command file.
const answered = "# done in "

// BehindAnswer is what stands in a command file behind the line that answers former commands, all
// of text if there is none.
func BehindAnswer(text string) string {
	at := strings.LastIndex(text, answered)
	if at < 0 {
		return text
	}
	_, rest, _ := strings.Cut(text[at:], "\n")
	return rest
}

// Answer is the text written into the command file over a text of former bytes: the number of
// processes, how long the changes took, and why a command could not be executed, unless refused
// is empty. Blank lines follow up to the end of the former text.
func Answer(size int, seconds float64, refused string, former int) string {
	text := fmt.Sprintf("%d\n%s%.6f s\n", size, answered, seconds)
	if refused != "" {
		text += "# error: " + refused + "\n"
	}
	return text + strings.Repeat("\n", max(0, min(former, TextMax)-len(text)))
}

// printable is text as it is written into a line, of at most n bytes.
func printable(text string, n int) string {
	b := []byte(text[:min(len(text), n)])
	for i, c := range b {
		if c < ' ' || c == 0x7f {
			b[i] = ' '
		}
	}
	return string(b)
}
