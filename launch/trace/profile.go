package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// The sums, in the manner of mpiP: time in MPI by rank, the places that cost most, what was sent.

// mostRows is how many places a table shows.
const mostRows = 20

// total is what a place has cost all ranks.
type total struct {
	Cost
	ranks   int
	slowest string
	most    float64
}

// WriteProfile writes the sums as text.
func (j *Job) WriteProfile(w io.Writer) {
	fmt.Fprintf(w, "MPI profile: %s, %s on %s, %.3f s\n", cmp.Or(strings.Join(j.Command, " "),
		"a job"), several(len(j.Ranks), "rank"), several(max(1, len(j.Hosts)), "host"), j.Seconds)
	j.writeRanks(w)
	totals, app, mpi := j.totals()
	j.writePlaces(w, totals, app, mpi)
	j.writeSent(w, totals)
}

func several(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func table(w io.Writer, title string) *tabwriter.Writer {
	fmt.Fprintf(w, "\n%s\n", title)
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
}

func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}

func (j *Job) writeRanks(w io.Writer) {
	t := table(w, "Time by rank")
	fmt.Fprintln(t, "rank\tseconds\tin MPI\t%\tsent\tbytes\treceived\tbytes\t")
	var all Rank
	app := 0.0
	for i := range j.Ranks {
		r := &j.Ranks[i]
		n, bytes := r.sent()
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.1f\t%d\t%s\t%d\t%s\t\n",
			strings.TrimPrefix(r.Name, "rank "), r.Ended-r.Began, r.MPI,
			percent(r.MPI, r.Ended-r.Began), n, Bytes(bytes), r.Got, Bytes(r.Bytes))
		app += r.Ended - r.Began
		all.MPI += r.MPI
		all.Got += r.Got
		all.Bytes += r.Bytes
		all.Sent = append(all.Sent, r.Sent...)
	}
	n, bytes := all.sent()
	fmt.Fprintf(t, "all\t%.3f\t%.3f\t%.1f\t%d\t%s\t%d\t%s\t\n", app, all.MPI, percent(all.MPI, app),
		n, Bytes(bytes), all.Got, Bytes(all.Bytes))
	t.Flush()
	for i := range j.Ranks {
		if r := &j.Ranks[i]; r.End != "" {
			fmt.Fprintf(w, "  %s %s\n", r.Name, r.End)
		}
	}
}

func (r *Rank) sent() (messages, bytes uint64) {
	for _, v := range r.Sent {
		messages += v.Messages
		bytes += v.Bytes
	}
	return messages, bytes
}

// totals adds up what every place has cost, the most expensive first; and the time of all ranks,
// and in MPI.
func (j *Job) totals() (list []total, app, mpi float64) {
	by := make([]total, len(j.Sites))
	for i := range j.Ranks {
		r := &j.Ranks[i]
		app += r.Ended - r.Began
		mpi += r.MPI
		for _, c := range r.Calls {
			if c.Site >= len(by) {
				continue
			}
			t := &by[c.Site]
			if t.ranks == 0 || c.Min < t.Min {
				t.Min = c.Min
			}
			t.Site, t.ranks = c.Site, t.ranks+1
			t.Calls, t.Errors, t.Seconds, t.Bytes = t.Calls+c.Calls, t.Errors+c.Errors,
				t.Seconds+c.Seconds, t.Bytes+c.Bytes
			t.Max, t.BytesMax = max(t.Max, c.Max), max(t.BytesMax, c.BytesMax)
			if t.ranks == 1 || c.Seconds > t.most {
				t.most, t.slowest = c.Seconds, strings.TrimPrefix(r.Name, "rank ")
			}
		}
	}
	for _, t := range by {
		if t.ranks > 0 {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b total) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return list, app, mpi
}

func rest(n int) string {
	if n <= mostRows {
		return ""
	}
	return fmt.Sprintf(" (the first %d of %d)", mostRows, n)
}

func (j *Job) writePlaces(w io.Writer, list []total, app, mpi float64) {
	t := table(w, "Calls that took the most time"+rest(len(list)))
	fmt.Fprintln(t,
		"call\tcalls\tseconds\t% of time\t% of MPI\tmean us\tmax us\tranks\tmost in rank\tat\t")
	for _, c := range list[:min(len(list), mostRows)] {
		s := &j.Sites[c.Site]
		fmt.Fprintf(t, "%s\t%d\t%.4f\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%s\t%s\t\n", s.Call, c.Calls,
			c.Seconds, percent(c.Seconds, app), percent(c.Seconds, mpi),
			1e6*c.Seconds/float64(max(1, c.Calls)), 1e6*c.Max,
			c.ranks, c.slowest, s.short())
	}
	t.Flush()
}

// short is a place without folders.
func (s *Site) short() string {
	name := s.Function
	if name == "" && s.PC != 0 {
		name = fmt.Sprintf("0x%x", s.PC)
	}
	switch {
	case s.Line > 0:
		return fmt.Sprintf("%s %s:%d", name, filepath.Base(s.File), s.Line)
	case s.Object != "":
		return fmt.Sprintf("%s %s+0x%x", name, filepath.Base(s.Object), s.PC)
	}
	return cmp.Or(name, "-")
}

func (j *Job) writeSent(w io.Writer, list []total) {
	list = slices.DeleteFunc(slices.Clone(list), func(t total) bool { return t.Bytes == 0 })
	if len(list) == 0 {
		return
	}
	slices.SortStableFunc(list, func(a, b total) int { return cmp.Compare(b.Bytes, a.Bytes) })
	all := uint64(0)
	for _, c := range list {
		all += c.Bytes
	}
	t := table(w, "Calls that were given the most data"+rest(len(list)))
	fmt.Fprintln(t, "call\tcalls\tbytes\tmean\tmax\t%\tat\t")
	for _, c := range list[:min(len(list), mostRows)] {
		s := &j.Sites[c.Site]
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%.1f\t%s\t\n", s.Call, c.Calls, Bytes(c.Bytes),
			Bytes(c.Bytes/max(1, c.Calls)), Bytes(c.BytesMax),
			percent(float64(c.Bytes), float64(all)), s.short())
	}
	t.Flush()
}

// Bytes is a number of bytes for people.
func Bytes(n uint64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	v, i := float64(n), 0
	for v >= 10000 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.0f %s", v, units[i])
}

// WriteJSON writes the sums for programs.
func (j *Job) WriteJSON(path string) error {
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
