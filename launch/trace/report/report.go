// Package report makes one page of a job's timeline (package trace): pictures of it, of the bytes
// sent between ranks, of the sizes of messages, of waits, of the load of the ranks, and of the
// hosts. The page is HTML with pictures in SVG, in one file that needs nothing else: spxctl report
// (docs/tracing.md).
package report

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"
	"strings"

	"libspx/launch/trace"
)

// A Timeline is the content of the file of --trace.
type Timeline struct {
	Job    *trace.Job
	Calls  map[int][]trace.Event // complete events by process, in order
	Arrows []Arrow
	Marks  []trace.Event // of failures
}

// An Arrow is a message. Times are us.
type Arrow struct {
	From, To int // processes
	Out, In  float64
}

// Read reads a file of --trace, compressed or not.
func Read(path string) (*Timeline, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from := bufio.NewReaderSize(f, 1<<20)
	var text io.Reader = from
	if head, err := from.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		if text, err = gzip.NewReader(from); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	t, err := decode(json.NewDecoder(text))
	if err != nil {
		return nil, fmt.Errorf("%s is no timeline of spxrun --trace: %w", path, err)
	}
	return t, nil
}

// decode takes the events one by one: a file may be large.
func decode(d *json.Decoder) (*Timeline, error) {
	t := &Timeline{Calls: map[int][]trace.Event{}}
	arrows := map[int]*Arrow{}
	if err := expect(d, json.Delim('{')); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch key {
		case "libspx":
			err = d.Decode(&t.Job)
		case "traceEvents":
			err = t.events(d, arrows)
		default:
			var other json.RawMessage
			err = d.Decode(&other)
		}
		if err != nil {
			return nil, err
		}
	}
	if t.Job == nil {
		return nil, fmt.Errorf("it does not say what job it is of")
	}
	for _, a := range arrows {
		if a.From >= 0 && a.To >= 0 {
			t.Arrows = append(t.Arrows, *a)
		}
	}
	slices.SortFunc(t.Arrows, func(a, b Arrow) int {
		return cmp.Or(cmp.Compare(a.Out, b.Out), cmp.Compare(a.In, b.In),
			cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return t, nil
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v where %v should be", got, want)
	}
	return err
}

func (t *Timeline) events(d *json.Decoder, arrows map[int]*Arrow) error {
	if err := expect(d, json.Delim('[')); err != nil {
		return err
	}
	for d.More() {
		var e trace.Event
		if err := d.Decode(&e); err != nil {
			return err
		}
		switch e.Phase {
		case "X":
			if e.Category == "message" {
				continue
			}
			e.Args = map[string]any{"at": e.Args["at"]}
			t.Calls[e.Process] = append(t.Calls[e.Process], e)
		case "s", "f":
			a := arrows[e.ID]
			if a == nil {
				a = &Arrow{From: -1, To: -1}
				arrows[e.ID] = a
			}
			if e.Phase == "s" {
				a.From, a.Out = e.Process, e.Time
			} else {
				a.To, a.In = e.Process, e.Time
			}
		case "i":
			if e.Category == "failure" {
				t.Marks = append(t.Marks, e)
			}
		}
	}
	return expect(d, json.Delim(']'))
}

// Write makes the page.
func (t *Timeline) Write(w io.Writer) error {
	j := t.Job
	calls := 0
	for _, list := range t.Calls {
		calls += len(list)
	}
	var dropped uint64
	var app, mpi float64
	var ends []string
	for _, r := range j.Ranks {
		dropped += r.Dropped
		app += r.Ended - r.Began
		mpi += r.MPI
		if r.End != "" {
			ends = append(ends, r.Name+" "+r.End)
		}
	}
	share := 0.0
	if app > 0 {
		share = 100 * mpi / app
	}
	var sums strings.Builder
	j.WriteProfile(&sums)
	command := strings.Join(j.Command, " ")
	return page.Execute(w, map[string]any{
		"Command": cmp.Or(command, "an MPI job"), "Ranks": len(j.Ranks), "Hosts": len(j.Hosts),
		"Seconds": fmt.Sprintf("%.3f", j.Seconds), "Share": fmt.Sprintf("%.1f", share),
		"Calls": calls, "Messages": j.Messages, "Dropped": dropped, "Ends": ends,
		"Sums":     sums.String(),
		"Timeline": t.timeline(), "Load": t.load(), "Waits": t.waits(), "Matrix": t.matrix(),
		"Sizes": t.sizes(), "Places": t.places(), "Topology": t.topology(),
		"Balance": t.balance(),
	})
}

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Command}}: MPI report</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1240px; padding: 1rem; color: #1b2430; background: #fff }
h1 { font-size: 1.5rem; margin: 0.3rem 0 } h2 { font-size: 1.15rem; margin: 2rem 0 0.3rem; border-top: 1px solid #d5dbe3; padding-top: 1rem }
p { margin: 0.3rem 0 0.6rem; color: #475465; max-width: 75em } svg { width: 100%; height: auto; display: block } text { font: 12px system-ui, sans-serif; fill: #1b2430 }
text.dim { fill: #66758a } pre { overflow-x: auto; background: #f5f7fa; padding: 0.8rem; font-size: 12.5px } .bad { color: #a31621; font-weight: 600 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } td, th { text-align: right; padding: 0.15rem 0.7rem; border-bottom: 1px solid #e3e8ee } td.l, th.l { text-align: left }
.facts span { display: inline-block; margin-right: 1.6rem } .facts b { font-size: 1.15rem; color: #1b2430 }
</style></head><body>
<h1>{{.Command}}</h1>
<p class="facts"><span><b>{{.Ranks}}</b> rank{{if ne .Ranks 1}}s{{end}}</span><span><b>{{.Hosts}}</b> host{{if ne .Hosts 1}}s{{end}}</span><span><b>{{.Seconds}}</b> s</span><span><b>{{.Share}}</b> % of the time in MPI</span><span><b>{{.Calls}}</b> bars</span><span><b>{{.Messages}}</b> messages</span></p>
{{range .Ends}}<p class="bad">{{.}}</p>{{end}}
{{if .Dropped}}<p class="bad">{{.Dropped}} records were dropped (--trace-limit): timeline, arrows and waits have what came last; all other sums are complete.</p>{{end}}
<h2>Timeline</h2>{{.Timeline}}
<h2>Load balance</h2><p>{{.Balance}}</p>{{.Load}}
<h2>Wait states</h2><p>Time in calls in which a rank could do nothing but wait for another one.</p>{{.Waits}}
<h2>Who has sent how much to whom</h2><p>Messages of point-to-point calls and multicasts. A row sends, a column receives.</p>{{.Matrix}}
<h2>Message sizes</h2>{{.Sizes}}
<h2>Where the time went</h2>{{.Places}}
<h2>Hosts</h2><p>Ranks by host, and what hosts have sent each other.</p>{{.Topology}}
<h2>All sums</h2><pre>{{.Sums}}</pre>
</body></html>
`))
