package front

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"libspx/launch/agent"
	"libspx/launch/command"
	"libspx/launch/control"
	"libspx/launch/process"
	"libspx/launch/progress"
	"libspx/launch/trace"
)

// tracing is what --trace and --profile want of spxrun: a directory before, files after the job.
type tracing struct {
	dir     string
	file    string // of the timeline; empty: none
	profile bool
	sums    string // file of the sums; empty: none
	command []string
}

// newTracing prepares it; nil: it is not wanted.
func newTracing(j *command.Job, spec *control.Job) (*tracing, error) {
	if j.TraceLimit > 0 && j.Trace == "" {
		return nil, fmt.Errorf("--trace-limit says how much --trace keeps; there is no --trace")
	}
	if j.Trace == "" && !j.Profile && j.ProfileJSON == "" {
		return nil, nil
	}
	t := &tracing{profile: j.Profile, file: j.Trace, sums: j.ProfileJSON}
	for _, file := range []string{t.file, t.sums} {
		if file == "" {
			continue
		}
		// it would be too late when the job is over
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		f.Close()
	}
	total := 0
	for i, p := range spec.Programs {
		total += p.Procs
		if i == 0 {
			t.command = p.Argv
		}
	}
	room := 0
	if t.file != "" {
		room = cmp.Or(j.TraceLimit, trace.DefaultLimit) / trace.RecordBytes
	}
	var err error
	t.dir, err = agent.TraceDir(total * room * trace.RecordBytes)
	spec.Trace, spec.TraceRoom = t.dir, room
	return t, err
}

// ended makes the requested output from the files of the processes.
func (t *tracing) ended() {
	if t == nil {
		return
	}
	defer os.RemoveAll(t.dir)
	if err := t.make(); err != nil {
		fmt.Fprintf(os.Stderr, "spxrun: %v%s\n", err, process.Advice(err))
	}
}

func (t *tracing) make() error {
	all, err := trace.Open(t.dir, t.command)
	if err != nil {
		return fmt.Errorf("what the processes have written for --trace or --profile: %w", err)
	}
	defer all.Close()
	j := all.Job()
	if len(j.Ranks) == 0 {
		fmt.Fprintf(os.Stderr,
			"spxrun: no process has called MPI_Init: there is nothing to trace\n")
	}
	if t.file != "" {
		bar := progress.Start("writing "+filepath.Base(t.file), len(j.Ranks))
		err = all.WriteFile(t.file, bar.Set)
		bar.End()
		if err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
		t.sayDropped(j)
	}
	if t.sums != "" {
		if err := j.WriteJSON(t.sums); err != nil {
			return fmt.Errorf("--profile-json: %w", err)
		}
	}
	if t.profile {
		j.WriteProfile(os.Stderr)
	}
	return nil
}

func (t *tracing) sayDropped(j *trace.Job) {
	var dropped, all uint64
	ranks := 0
	for _, r := range j.Ranks {
		all += r.Records
		dropped += r.Dropped
		if r.Dropped > 0 {
			ranks++
		}
	}
	if dropped > 0 {
		fmt.Fprintf(os.Stderr,
			"spxrun: --trace: %d of %d records were dropped, of %d ranks: %s has what came last "+
				"(--trace-limit %d would hold all)\n",
			dropped, all, ranks, t.file, (int(mostRecords(j))*trace.RecordBytes>>20)+1)
	}
}

func mostRecords(j *trace.Job) (most uint64) {
	for _, r := range j.Ranks {
		most = max(most, r.Records)
	}
	return most
}
