package config

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
)

const full = `
[system]
name = "radar"
masters = "iop"
[start]
wait = "part"
clusters = ["in"]
limit = "1.5s"
[failure]
cluster = "restart"
process = "replace"
[[cluster]]
name = "in"
program = "./in"
args = ["-x", "1"]
ranks = 4
standbys = 1
hosts = ["a:2", "b"]
environment = { B = "2", A = "1" }
directory = "/data"
[[cluster]]
name = "out"
program = "./out"
ranks = 1
start = { wait = "none", limit = 5 }
failure = { restarts = 0, host = "degrade" }
[[link]]
from = "in"
to = "out"
iops = 2
choice = "weighted"
weights = [2, 1]
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(full), "file")
	if err != nil {
		t.Fatal(err)
	}
	part := Start{Wait: WaitPart, Clusters: []string{"in"}, LimitMS: 1500}
	want := &System{Name: "radar", Masters: MastersIOP, Messages: MessagesKept, Start: part,
		Failure: Failure{Process: Replace, IOP: Restart, Cluster: Restart, Restarts: 3,
			WithinMS: 3_600_000, Hang: Report, IOPHang: Report, HangMS: 30_000},
		Clusters: []Cluster{
			{Name: "in", Program: "./in", Args: []string{"-x", "1"}, Ranks: 4, Standbys: 1,
				Hosts: []string{"a:2", "b"}, Environment: []string{"A=1", "B=2"},
				Directory: "/data", Takeover: Notified, Start: part,
				Failure: Failure{Process: Replace, Host: Replace, Network: Replace, IOP: Restart,
					Cluster: Restart, Restarts: 3, WithinMS: 3_600_000, Hang: Report,
					IOPHang: Report, HangMS: 30_000}, Line: 12},
			{Name: "out", Program: "./out", Ranks: 1, Start: Start{Wait: WaitNone, LimitMS: 5000},
				Failure: Failure{Process: Stop, Host: Degrade, Network: Degrade, IOP: Restart,
					Cluster: Restart, WithinMS: 3_600_000, Hang: Report, IOPHang: Report,
					HangMS: 30_000}, Line: 21},
		},
		Links: []Link{{Name: "in-out", From: []string{"in"}, To: []string{"out"}, IOPs: 2,
			Program: Relay, Choice: ChoiceWeighted, Weights: []int{2, 1}, Security: SecurityKey,
			Line: 27}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"in"}, got.Awaited(got.Find("in"))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"out"}, got.Awaited(got.Find("out"))); d != "" {
		t.Error(d)
	}
}

func TestAwaited(t *testing.T) {
	s, err := Parse([]byte("[[cluster]]\nname='a'\nprogram='x'\nranks=1\n"+
		"[[cluster]]\nname='b'\nprogram='x'\nranks=1\n"+
		"[[cluster]]\nname='c'\nprogram='x'\nranks=1\nstart={wait='part',clusters=['a']}"), "s")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "[a b c]", "b": "[a b c]", "c": "[a c]"} {
		if got := fmt.Sprint(s.Awaited(s.Find(name))); got != want {
			t.Errorf("%s waits for %s, not %s", name, got, want)
		}
	}
}

// The files of testdata contain the problems of a system file, or its picture.
func TestFiles(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s, err := Parse([]byte(d.Input), "test")
			if err != nil {
				return err.Error() + "\n"
			}
			if d.Cmd == "picture" {
				return s.Picture(nil)
			}
			ranks, standbys, iops := s.Processes()
			return fmt.Sprintf("good: %d ranks, %d standbys, %d I/O processes\n", ranks, standbys,
				iops)
		})
	})
}

func TestTooLong(t *testing.T) {
	if _, err := Parse(make([]byte, MaxText+1), "x"); err == nil ||
		!strings.Contains(err.Error(), "1:1: the file has 1048577 bytes") {
		t.Error(err)
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{"rnaks": "ranks", "Ranks": "ranks", "rank": "ranks",
		"standby": "standbys", "zzz": "", "": "", "iop": ""} {
		if got := Nearest(word, []string{"ranks", "standbys"}); got != want {
			t.Errorf("%q: %q, not %q", word, got, want)
		}
	}
}

// Every key of the schema is in the manual, and docs/systems.md has that.
func TestManual(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "systems.md"))
	if err != nil || !strings.Contains(string(text), Manual()) {
		t.Errorf(
			"docs/systems.md has not the schema as it is now (%v); spxctl system schema prints "+
				"it:\n%s", err, Manual())
	}
}

func wellFormedXML(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestSVG(t *testing.T) {
	s, err := Parse([]byte(full), "file")
	if err != nil {
		t.Fatal(err)
	}
	text := s.SVG(func(c string) Paint { return Paint{"running <&>", "#afa"} })
	if err := wellFormedXML(text); err != nil || strings.Count(text, "#afa") != 2 ||
		!strings.Contains(text, "running &lt;&amp;&gt;") {
		t.Errorf("%v:\n%s", err, text)
	}
}

// Whatever stands in a file, the answer is a system in which everything fits, or mistakes at places
// that the file has.
func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add(
		[]byte(
			"a = \"\"\"x\n\"\"\"\"\n[[cluster]]\nname = " +
				"'a'\n[cluster.environment]\n\"q\\u0041\" = {x=[1,{y=2}]}"))
	f.Add(
		[]byte(
			"cluster = [{name = 'a', program = 'b', ranks = 1979-05-27 07:32:00}, 3]\nlink = " +
				"{}\nstart = 3"))
	f.Add([]byte("[[a.b]]\n[a.b.c]\n[[a.b]]\nd.e = [[1],\n# x\n[2]]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text, "f")
		lines := strings.Split(string(text), "\n")
		var problems Problems
		switch {
		case err == nil:
			if s.Picture(nil) == "" {
				t.Error("no picture")
			}
			if err := wellFormedXML(s.SVG(nil)); err != nil {
				t.Error(err)
			}
			for i := range s.Clusters {
				c := &s.Clusters[i]
				if c.Ranks < 1 || c.Program == "" || s.Find(c.Name) != c ||
					len(s.Awaited(c)) == 0 || c.Failure.Process == "" || c.Start.LimitMS < 1 {
					t.Errorf("cluster %+v", c)
				}
			}
			for _, l := range s.Links {
				for _, name := range append(append([]string(nil), l.From...), l.To...) {
					if s.Find(name) == nil {
						t.Errorf("link %+v", l)
					}
				}
			}
		case errors.As(err, &problems):
			for _, p := range problems {
				if p.Line < 1 || p.Line > len(lines) || p.Column < 1 ||
					p.Column > len(lines[p.Line-1])+2 || p.Text == "" {
					t.Errorf("mistake at %d:%d of %q: %s", p.Line, p.Column, text, p.Text)
				}
			}
		default:
			t.Errorf("error of type %T", err)
		}
	})
}

// Processes that are started in the place of ranks: how many, and what is wrong about that, by
// line.
func TestRestartOfRanks(t *testing.T) {
	const cluster = "[[cluster]]\nname = \"a\"\nprogram = \"./a\"\nranks = 2\n"
	for _, c := range []struct {
		text     string
		cold     int
		takeover string
	}{
		{cluster + "failure = { process = \"restart\" }\n", 24, Notified},
		{cluster +
			"takeover = \"transparent\"\nstandbys = 1\nfailure = { process = \"restart\", " +
			"restarts = 7 }\n", 56, Transparent},
		{cluster + "failure = { process = \"restart\", restarts = 20 }\n", 64, Notified},
		{"[failure]\nplaces = 9\n" + cluster +
			"failure = { process = \"restart\", restarts = 9 }\n", 9, Notified},
		{"[failure]\nprocess = \"restart\"\nrestarts = 4096\n" + cluster, 4096, Notified},
		{cluster + "failure = { cluster = \"restart\" }\n", 0, ""},
	} {
		s, err := Parse([]byte(c.text), "file")
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if a := &s.Clusters[0]; a.Cold() != c.cold || a.Takeover != c.takeover {
			t.Errorf("%d restarts, takeover %q; there should be %d, %q\n%s", a.Cold(), a.Takeover,
				c.cold, c.takeover, c.text)
		}
	}
	for _, c := range []struct{ text, want string }{
		{cluster + "failure = { process = \"restart\", restarts = 0 }\n", "5:"},
		{cluster + "failure = { process = \"restart\", restarts = 4097 }\n", "5:"},
		{"[failure]\nprocess = \"restart\"\nrestarts = 0\n" + cluster, "3:"},
		{"[failure]\nrestarts = 5000\n" + cluster + "failure = { process = \"restart\" }\n", "7:"},
		{cluster + "failure = { process = \"restart\", restarts = 9, places = 8 }\n", "5:"},
		{cluster + "takeover = \"transparent\"\nfailure = { process = \"degrade\" }\n", "5:"},
		{cluster + "copies = \"other host\"\nstandbys = 1\n", "5:"},
		{cluster + "failure = { process = \"restart\", host = \"restart\" }\n", "5:"},
		{cluster + "hosts = [\"a:1\", \"b:1\"]\nfailure = { host = \"restart\" }\n", "6:"},
		{cluster +
			"hosts = [\"a:1\", \"b:1\"]\ntakeover = \"transparent\"\nfailure = { process = " +
			"\"restart\", network = \"restart\" }\n", "7:"},
		{cluster + "copies = \"elsewhere\"\nstandbys = 1\ntakeover = \"transparent\"\n", "5:"},
	} {
		_, err := Parse([]byte(c.text), "file")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v; should begin with %s\n%s", err, c.want, c.text)
		}
	}
}

// Hangs: the time limit and the treatment; where there is no replacement, replacing is an error if
// set by the cluster, and "stop" if set for all.
func TestHang(t *testing.T) {
	const cluster = "[[cluster]]\nname = \"a\"\nprogram = \"./a\"\nranks = 2\n"
	for _, c := range []struct {
		text         string
		hang, iop    string
		limit, quiet int64
	}{
		{cluster, Report, Report, 30_000, 0},
		{"[failure]\nhang = \"stop\"\niop_hang = \"restart\"\nhang_limit = 2\nsilent_limit = " +
			"\"1m\"\n" + cluster, Stop, Restart, 2000, 60_000},
		{"[failure]\nsilent_limit = \"1m\"\n" + cluster +
			"standbys = 1\nfailure = { hang = \"replace\", silent_limit = \"ever\" }\n", Replace,
			Report, 30_000, 0},
		{"[failure]\nhang = \"restart\"\n" + cluster + "failure = { process = \"restart\" }\n",
			Restart, Report, 30_000, 0},
		{"[failure]\nhang = \"replace\"\n" + cluster, Stop, Report, 30_000, 0},
	} {
		s, err := Parse([]byte(c.text), "file")
		if err != nil {
			t.Errorf("%v\n%s", err, c.text)
			continue
		}
		if f := s.Clusters[0].Failure; f.Hang != c.hang || f.IOPHang != c.iop ||
			f.HangMS != c.limit || f.SilentMS != c.quiet {
			t.Errorf("%+v\n%s", f, c.text)
		}
	}
	for _, c := range []struct{ text, want string }{
		{cluster + "failure = { hang = \"replace\" }\n", "5:"},
		{cluster + "standbys = 1\nfailure = { hang = \"restart\" }\n", "6:"},
		{"[failure]\niop_hang = \"replace\"\n" + cluster, "2:"},
		{"[failure]\nhang_limit = \"ever\"\n" + cluster, "2:"},
	} {
		if _, err := Parse([]byte(c.text), "file"); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v; should begin with %s\n%s", err, c.want, c.text)
		}
	}
}

// Without a word of it messages are kept where all I/O processes are relays.
func TestPresetMessages(t *testing.T) {
	const clusters = "[[cluster]]\nname = \"a\"\nprogram = \"a\"\nranks = 1\n[[cluster]]\nname " +
		"= \"b\"\nprogram = \"b\"\nranks = 1\n"
	for link, want := range map[string]string{
		"":                       MessagesKept,
		"program = \"spx-iop\"":  MessagesKept,
		"program = \"./filter\"": MessagesFast,
	} {
		s, err := Parse([]byte(clusters+"[[link]]\nfrom = \"a\"\nto = \"b\"\n"+link+"\n"), "file")
		if err != nil || s.Messages != want {
			t.Errorf("%q: %v, %v, want %s", link, s, err, want)
		}
	}
}
