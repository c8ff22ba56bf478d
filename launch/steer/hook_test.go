package steer

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

type pipe struct {
	io.Reader
	bytes.Buffer
}

func (p *pipe) Read(b []byte) (int, error) { return p.Reader.Read(b) }

// serve gives lines to Serve, and returns the answers.
func serve(t testing.TB, lines string) (answers []Answer) {
	p := &pipe{Reader: strings.NewReader(lines)}
	Serve(p) //nolint:errcheck // the answers tell
	for line := range strings.Lines(p.Buffer.String()) {
		var a Answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("answer %q: %v", line, err)
		}
		answers = append(answers, a)
	}
	return answers
}

// What is no request is answered by an error that says what is wrong, and what follows is answered
// too.
func TestBadRequests(t *testing.T) {
	for line, want := range map[string]string{
		`hello`:                                "no request",
		`[]`:                                   "no request",
		`{"op":"fly"}`:                         "there are jobs",
		`{"op":"resize","job":"."}`:            "procs is 0",
		`{"op":"resize","job":".","procs":-3}`: "procs is -3",
		`{"op":"resize","procs":3}`:            "job is missing",
		`{"op":"kill","job":"."}`:              "ranks",
		`{"op":"kill","job":".","ranks":[-1]}`: "no request",
		`{"op":"resize","job":".","procs":3,"colour":"red"}`: "colour",
		`{"op":"jobs"} {"op":"jobs"}`:                        "goes on",
		`{"op":"resize","job":".","procs":3,"limit":-1}`:     "limit",
		`{"op":"add-hosts","job":"."}`:                       "hosts: there must be",
		`{"op":"remove-hosts","job":".","hosts":"b"}`:        "no request",
		`{"op":"hosts"}`:                                     "job is missing",
		`{"op":"resize","job":"no such job","procs":3}`:      "is none of the",
	} {
		answers := serve(t, line+"\n\n{\"op\":\"jobs\",\"id\":[7]}\n")
		if len(answers) != 2 {
			t.Errorf("%s: %d answers", line, len(answers))
			continue
		}
		bad, good := answers[0], answers[1]
		if string(bad.ID) == "[7]" {
			bad, good = good, bad
		}
		if bad.OK || !strings.Contains(bad.Error, want) {
			t.Errorf("%s: %q has no %q", line, bad.Error, want)
		}
		if !good.OK || string(good.ID) != "[7]" {
			t.Errorf("%s: then %+v", line, good)
		}
	}
}

// A line that is too long ends the connection, with a word; memory is not taken for it.
func TestLongLine(t *testing.T) {
	answers := serve(t, strings.Repeat("x", LongestLine+1)+"\n{\"op\":\"jobs\"}\n")
	if len(answers) != 1 || !strings.Contains(answers[0].Error, "at most 65536 bytes") {
		t.Errorf("%+v", answers)
	}
}

// Whatever the line is, it is a request within its bounds or an error.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":1,"op":"resize","job":"ab","procs":4,"limit":2.5}`))
	f.Add([]byte(`{"op":"kill","job":".","ranks":[1,2]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseRequest(line)
		if err == nil && r.Op != "jobs" && (r.Job == "" || r.Procs < 1 && len(r.Ranks) == 0 &&
			len(r.Hosts) == 0 && r.Op != "hosts") {
			t.Errorf("%q is taken for %+v", line, r)
		}
	})
}
