package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// 16 ranks with 100,000 lines each: every line whole, once, and in its rank's order.
func TestOutputIntegrity(t *testing.T) {
	const ranks, lines = 16, 100_000
	r := prepare(t, "-n", fmt.Sprint(ranks), "awk", "-v", fmt.Sprintf("n=%d", lines),
		`BEGIN { r = ENVIRON["SPX_RANK"]; s = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"; for (i = 0; i < n; i++) print r, i, substr(s, 1, (i + r) % 50) }`)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdout = out
	r.start()
	out.Close()
	var next [ranks]int
	letters := "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
	for s := bufio.NewScanner(in); s.Scan(); {
		f := strings.SplitN(s.Text(), " ", 3)
		rank, _ := strconv.Atoi(f[0])
		if len(f) != 3 || rank < 0 || rank >= ranks || f[1] != strconv.Itoa(next[rank]) || f[2] != letters[:(next[rank]+rank)%50] {
			t.Errorf("line %q, expected next numbers %v", s.Text(), next)
			r.cancel()
			break
		}
		next[rank]++
	}
	if status := r.wait(); status != 0 {
		t.Errorf("status %d, said %q", status, r.err.String())
	}
	for rank, n := range next {
		if n != lines {
			t.Errorf("rank %d: %d lines of %d", rank, n, lines)
		}
	}
}

func TestTags(t *testing.T) {
	status, out, errs := job(t, "-l", "-n", "2", "sh", "-c", "echo out; echo err >&2; printf unfinished")
	if status != 0 {
		t.Fatalf("status %d", status)
	}
	for rank := range 2 {
		if !strings.Contains(out, fmt.Sprintf("[%d] out\n", rank)) || !strings.Contains(out, fmt.Sprintf("[%d] unfinished\n", rank)) || !strings.Contains(errs, fmt.Sprintf("[%d] err\n", rank)) {
			t.Errorf("output %q, errors %q", out, errs)
		}
	}
}

func TestOutputFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "out")
	status, out, errs := job(t, "--output", dir, "-n", "11", "sh", "-c", "echo out $SPX_RANK; echo err $SPX_RANK >&2")
	if status != 0 || out != "" || errs != "" {
		t.Fatalf("status %d, output %q, errors %q", status, out, errs)
	}
	for rank := range 11 {
		for _, stream := range []string{"out", "err"} {
			data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank.%02d.%s", rank, stream)))
			if want := fmt.Sprintf("%s %d\n", stream, rank); err != nil || string(data) != want {
				t.Errorf("%q (%v), want %q", data, err, want)
			}
		}
	}
}

// A process that outlives its rank and holds its output open does not hold up the end, and what was
// written is not lost.
func TestGrandchildHoldsPipe(t *testing.T) {
	status, out, _ := job(t, "-n", "2", "sh", "-c", "setsid sh -c 'trap \"\" TERM HUP; echo late; sleep 1000; sleep 1000' & sleep 0.2; echo done")
	if status != 0 || strings.Count(out, "late\n") != 2 || strings.Count(out, "done\n") != 2 {
		t.Errorf("status %d, output %q", status, out)
	}
}

// The reader of spxrun's output goes away: the ranks learn it as any program does.
func TestReaderGone(t *testing.T) {
	r := prepare(t, "-n", "3", "yes")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdout = out
	r.start()
	out.Close()
	if line, err := bufio.NewReader(in).ReadString('\n'); line != "y\n" || err != nil {
		t.Errorf("line %q, error %v", line, err)
	}
	in.Close()
	// SIGPIPE; or EPIPE where that signal is ignored
	if status := r.wait(); status != 141 && status != 1 {
		t.Errorf("status %d, said %q", status, r.err.String())
	}
}

// A prompt appears before its answer.
func TestPrompt(t *testing.T) {
	r := prepare(t, "-n", "2", "sh", "-c", `[ $SPX_RANK = 0 ] || exec sleep 1; printf 'name? '; read name; echo "hello $name"`)
	answer, _ := r.cmd.StdinPipe()
	question, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdout = out
	r.start()
	out.Close()
	b := make([]byte, 6)
	if _, err := io.ReadFull(question, b); string(b) != "name? " {
		t.Fatalf("prompt %q, error %v", b, err)
	}
	io.WriteString(answer, "world\n")
	if rest, _ := io.ReadAll(question); string(rest) != "hello world\n" {
		t.Errorf("then %q", rest)
	}
	if status := r.wait(); status != 0 {
		t.Errorf("status %d", status)
	}
}

// Standard input: all of it, to rank 0, or to the rank of --stdin.
func TestStdin(t *testing.T) {
	const size = 256 << 20
	r := prepare(t, "-n", "3", "sh", "-c", "wc -c")
	r.cmd.Stdin = io.LimitReader(zeros{}, size)
	if status := r.start().wait(); status != 0 || countLine(r.out.String(), fmt.Sprint(size)) != 1 || countLine(r.out.String(), "0") != 2 {
		t.Errorf("status %d, counts %q", status, r.out.String())
	}
	for _, c := range []struct{ who, want string }{{"all", "[0] text\n[1] text\n[2] text\n"}, {"1", "[1] text\n"}, {"none", ""}} {
		r := prepare(t, "-l", "-n", "3", "--stdin", c.who, "cat")
		r.cmd.Stdin = strings.NewReader("text\n")
		if status := r.start().wait(); status != 0 || sortedLines(r.out.String()) != c.want {
			t.Errorf("--stdin %s: status %d, output %q", c.who, status, r.out.String())
		}
	}
	r = prepare(t, "-n", "2", "--stdin", "all", "head", "-c", "10") // closed early by all
	r.cmd.Stdin = io.LimitReader(zeros{}, 1<<20)
	if status := r.start().wait(); status != 0 || r.out.Len() != 20 {
		t.Errorf("closed early: status %d, %d bytes", status, r.out.Len())
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func countLine(text, line string) (n int) {
	for _, l := range strings.Split(text, "\n") {
		if strings.TrimSpace(l) == line {
			n++
		}
	}
	return n
}

func sortedLines(text string) string {
	var b bytes.Buffer
	for _, tag := range []string{"[0]", "[1]", "[2]"} {
		for _, l := range strings.SplitAfter(text, "\n") {
			if strings.HasPrefix(l, tag) {
				b.WriteString(l)
			}
		}
	}
	return b.String()
}
