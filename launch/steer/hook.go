package steer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"libspx/launch/service"
)

// The scheduler's socket: a request in each line, a JSON object; for each an answer in a line, when
// it is done. Requests are carried out at the same time, so answers may come in another order: the
// id tells which.

// A Request is what a resource manager asks for.
type Request struct {
	ID json.RawMessage `json:"id,omitempty"` // any value; the answer has it too
	// jobs, resize, give, take, kill, hosts, add-hosts, remove-hosts
	Op string `json:"op"`
	// the beginning of its number; "." is the only one
	Job string `json:"job,omitempty"`
	// resize: processes afterwards; give, take: how many fewer or more
	Procs int      `json:"procs,omitempty"`
	Ranks []uint32 `json:"ranks,omitempty"` // kill
	// add-hosts: NAME or NAME:SLOTS; remove-hosts: names
	Hosts []string `json:"hosts,omitempty"`
	// seconds to wait for the end; 600 if it is not given
	Limit float64 `json:"limit,omitempty"`
}

// An Answer says what has come of a Request.
type Answer struct {
	ID      json.RawMessage `json:"id,omitempty"`
	OK      bool            `json:"ok"`
	Error   string          `json:"error,omitempty"`
	Job     string          `json:"job,omitempty"`
	From    int             `json:"from,omitempty"`    // processes before
	Procs   int             `json:"procs,omitempty"`   // and now
	Seconds float64         `json:"seconds,omitempty"` // that the change took
	Jobs    []service.About `json:"jobs,omitempty"`
	Hosts   []service.Host  `json:"hosts,omitempty"` // of the job, after the change
}

// Bounds of a connection.
const (
	LongestLine  = 64 << 10
	mostRequests = 64 // that are carried out at once; then no more are read
	longestLimit = 24 * time.Hour
)

// ParseRequest reads a line.
func ParseRequest(line []byte) (r Request, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err = d.Decode(&r); err != nil {
		return r, fmt.Errorf("the line is no request: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return r, errors.New("the line goes on behind the request")
	}
	if len(r.ID) > 256 {
		r.ID = nil
		return r, errors.New("id: at most 256 bytes")
	}
	switch r.Op {
	case "jobs":
		return r, nil
	case "resize", "give", "take":
		if r.Procs < 1 || r.Procs > 1<<20 {
			err = fmt.Errorf("procs is %d: it must be from 1 to %d", r.Procs, 1<<20)
		}
	case "kill":
		if len(r.Ranks) == 0 {
			err = errors.New("ranks: there must be one at least")
		}
	case "hosts":
	case "add-hosts", "remove-hosts":
		if len(r.Hosts) == 0 {
			err = errors.New("hosts: there must be one at least")
		}
	default:
		err = fmt.Errorf(
			"op is %.40q: there are jobs, resize, give, take, kill, hosts, add-hosts, remove-hosts",
			r.Op)
	}
	if err == nil && r.Job == "" {
		err = errors.New("job is missing")
	}
	if err == nil && !(r.Limit >= 0 && r.Limit <= longestLimit.Seconds()) {
		err = fmt.Errorf("limit is %g: seconds, at most %g", r.Limit, longestLimit.Seconds())
	}
	return r, err
}

// Serve answers requests until the other side ends, or sends a line that is too long.
func Serve(rw io.ReadWriter) error {
	var mu sync.Mutex // guards rw's writing side
	var running sync.WaitGroup
	defer running.Wait()
	say := func(a Answer) {
		text, err := json.Marshal(a)
		if err != nil {
			text, _ = json.Marshal(Answer{Error: err.Error()})
		}
		mu.Lock()
		defer mu.Unlock()
		rw.Write(append(text, '\n')) //nolint:errcheck // reading ends too, then
	}
	places := make(chan struct{}, mostRequests)
	lines := bufio.NewScanner(rw)
	lines.Buffer(make([]byte, 4096), LongestLine)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		r, err := ParseRequest(line)
		if err != nil {
			say(Answer{ID: r.ID, Error: err.Error()})
			continue
		}
		places <- struct{}{}
		running.Add(1)
		go func() {
			defer running.Done()
			say(Do(r))
			<-places
		}()
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		say(Answer{Error: fmt.Sprintf("a line has at most %d bytes; the connection is closed",
			LongestLine)})
	}
	return err
}

// Do carries out a request that was checked.
func Do(r Request) Answer {
	a := Answer{ID: r.ID}
	if r.Op == "jobs" {
		a.Jobs, _ = List() // those that answer
		a.OK = true
		return a
	}
	job, err := Find(r.Job)
	if err == nil {
		a.Job = fmt.Sprintf("%016x", job)
		began := time.Now()
		switch r.Op {
		case "hosts":
			a.Hosts, err = Hosts(job)
		case "add-hosts":
			a.Hosts, err = AddHosts(job, r.Hosts, r.limit())
			a.Seconds = time.Since(began).Seconds()
		case "remove-hosts":
			a.Hosts, err = RemoveHosts(job, r.Hosts, r.limit())
			a.Seconds = time.Since(began).Seconds()
		default:
			var c service.Change
			c, err = r.change(job)
			a.From, a.Procs, a.Seconds = c.From, c.To, c.Seconds
		}
	}
	a.OK = err == nil
	if err != nil {
		a.Error = strings.ToValidUTF8(err.Error(), "?")
	}
	return a
}

func (r Request) limit() time.Duration {
	if r.Limit > 0 {
		return time.Duration(r.Limit * float64(time.Second))
	}
	return 10 * time.Minute
}

func (r Request) change(job uint64) (c service.Change, err error) {
	limit := r.limit()
	m := r.Procs
	switch r.Op {
	case "kill":
		return Kill(job, r.Ranks, limit)
	case "give", "take":
		about, err := Describe(job)
		if err != nil {
			return c, err
		}
		if m = about.Procs + r.Procs; r.Op == "give" {
			m = about.Procs - r.Procs
		}
		if m < 1 {
			return c, fmt.Errorf("the job has %d processes, and cannot give up %d: one has to stay",
				about.Procs, r.Procs)
		}
	}
	return Command(job, strconv.Itoa(m), limit)
}
