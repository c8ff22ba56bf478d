package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Schedules as text, a line for each thing:
//
//	hosts 3
//	ranks 12
//	seed 7
//	width 2                    of the trees of agreements
//	detach
//	op grow 4
//	at 120 kill 3              a process dies
//	step 4 kill 3              it dies instead of its fourth send
//	at 120 pause 3 for 200     it stands still
//	at 120 revoke 3
//	at 120 kill-agent 1        a host's agent
//	at 120 kill-host 1
//	at 120 kill-launcher
//	at 120 pause-host 1 for 500
//	at 120 cut 1,2 for 500     these hosts from the others
//	# a comment

// Text is the schedule as ParseJob reads it.
func (j Job) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hosts %d\nranks %d\nseed %d\n", j.Hosts, j.Ranks, j.Seed)
	if j.Width > 0 {
		fmt.Fprintf(&b, "width %d\n", j.Width)
	}
	if j.Detach {
		b.WriteString("detach\n")
	}
	for _, op := range j.Ops {
		b.WriteString("op " + op.Kind)
		if op.N > 0 {
			fmt.Fprintf(&b, " %d", op.N)
		}
		b.WriteString("\n")
	}
	for _, f := range j.Faults {
		b.WriteString(f.text())
	}
	return b.String()
}

// text is the line of something that happens.
func (f *Fault) text() string {
	when := fmt.Sprint("at ", f.At)
	if f.Step > 0 {
		when = fmt.Sprint("step ", f.Step)
	}
	who := fmt.Sprint(" ", f.Who)
	switch f.Kind {
	case Cut:
		who = " " + strings.Trim(strings.ReplaceAll(fmt.Sprint(f.Hosts), " ", ","), "[]")
	case KillLauncher:
		who = ""
	}
	if f.For > 0 {
		who += fmt.Sprintf(" for %d", f.For)
	}
	return fmt.Sprintf("%s %s%s\n", when, f.Kind, who)
}

// ParseJob reads a schedule. The error names the line.
func ParseJob(text string) (Job, error) {
	j := Job{Hosts: 1, Ranks: 1, Seed: 1}
	if err := parseLines(text, j.parse); err != nil {
		return j, err
	}
	return j, j.valid()
}

// parseLines reads the words of each line.
func parseLines(text string, parse func(words []string) error) error {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := parse(words); err != nil {
			return fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
	}
	return nil
}

func (j *Job) parse(words []string) (err error) {
	number := func(i int) (n int) {
		if err == nil && i >= len(words) {
			err = fmt.Errorf("a number is missing")
		} else if err == nil {
			n, err = strconv.Atoi(words[i])
		}
		return n
	}
	switch words[0] {
	case "hosts":
		j.Hosts = number(1)
	case "ranks":
		j.Ranks = number(1)
	case "seed":
		j.Seed = uint64(number(1))
	case "width":
		j.Width = number(1)
	case "detach":
		j.Detach = true
	case "op":
		op := Op{}
		if len(words) > 1 {
			op.Kind = words[1]
		}
		if op.Kind == Grow || op.Kind == Leave {
			op.N = number(2)
		}
		j.Ops = append(j.Ops, op)
	case "at", "step":
		f := Fault{At: Time(number(1))}
		if words[0] == "step" {
			f.At, f.Step = 0, int(f.At)
		}
		if err == nil {
			err = f.parse(words[2:])
		}
		j.Faults = append(j.Faults, f)
	default:
		err = fmt.Errorf("nothing is called %q", words[0])
	}
	return err
}

// parse reads what happens, behind the time.
func (f *Fault) parse(words []string) (err error) {
	if len(words) == 0 {
		return fmt.Errorf("what happens is missing")
	}
	f.Kind, words = words[0], words[1:]
	if f.Kind != KillLauncher {
		if len(words) == 0 {
			return fmt.Errorf("to whom it happens is missing")
		}
		for _, w := range strings.Split(words[0], ",") {
			if f.Who, err = strconv.Atoi(w); err != nil {
				return err
			}
			f.Hosts = append(f.Hosts, f.Who)
		}
		words = words[1:]
	}
	if f.Kind != Cut {
		f.Hosts = nil
	} else {
		f.Who = 0
	}
	if len(words) == 2 && words[0] == "for" {
		n, err := strconv.Atoi(words[1])
		f.For = Time(n)
		return err
	} else if len(words) > 0 {
		return fmt.Errorf("%q is too much", words)
	}
	return nil
}

// valid refuses what RunJob cannot carry out.
func (j *Job) valid() error {
	if j.Width < 0 {
		return fmt.Errorf("trees of width %d", j.Width)
	}
	if j.Hosts < 1 || j.Ranks < j.Hosts {
		return fmt.Errorf("%d ranks on %d hosts", j.Ranks, j.Hosts)
	}
	for _, op := range j.Ops {
		if !slices.Contains([]string{Agree, Shrink, Both, Inter, Grow, Leave}, op.Kind) || op.N < 0 {
			return fmt.Errorf("no operation is called %q %d", op.Kind, op.N)
		}
	}
	for _, f := range j.Faults {
		onHost := slices.Contains([]string{KillAgent, KillHost, PauseHost, Cut}, f.Kind)
		if !onHost && !slices.Contains([]string{Kill, Pause, Revoke, KillLauncher}, f.Kind) {
			return fmt.Errorf("nothing that happens is called %q", f.Kind)
		}
		for _, h := range append([]int{f.Who}, f.Hosts...) {
			if h < 0 || onHost && h >= j.Hosts {
				return fmt.Errorf("%s: there is no %d", f.Kind, h)
			}
		}
		if needs := f.Kind == Pause || f.Kind == PauseHost || f.Kind == Cut; needs != (f.For > 0) {
			return fmt.Errorf("%s lasts %d us", f.Kind, f.For)
		}
		if f.Step > 0 && f.Kind != Kill {
			return fmt.Errorf("%s at a step", f.Kind)
		}
	}
	return nil
}
