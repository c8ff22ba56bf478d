package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Schedules of sequences as text, a line for each thing:
//
//	agents 3                   that begin
//	entries 10                 that are proposed
//	keep 4                     entries that each agent keeps for others
//	seed 7
//	steady                     all messages take the same time, and entries are proposed one after another
//	at 120 kill-host 1         an agent dies
//	step 4 kill-host 1         it dies instead of its fourth send
//	at 120 pause-host 1 for 500
//	at 120 cut 1,2 for 500     these agents from the others
//	at 120 join 3              one more agent comes
//	at 120 retire 1            an agent is to leave
//	at 120 lose 30 for 500     30 of 100 messages
//	at 120 slow 1 for 500      the links of an agent
//	# a comment

// Text is the schedule as ParseSequence reads it.
func (s Sequence) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "agents %d\nentries %d\nkeep %d\nseed %d\n", s.Agents, s.Entries, s.Keep, s.Seed)
	if s.Steady {
		b.WriteString("steady\n")
	}
	for _, f := range s.Faults {
		b.WriteString(f.text())
	}
	return b.String()
}

// ParseSequence reads a schedule. The error names the line.
func ParseSequence(text string) (Sequence, error) {
	s := Sequence{Agents: 1, Keep: 8, Seed: 1}
	if err := parseLines(text, s.parse); err != nil {
		return s, err
	}
	return s, s.valid()
}

func (s *Sequence) parse(words []string) (err error) {
	if words[0] == "steady" {
		s.Steady = true
		return nil
	}
	if len(words) < 2 {
		return fmt.Errorf("a number is missing")
	}
	n, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	switch words[0] {
	case "agents":
		s.Agents = n
	case "entries":
		s.Entries = n
	case "keep":
		s.Keep = n
	case "seed":
		s.Seed = uint64(n)
	case "at", "step":
		f := Fault{At: Time(n)}
		if words[0] == "step" {
			f.At, f.Step = 0, n
		}
		err = f.parse(words[2:])
		s.Faults = append(s.Faults, f)
	default:
		err = fmt.Errorf("nothing is called %q", words[0])
	}
	return err
}

// valid refuses what RunSequence cannot carry out.
func (s *Sequence) valid() error {
	if s.Agents < 1 || s.Keep < 1 || s.Entries < 0 {
		return fmt.Errorf("%d agents that keep %d entries, and propose %d", s.Agents, s.Keep, s.Entries)
	}
	for _, f := range s.Faults {
		lasts := slices.Contains([]string{PauseHost, Cut, Lose, Slow}, f.Kind)
		if !lasts && !slices.Contains([]string{KillHost, Join, Retire}, f.Kind) {
			return fmt.Errorf("nothing that happens is called %q", f.Kind)
		}
		if lasts != (f.For > 0) || f.At < 0 || f.Step < 0 || f.Step > 0 && f.Kind != KillHost || slices.Min(append(f.Hosts, f.Who)) < 0 {
			return fmt.Errorf("%s cannot be carried out", strings.TrimSpace(f.text()))
		}
	}
	return nil
}
