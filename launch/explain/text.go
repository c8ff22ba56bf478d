package explain

import (
	"fmt"
	"strings"

	"libspx/core/coll"
)

// Name is how an operation is called: MPI_Bcast.
func Name(k coll.Kind) string {
	s := k.String()
	return "MPI_" + strings.ToUpper(s[:1]) + s[1:]
}

// Head describes the call in one line.
func (s *Situation) Head(c Call, e *coll.Explanation) string {
	text := Name(c.Kind)
	if measure := coll.Measure(c.Kind); measure != "" {
		text += fmt.Sprintf(" of %s (%s)", count(e.Bytes, "byte"), measure)
	}
	text += " on " + count(int64(len(s.Ranks)), "rank")
	if c.Remote > 0 {
		text += fmt.Sprintf(" and %d of another group", c.Remote)
	}
	if n := s.Hosts(); n > 1 {
		return text + ", " + count(int64(n), "host")
	}
	return text + ", " + count(int64(s.CPUs), "processor")
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Lines are an explanation in text; rules: with the lines of the table that were passed over.
func Lines(e *coll.Explanation, rules bool) (out []string) {
	say := func(name string, texts ...string) {
		for i, text := range texts {
			if i > 0 {
				name = ""
			}
			out = append(out, fmt.Sprintf("  %-10s %s", name, text))
		}
	}
	algorithm := e.Algorithm
	if e.About != "" {
		algorithm += ": " + e.About
	}
	say("algorithm", algorithm)
	if len(e.Parameters) > 0 {
		var list []string
		for _, p := range e.Parameters {
			list = append(list, strings.TrimSuffix(fmt.Sprintf("%s %d %s", p.Name, p.Value, p.Unit),
				" "))
		}
		say("with", strings.Join(list, ", "))
	}
	say("because", e.Why)
	if e.Refused != "" {
		say("but", e.Refused)
	}
	if rules {
		for _, p := range e.Passed {
			say("not", fmt.Sprintf("%s (%s): %s", p.Algorithm, p.Rule, p.Why))
		}
	}
	if e.Otherwise != "" {
		say("else", e.Otherwise+": "+e.Then)
	}
	if len(e.Ranges) > 1 {
		var list []string
		for _, r := range e.Ranges {
			text := fmt.Sprintf("%-28s %s", Span(r), r.Algorithm)
			if r.From <= e.Bytes && (e.Bytes <= r.To || r.To < 0) {
				text += "   <- this one"
			}
			list = append(list, text)
		}
		say("by size", list...)
	}
	if len(e.Names) > 1 {
		say("change by", e.Setting+"=NAME at all ranks: "+strings.Join(e.Names, ", "))
	}
	return out
}

// Span is the sizes of a range.
func Span(r coll.Range) string {
	switch {
	case r.To < 0:
		return count(r.From, "byte") + " and more"
	case r.From == r.To:
		return count(r.From, "byte")
	}
	return fmt.Sprintf("%d to %s", r.From, count(r.To, "byte"))
}
