package diagnose

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

// Wording.

func (w *Wait) commName() string {
	switch {
	case w.Comm != "":
		return w.Comm
	case w.Context != 0:
		return fmt.Sprintf("a communicator of %d without a name (context %#x)", w.CommSize,
			w.Context)
	}
	return "no communicator"
}

func (e *Entry) commName() string {
	if e.Comm != "" {
		return e.Comm
	}
	return fmt.Sprintf("context %#x", e.Context)
}

func tagText(tag int) string {
	if tag == AnyTag {
		return "MPI_ANY_TAG"
	}
	return fmt.Sprint(tag)
}

func rankText(rank int) string {
	if rank == ClusterIn {
		return "MPISP_CLUSTER_IN"
	}
	if rank == ClusterOut {
		return "MPISP_CLUSTER_OUT"
	}
	if rank == Anybody {
		return "MPI_ANY_SOURCE"
	}
	return fmt.Sprint(rank)
}

// whoText is a rank as the object of a sentence: rank 2, MPI_ANY_SOURCE.
func whoText(rank int) string {
	if rank >= 0 {
		return "rank " + rankText(rank)
	}
	return rankText(rank)
}

// text of an entry of a queue.
func (e *Entry) text() string {
	switch e.Kind {
	case PostedReceive:
		return fmt.Sprintf("receive of at most %d bytes from %s, tag %s, on %s", e.Bytes,
			whoText(e.Rank), tagText(e.Tag), e.commName())
	case Unexpected:
		return fmt.Sprintf("message of %d bytes from %s, tag %d, on %s", e.Bytes, whoText(e.Rank),
			e.Tag, e.commName())
	}
	return fmt.Sprintf("message of %d bytes to %s, tag %d, on %s", e.Bytes, whoText(e.Rank), e.Tag,
		e.commName())
}

// Text is the call with its arguments by name.
func (w *Wait) Text() string {
	var args []string
	add := func(format string, v ...any) { args = append(args, fmt.Sprintf(format, v...)) }
	if w.Type != "" {
		add("count=%d", w.Count)
		add("datatype=%s", w.Type)
	}
	switch w.What {
	case Recv, Probe:
		add("source=%s", rankText(w.PeerRank))
		add("tag=%s", tagText(w.Tag))
	case Send:
		add("dest=%s", rankText(w.PeerRank))
		add("tag=%d", w.Tag)
	case Coll:
		if w.Root >= 0 {
			add("root=%d", w.Root)
		}
	case Any:
		add("%d requests", w.Count)
	}
	if w.Context != 0 {
		add("comm=%s", w.commName())
	}
	what := ""
	if call := strings.TrimPrefix(w.Call, "MPI_"); w.What == Recv &&
		!strings.HasSuffix(strings.ToLower(call), "recv") {
		what = "receive: "
	} else if w.What == Send && !strings.HasSuffix(strings.ToLower(call), "send") {
		what = "send: "
	} else if w.What == Coll && w.Coll != w.Call {
		what = w.Coll + ": "
	}
	return fmt.Sprintf("%s(%s%s)", w.Call, what, strings.Join(args, ", "))
}

// place is the frame that the user can recognize: the innermost that is not libspx's.
func place(stack []Frame) string {
	for _, f := range stack {
		if base := path.Base(f.Object); !strings.HasPrefix(base, "libspx") &&
			!strings.HasPrefix(base, "libmpi_abi") {
			return f.Text()
		}
	}
	return ""
}

// Text of a frame: main (hello.c:12).
func (f Frame) Text() string {
	switch {
	case f.File != "":
		return fmt.Sprintf("%s (%s:%d)", f.Function, path.Base(f.File), f.Line)
	case f.Function != "":
		return fmt.Sprintf("%s (in %s)", f.Function, path.Base(f.Object))
	}
	return fmt.Sprintf("%#x (in %s)", f.PC, path.Base(f.Object))
}

// where describes where a process is that is in no waiting call.
func (p *Proc) where() string {
	what := "is in no MPI call that waits"
	switch p.State {
	case Stopped:
		what = "is stopped by a signal"
	case Starting:
		what = fmt.Sprintf("has not called MPI_Init in the %.1f s since it was started", p.Age)
	}
	if at := place(p.Stack); at != "" {
		what += ": it is in " + at
	}
	return what
}

// doing describes what a process does: "is in MPI_Recv(...) for 3.1 s, at main (x.c:12)".
func doing(p *Proc) string {
	switch {
	case p.State.gone():
		return p.fate()
	case p.State == Silent:
		return "is on a host that does not answer"
	case len(p.Waits) == 0:
		return p.where()
	case p.Standby:
		return fmt.Sprintf("waits in MPI_Init for a rank to take over, for %.1f s", p.Waits[0].For)
	}
	text := fmt.Sprintf("is in %s for %.1f s", p.Waits[0].Text(), p.Waits[0].For)
	if at := place(p.Stack); at != "" {
		text += ", at " + at
	}
	if n := len(p.Waits) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d other threads wait)", n)
	}
	return text
}

// Waits is the diagnosis as text: the findings, then what every process does that none of them
// shows.
func Waits(procs []Proc) []string {
	var out []string
	shown := map[string]bool{}
	found := Find(procs)
	for _, f := range found {
		out = append(out, f.Text)
		for _, d := range f.Details {
			if !shown[d] {
				shown[d] = true
				out = append(out, "  "+d)
			}
		}
	}
	if len(found) == 0 {
		out = append(out, "nothing is found that would not go on by itself")
	}
	for _, line := range group(procs) {
		if !shown[line] {
			out = append(out, "  "+line)
		}
	}
	return out
}

// group describes what every process does, with equal ones grouped.
func group(procs []Proc) (out []string) {
	by := map[string][]*Proc{}
	var order []string
	for i := range procs {
		p := &procs[i]
		key := string(p.State) + place(p.Stack)
		if len(p.Waits) > 0 {
			key += p.Waits[0].Text()
		}
		if by[key] == nil {
			order = append(order, key)
		}
		by[key] = append(by[key], p)
	}
	for _, key := range order {
		list := by[key]
		text := doing(list[0])
		if len(list) > 1 {
			text = ofMany(text)
		}
		out = append(out, names(list)+" "+text)
	}
	return out
}

// ofMany turns a text about one process into one about several.
func ofMany(text string) string {
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "is":
		verb = "are"
	case "has":
		verb = "have"
	case "waits":
		verb = "wait"
	}
	return verb + " " + strings.NewReplacer(": it is in ", ": they are in ", "since it was started",
		"since they were started").Replace(rest)
}

// Ps is a table of the processes.
func Ps(procs []Proc) []string {
	width := 5
	for i := range procs {
		width = max(width, len(procs[i].tag()))
	}
	out := []string{fmt.Sprintf("%*s %8s  %-12s %9s  %s", width, "RANK", "PID", "HOST", "SINCE",
		"DOES")}
	for i := range procs {
		p := &procs[i]
		since, what := "", string(p.State)
		if len(p.Waits) > 0 {
			since, what = fmt.Sprintf("%.1f s", p.Waits[0].For), p.Waits[0].Text()
			if p.Standby {
				what += ": for a rank to take over"
			}
		} else if at := cmp.Or(p.In, place(p.Stack)); at != "" {
			what += ", in " + at
		} else if p.State == Starting && p.Age > 0 {
			since = fmt.Sprintf("%.1f s", p.Age)
		} else if p.End != "" {
			what += ": " + p.End
		}
		out = append(out, fmt.Sprintf("%*s %8d  %-12s %9s  %s", width, p.tag(), p.Pid, p.Host,
			since, what))
	}
	return out
}

// Stacks shows the stacks of all processes.
func Stacks(procs []Proc) (out []string) {
	for i := range procs {
		p := &procs[i]
		out = append(out, fmt.Sprintf("%s (pid %d on %s) %s", p.name(), p.Pid, p.Host, doing(p)))
		for n, f := range p.Stack {
			out = append(out, fmt.Sprintf("  #%-2d %s", n, f.Text()))
		}
		if p.Missing != "" {
			out = append(out, "  "+p.Missing)
		}
	}
	return out
}

// many is a number of things by name.
func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// QueueLines shows the queues of all processes.
func QueueLines(procs []Proc) (out []string) {
	titles := map[string]string{PostedReceive: "posted", Unexpected: "unexpected",
		Announced: "sent, not received", NoRoom: "waits for room"}
	for i := range procs {
		p := &procs[i]
		q := p.Queues
		if q == nil {
			out = append(out, fmt.Sprintf("%s: not known: it %s", p.name(), doing(p)))
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s posted, %s unexpected, %s pending", p.name(),
			many(q.Posted, "receive"), many(q.Unexpected, "message"), many(q.Pending, "send")))
		for k := range q.Entries {
			out = append(out, fmt.Sprintf("  %-19s %s", titles[q.Entries[k].Kind],
				q.Entries[k].text()))
		}
		if n := q.Posted + q.Unexpected + q.Pending - len(q.Entries); n > 0 {
			out = append(out, fmt.Sprintf("  and %d more", n))
		}
	}
	return out
}

// Brief returns why, and what every process does: for an unsolicited report.
func Brief(procs []Proc) []string { return Waits(procs) }
