package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseLine(t *testing.T) {
	tests := []struct {
		text, name string
		want       testLine
	}{
		{"sendrecv1 4 arg=-a arg=b env=K=V timeLimit=60", "pt2pt/sendrecv1 4 -a b env=K=V",
			testLine{ranks: 4, limit: time.Minute, strict: true}},
		{"  abort1", "pt2pt/abort1 2", testLine{ranks: 2, strict: true}},
		{"exitst1 2 resultTest=TestStatus # why", "pt2pt/exitst1 2", testLine{ranks: 2, check: wantFailure, strict: true}},
		{"sendself 1 test/mpi/pt2pt/sendself arg=-x", "pt2pt/sendself 1 -x", testLine{ranks: 1, strict: true}},
		{"big 8 mem=6.5 strict=FALSE xfail=ticket1", "pt2pt/big 8", testLine{ranks: 8, memory: 6.5}},
	}
	for _, test := range tests {
		l, ok, err := parseLine("pt2pt", test.text)
		if !ok || err != nil {
			t.Errorf("parseLine(%q): ok %v, error %v", test.text, ok, err)
			continue
		}
		if l.name() != test.name {
			t.Errorf("parseLine(%q).name() = %q, want %q", test.text, l.name(), test.name)
		}
		w := test.want
		if l.ranks != w.ranks || l.limit != w.limit || l.check != w.check || l.strict != w.strict || l.memory != w.memory {
			t.Errorf("parseLine(%q) = %+v, want %+v", test.text, l, w)
		}
	}
	for _, text := range []string{"", "   # only a remark", "!dtpools:all"} {
		if _, ok, err := parseLine("x", text); ok || err != nil {
			t.Errorf("parseLine(%q): ok %v, error %v, want neither", text, ok, err)
		}
	}
	for _, text := range []string{"a b", "a 2 colour=red", "a 2 resultTest=Guess"} {
		if _, _, err := parseLine("x", text); err == nil {
			t.Errorf("parseLine(%q) found nothing wrong", text)
		}
	}
}

func TestJudge(t *testing.T) {
	tests := []struct {
		check  check
		out    string
		status int
		pass   bool
	}{
		{wantNoErrors, " No Errors\n", 0, true},
		{wantNoErrors, " No Errors\n", 1, false},
		{wantNoErrors, "", 0, false},
		{wantNoErrors, "Found 3 errors\n No Errors\n", 0, false},
		{wantFailure, "anything\n", 9, true},
		{wantFailure, "", 0, false},
		{wantFailureNoErrors, "No Errors\n", 137, true},
		{wantFailureNoErrors, "No Errors\n", 0, false},
		{wantFailureNoErrors, "lost\n", 137, false},
		{wantExitZero, "chatter\n", 0, true},
		{wantExitZero, "chatter\n", 1, false},
	}
	for _, test := range tests {
		why := judge(test.check, test.out, test.status)
		if (why == "") != test.pass {
			t.Errorf("judge(%v, %q, %d) = %q, want pass %v", test.check, test.out, test.status, why, test.pass)
		}
	}
}

func TestMissingFunction(t *testing.T) {
	out := "libspx: MPI_Ibcast on MPI_COMM_WORLD failed: MPI_ERR_UNSUPPORTED_OPERATION: operation not supported: " +
		"MPI_Ibcast is not supported by this version of libspx\nabort\n"
	if got := missingFunction(out); got != "MPI_Ibcast" {
		t.Errorf("missingFunction = %q, want MPI_Ibcast", got)
	}
	if got := missingFunction("MPI_Send: MPI_ERR_RANK\n"); got != "" {
		t.Errorf("missingFunction found %q in an ordinary error", got)
	}
}

func TestExpect(t *testing.T) {
	list := []expectation{{"io/a", "because", false}, {"perf/b 2", "slow", true}}
	tests := []struct {
		text      string
		got, want verdict
	}{
		{"io/a", failed, expected},
		{"io/a", passed, unexpected},
		{"io/a", skipped, skipped},
		{"io/ab", failed, failed},
		{"perf/b", failed, expected},
		{"perf/b", passed, passed},
		{"perf/b 3", failed, failed},
	}
	for _, test := range tests {
		dir, rest, _ := strings.Cut(test.text, "/")
		l, _, err := parseLine(dir, rest)
		if err != nil {
			t.Fatal(err)
		}
		res := result{line: l, verdict: test.got}
		expect(&res, list)
		if res.verdict != test.want {
			t.Errorf("%s, %s: %s, want %s", test.text, test.got, res.verdict, test.want)
		}
	}
}

func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.tsv")
	l, _, _ := parseLine("io", "a 2 arg=x")
	for _, resume := range []bool{false, true} {
		p, err := openProgress(path, resume)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := p.known(l)
		if ok != resume || ok && (r.verdict != failed || r.seconds != 1.5 || r.why != "a b") {
			t.Errorf("resume %v: known %v, %+v", resume, ok, r)
		}
		p.add(result{line: l, verdict: failed, seconds: 1.5, why: "a\tb"})
		p.file.Close()
	}
}

func TestExpectationsOfWays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "expected.tsv")
	text := "a/b\talways\nhosts:a/c 2\ton hosts\n~tcp:a/d\tover TCP\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    options
		want string
	}{
		{options{}, "[{a/b always false}]"},
		{options{transports: "tcp"}, "[{a/b always false} {a/d over TCP true}]"},
		{options{hosts: 4}, "[{a/b always false} {a/c 2 on hosts false}]"},
	} {
		list, err := readExpected(file, c.o.ways()...)
		if got := fmt.Sprint(list); err != nil || got != c.want {
			t.Errorf("%+v: %s, %v; %s was wanted", c.o, got, err, c.want)
		}
	}
	if err := os.WriteFile(file, []byte("host:a/b\twhere\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := readExpected(file); err == nil {
		t.Error("a way that there is not is taken")
	}
}
