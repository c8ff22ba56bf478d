package args

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"libspx/api"
	"libspx/tests/harness"
)

// unwritten lists the functions that have no body yet.
func unwritten(t *testing.T) map[string]bool {
	t.Helper()
	cmd := exec.Command("go", "run", "./api/gen", "-status")
	cmd.Dir = harness.Root()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, line := range strings.Split(string(out), "\n") {
		if f := strings.Fields(line); len(f) == 2 {
			names[f[1]] = true
		}
	}
	return names
}

// parts are the chapters, put together so that the programs take about the same time.
func parts(t *testing.T, tables *api.Tables) map[string][]*unit {
	missing := unwritten(t)
	out := map[string][]*unit{}
	for _, f := range tables.Functions {
		if _, no := exempt[f.Name]; no || missing[f.Name] || f.Header == "mpisp.h" || f.Header == "ulfm_dyprc.h" {
			continue
		}
		out[f.Chapter] = append(out[f.Chapter], makeUnit(f))
	}
	return out
}

// An answer is what one rank said of one call.
type answer struct {
	tried bool
	code  int
	class int
	text  string
}

// A session of runs of one program: answers by rank and by call, and what went wrong with processes.
type runs struct {
	t        *testing.T
	program  string
	chapter  string
	units    []*unit
	ranks    int
	answers  []map[int]answer
	problems []string
	calls    int
}

func (r *runs) locate(number int) (*unit, attempt) {
	i := sort.Search(len(r.units), func(i int) bool { return r.units[i].first > number }) - 1
	return r.units[i], r.units[i].attempts[number-r.units[i].first]
}

// right is the first attempt of the function that a call belongs to.
func (r *runs) right(number int) attempt {
	u, _ := r.locate(number)
	return u.attempts[0]
}

func (r *runs) name(number int) string {
	u, a := r.locate(number)
	if a.kind == 'v' || a.kind == 'f' {
		return u.f.Name + ", right call"
	}
	return fmt.Sprintf("%s, %s: %s", u.f.Name, a.arg, a.what)
}

// all runs the program until every call was made: after a crash, a hang or a wrong answer a new process goes on behind it.
func (r *runs) all() {
	total := 0
	for _, u := range r.units {
		total += len(u.attempts)
	}
	for range r.ranks {
		r.answers = append(r.answers, map[int]answer{})
	}
	from := 0
	for tries := 0; from < total; tries++ {
		if tries > 400 {
			r.problems = append(r.problems, "too many processes ended; the rest was not tried")
			return
		}
		dir := r.t.TempDir()
		o := harness.Run(r.t, harness.Command{Args: harness.Spxrun(r.t, fmt.Sprint(r.ranks), r.program, dir, fmt.Sprint(from)), Limit: 120 * time.Second})
		last, when, done := -1, "", 0
		for rank := range r.ranks {
			l, w, d := r.read(rank, filepath.Join(dir, fmt.Sprintf("report.%d", rank)))
			if l > last {
				last, when = l, w
			}
			done += d
		}
		if done == r.ranks && o.Status == 0 {
			return
		}
		if last < 0 {
			r.problems = append(r.problems, fmt.Sprintf("nothing was called from %d on: status %d\n%s", from, o.Status, o.Text()))
			return
		}
		if when != "" {
			r.problems = append(r.problems, fmt.Sprintf("%s (%s): status %d, late %v\n%s", r.name(last), when, o.Status, o.Late, head(o.Stderr)))
		}
		from = last + 1
		if u, a := r.locate(last); a.kind == 'v' || a.kind == 'f' {
			from = u.first + len(u.attempts) // no right call: nothing can be told of wrong ones
		}
	}
}

// head is the first lines of what a process said when it ended.
func head(s string) string {
	lines := strings.SplitAfterN(s, "\n", 5)
	return strings.Join(lines[:min(len(lines), 4)], "")
}

// read takes a report. It returns the last call, how it ended when it did not return properly, and whether the program ended.
func (r *runs) read(rank int, path string) (last int, when string, done int) {
	last = -1
	file, err := os.Open(path)
	if err != nil {
		return last, "", 0
	}
	defer file.Close()
	open := ""
	for s := bufio.NewScanner(file); s.Scan(); {
		f := strings.SplitN(s.Text(), " ", 4)
		switch f[0] {
		case "B":
			last, _ = strconv.Atoi(f[1])
			open = f[2]
		case "E":
			code, _ := strconv.Atoi(f[1])
			class, _ := strconv.Atoi(f[2])
			r.calls++
			if open == "call" {
				r.answers[rank][last] = answer{true, code, class, f[3]}
			} else if code != 0 && r.right(last).kind != 'f' {
				r.problems = append(r.problems, fmt.Sprintf("%s: the right call (%s) fails on rank %d: %s", r.name(last), open, rank, f[3]))
			}
			open = ""
		case "H":
			return last, "hangs in " + open, 0
		case "X":
			r.problems = append(r.problems, fmt.Sprintf("%s (%s): %s", r.name(max(last, 0)), open, s.Text()))
			return last, "", 0
		case "D":
			done = 1
		}
	}
	if open != "" {
		return last, "ends in " + open, done
	}
	return last, "", done
}

var otherNames = map[string]string{
	"comm_keyval": "keyval", "type_keyval": "keyval", "win_keyval": "keyval", "partition_low": "partition = ", "partition_high": "partition = ",
	"array_of_partitions": "partition = ", "filename": "file \"", "datarep": "data representation \"", "service_name": "service \"", "port_name": "of a port",
	"command": "program ", "array_of_maxprocs": "maxprocs", "array_of_info": "info handle",
}

// otherName is what messages call an argument that has different names in different functions, or whose value says enough.
func otherName(arg string) string {
	if other := otherNames[arg]; other != "" {
		return other
	}
	return arg
}

// verdict compares an answer with what it ought to be; "" is right.
func verdict(f *api.Function, a attempt, rank int, got answer, classes map[string]int) string {
	if a.classes == "" || a.kind == 'a' && rank == 0 {
		if got.code != 0 {
			return "is right, but: " + got.text
		}
		return ""
	}
	if got.code == 0 {
		return "is accepted"
	}
	ok := false
	for _, c := range strings.Fields(a.classes) {
		ok = ok || classes[c] == got.class && got.class > 0
	}
	if !ok {
		return "another class: " + got.text
	}
	if f.Chapter == "tools" {
		return ""
	}
	if !strings.Contains(got.text, "("+f.Name+": ") {
		return "no function in: " + got.text
	}
	if !strings.Contains(got.text, a.arg) && !strings.Contains(got.text, otherName(a.arg)) {
		return "no argument in: " + got.text
	}
	if !strings.Contains(got.text, a.says) {
		return "no value " + a.says + " in: " + got.text
	}
	return ""
}

func compile(t *testing.T, chapter string, units []*unit, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, chapter+".c")
	if err := os.WriteFile(source, []byte(program(units)), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, chapter)
	args := append([]string{"-w", "-g", "-O0", "-I" + filepath.Join(harness.Root(), "tests/args/testdata"), source, "-o", out}, flags...)
	if text, err := exec.Command(filepath.Join(harness.Build(t), "bin/mpicc"), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

var (
	mutex sync.Mutex
	table []string
	calls int
)

// Every argument of every function is wrong in some call, or there is no wrong value of its kind.
func TestEveryArgumentHasAWrongValue(t *testing.T) {
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	for chapter, units := range parts(t, tables) {
		for _, u := range units {
			wrong := map[string]bool{}
			for _, a := range u.attempts {
				wrong[a.arg] = wrong[a.arg] || a.classes != ""
			}
			for _, p := range u.f.Params {
				for s := range u.c.skip {
					wrong[p.Name] = wrong[p.Name] || strings.HasPrefix(s, p.Name+"=") // on purpose
				}
				if !wrong[p.Name] && !anything[p.Kind] && !(p.Dir == "out" && optionalResult(p)) && !(p.Dir != "in" && describes.MatchString(u.f.Name)) && !survives(u.f) {
					t.Errorf("%s: %s: no wrong value of %s (%s)", chapter, u.f.Name, p.Name, p.Kind)
				}
			}
		}
	}
}

// TestArguments makes every call in programs of one and of two processes; those of two use the PMPI_ names.
func TestArguments(t *testing.T) {
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	classes := map[string]int{}
	for _, c := range tables.Constants {
		if strings.Contains(c.Name, "_ERR_") {
			classes[c.Name], _ = strconv.Atoi(c.Value)
		}
	}
	functions := 0
	t.Run("all", func(t *testing.T) {
		for chapter, units := range parts(t, tables) {
			functions += len(units)
			t.Run(chapter, func(t *testing.T) {
				t.Parallel()
				one := compile(t, chapter, units)
				two := compile(t, chapter, units, "-DCALL(f)=P##f")
				judge(t, &runs{t: t, program: one, chapter: chapter, units: units, ranks: 1}, classes)
				judge(t, &runs{t: t, program: two, chapter: chapter, units: units, ranks: 2}, classes)
			})
		}
	})
	sort.Strings(table)
	path := filepath.Join(harness.Build(t), "arguments.tsv")
	if err := os.WriteFile(path, []byte("function\targument\tvalue\tranks\texpected\tgot\n"+strings.Join(table, "")), 0o666); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls of %d functions; the table is %s", calls, functions, path)
}

func judge(t *testing.T, r *runs, classes map[string]int) {
	r.all()
	for _, p := range r.problems {
		t.Error(p)
	}
	mutex.Lock()
	defer mutex.Unlock()
	calls += r.calls
	for rank, answers := range r.answers {
		for _, u := range r.units {
			for k, a := range u.attempts {
				got := answers[u.first+k]
				if !got.tried {
					continue
				}
				if v := verdict(u.f, a, rank, got, classes); v != "" {
					t.Errorf("%s of %d ranks, rank %d: %s", r.name(u.first+k), r.ranks, rank, v)
				}
				if rank == 0 {
					name, _, _ := strings.Cut(got.text, ":")
					table = append(table, fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\n", u.f.Name, a.arg, a.what, r.ranks, a.classes, name))
				}
			}
		}
	}
}
