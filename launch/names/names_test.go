package names

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"libspx/net/tcp"
)

func ask(kind string, job uint64, name, port string) *Request {
	return &Request{Version: Version, Kind: kind, Job: job, Name: name, Port: port}
}

// A name is the job's that has published it, until that takes it back, leaves, or has not held it
// for Lease.
func TestTable(t *testing.T) {
	table := NewTable()
	hold := func(job uint64, names map[string]string) *Request {
		return &Request{Kind: Hold, Job: job, Names: names}
	}
	for _, c := range []struct {
		at   time.Duration
		q    *Request
		want Answer
	}{
		{0, ask(Lookup, 2, "x", ""), Answer{Unknown: true}},
		{0, ask(Publish, 1, "x", "p"), Answer{}},
		{0, ask(Publish, 1, "x", "p"), Answer{}}, // said again, since the answer was lost
		{1, ask(Lookup, 2, "x", ""), Answer{Port: "p", Job: 1}},
		{1, ask(Publish, 2, "x", "q"), Answer{Taken: []string{"x"}, Port: "p", Job: 1}},
		{1, ask(Unpublish, 2, "x", ""), Answer{Unknown: true}},
		{Lease - 1, hold(1, map[string]string{"x": "p2", "y": "p"}), Answer{}},
		{Lease, hold(2, map[string]string{"x": "q", "z": "q"}), Answer{Taken: []string{"x"}}},
		// the port is kept by another host by then
		{2*Lease - 2, ask(Lookup, 3, "x", ""), Answer{Port: "p2", Job: 1}},
		{2*Lease - 2, &Request{Kind: List},
			Answer{List: []Entry{{"x", "p2", 1}, {"y", "p", 1}, {"z", "q", 2}}}},
		{2*Lease - 1, ask(Lookup, 3, "x", ""), Answer{Unknown: true}},
		{2*Lease - 1, ask(Publish, 2, "x", "q"), Answer{}},
		{2*Lease - 1, ask(Unpublish, 2, "x", ""), Answer{}},
		{2*Lease - 1, ask(Lookup, 2, "z", ""), Answer{Port: "q", Job: 2}},
		{2*Lease - 1, ask(Leave, 2, "", ""), Answer{}},
		{2*Lease - 1, ask(Lookup, 2, "z", ""), Answer{Unknown: true}},
	} {
		c.want.Version = Version
		if d := cmp.Diff(&c.want, table.Do(c.q, c.at)); d != "" {
			t.Errorf("at %v, %+v: (-want +got)\n%s", c.at, c.q, d)
		}
	}
	if a := table.Do(ask("steal", 1, "x", ""), 0); !strings.Contains(a.Text,
		`does not know the request "steal"`) {
		t.Errorf("%+v", a)
	}
}

// A server has a bounded number of names, and a list stops before the keys of ports, and below what
// a message may have.
func TestTableIsBounded(t *testing.T) {
	table := NewTable()
	for n := range MostNames {
		table.Do(ask(Publish, 1, fmt.Sprintf("%s%d", strings.Repeat("n", 100), n), "spx:1@a#key"),
			0)
	}
	if a := table.Do(ask(Publish, 1, "one more", "p"), 0); !strings.Contains(a.Text,
		"as many as there can be") {
		t.Errorf("%+v", a)
	}
	var out bytes.Buffer
	if err := Write(&out, table.Do(&Request{Kind: List}, 0)); err != nil ||
		bytes.Contains(out.Bytes(), []byte("key")) {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}

// served runs a server, and says where it is.
func served(t *testing.T, key [32]byte, at string, again bool) (*Place, func()) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	s := NewServer(key, again)
	done.Go(func() { s.Serve(l) }) //nolint:errcheck // it ends with the listener
	stop := sync.OnceFunc(func() { l.Close(); done.Wait() })
	t.Cleanup(stop)
	return &Place{At: l.Addr().String(), Key: key, File: "the file"}, stop
}

// A server that comes again has no names, and waits for those who have: it says that there is none
// when they have had the time to say so, and what comes meanwhile at once. What another job has
// published before is not given away.
func TestServerComesAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, stop := served(t, NewKey(), "127.0.0.1:0", false)
	began := time.Now()
	if a, err := p.Ask(ctx, ask(Lookup, 2, "x", "")); err != nil || !a.Unknown ||
		time.Since(began) > Settle {
		t.Fatalf("%+v, %v after %v", a, err, time.Since(began))
	}
	if a, err := p.Ask(ctx, ask(Publish, 1, "x", "p")); err != nil || len(a.Taken) > 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	stop()
	if _, err := p.Ask(ctx, ask(Lookup, 2, "x", "")); err == nil ||
		!strings.Contains(err.Error(), "the name service at "+p.At+" does not answer") ||
		!strings.Contains(err.Error(), "spxctl names serve the file") {
		t.Errorf("%v", err)
	}
	found := make(chan *Answer, 2)
	// asked while it is gone
	for _, q := range []*Request{ask(Lookup, 2, "x", ""), ask(Publish, 2, "x", "q")} {
		go func() {
			a, err := p.AskUntil(ctx, q)
			if err != nil {
				t.Error(err)
			}
			found <- a
		}()
	}
	served(t, p.Key, p.At, true)
	if a, err := p.AskUntil(ctx, &Request{Kind: Hold, Job: 1,
		Names: map[string]string{"x": "p"}}); err != nil || len(a.Taken) > 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	for range 2 {
		if a := <-found; a == nil || a.Port != "p" || a.Job != 1 {
			t.Errorf("%+v", a)
		}
	}
	if a, err := p.Ask(ctx, ask(Lookup, 2, "z", "")); err != nil || !a.Unknown {
		t.Errorf("%+v, %v", a, err)
	}
}

// Strangers get nothing, and keep others from nothing: those with another key, who are told so,
// those that say nothing, or anything, and those that ask without a proof.
func TestServerRefusesStrangers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, _ := served(t, NewKey(), "127.0.0.1:0", false)
	stranger := *p
	stranger.Key = NewKey()
	if _, err := stranger.AskUntil(ctx, ask(Lookup, 2, "x", "")); !errors.Is(err, tcp.ErrKey) ||
		!strings.Contains(err.Error(), "take the file that its server uses") {
		t.Errorf("%v", err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		c, err := net.Dial("tcp", p.At)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if n%2 == 1 {
			junk := make([]byte, r.IntN(600))
			for i := range junk {
				junk[i] = byte(r.Uint32())
			}
			c.Write(junk) //nolint:errcheck // it may hang up
		}
	}
	c, err := net.Dial("tcp", p.At)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	Write(c, ask(Publish, 1, "x", "p"))                 //nolint:errcheck // it hangs up
	c.SetReadDeadline(time.Now().Add(30 * time.Second)) //nolint:errcheck // the test has a limit
	if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if a, err := p.Ask(ctx, ask(Lookup, 2, "x", "")); err != nil || !a.Unknown {
		t.Errorf("%+v, %v", a, err)
	}
}

// The file has where the server is and its key, and other users cannot read it.
func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names")
	p := &Place{At: "10.0.0.1:7400", Key: NewKey()}
	if err := p.Write(file); err != nil {
		t.Fatal(err)
	}
	got, err := Read(file)
	if p.File = file; err != nil || *got != *p {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", "spx-names", "spx-names 10.0.0.1 x",
		strings.Replace(p.String(), "10.0.0.1:7400", "host:7400", 1), p.String() + "more"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if _, err := Read(t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "no regular file") {
		t.Errorf("%v", err)
	}
}

// Requests that are not as they should be are refused, whatever they are, and what is read is
// bounded by what comes.
func FuzzRequest(f *testing.F) {
	for _, q := range []*Request{ask(Publish, 1, "x", "p"), ask(Lookup, 1, "", ""),
		{Kind: Hold, Names: map[string]string{"x": "p", "y": ""}}, {Kind: "steal"}} {
		var out bytes.Buffer
		if err := Write(&out, q); err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes())
	}
	f.Add(binary.LittleEndian.AppendUint32(nil, MostMessage))
	f.Add(binary.LittleEndian.AppendUint32(nil, 1<<31))
	f.Fuzz(func(t *testing.T, text []byte) {
		q, err := ReadRequest(bytes.NewReader(text))
		if err != nil {
			return
		}
		table := NewTable()
		table.Do(ask(Publish, 7, "x", "p"), 0)
		answer := table.Do(q, 1)
		var out bytes.Buffer
		if err := Write(&out, answer); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadAnswer(&out); err != nil {
			t.Fatalf("%+v: %v", answer, err)
		}
		if a := table.Do(ask(Lookup, 7, "x", ""), 1); q.Job != 7 && a.Port != "p" {
			t.Fatalf("job %d has changed a name of job 7: %+v", q.Job, a)
		}
		if q.Kind == Publish && answer.Text == "" && (q.Name == "" || len(q.Name) > MostName) {
			t.Fatalf("%+v", q)
		}
	})
}

// FuzzFile: what is no file of a server is refused, and what is read is what was written.
func FuzzFile(f *testing.F) {
	f.Add((&Place{At: "[::1]:80", Key: NewKey()}).String())
	f.Add("spx-names 1.2.3.4:5 AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(p.String()); err != nil || again != p {
			t.Fatalf("%+v, %+v, %v", p, again, err)
		}
	})
}

// Whatever a server answers is an answer or an error, and an answer is as long as what comes.
func FuzzAnswer(f *testing.F) {
	for _, a := range []*Answer{{Version: Version}, {Port: "p", Job: 7},
		{Taken: []string{"x", ""}, Unknown: true}, {Text: "no"}, {List: []Entry{{"x", "p", 1}}}} {
		var out bytes.Buffer
		if err := Write(&out, a); err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes())
	}
	f.Add([]byte("\x04\x00\x00\x00null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ReadAnswer(bytes.NewReader(text))
		if err != nil {
			return
		}
		if a == nil || len(a.Port) > MostPort {
			t.Fatalf("%+v", a)
		}
		room := 0
		for _, name := range a.Taken {
			room += len(name)
		}
		for _, e := range a.List {
			room += len(e.Name) + len(e.Port)
		}
		if room > 3*len(text) { // what is no UTF-8 becomes a character of three bytes
			t.Fatalf("%d bytes of %d", room, len(text))
		}
	})
}

// FuzzPlace: what a process tells its agent of a server is as it was, or refused.
func FuzzPlace(f *testing.F) {
	f.Add((&Place{At: "10.0.0.1:80", Key: NewKey(), File: "names of mine"}).Encode())
	f.Add((&Place{At: "[::1]:80", Key: NewKey(), File: "a\nb"}).Encode())
	f.Add("spx-names")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Decode(text)
		if err != nil {
			return
		}
		if again, err := Decode(p.Encode()); err != nil || *again != *p {
			t.Fatalf("%+v, %+v, %v", p, again, err)
		}
	})
}
