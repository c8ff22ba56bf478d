package layers

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// project writes the files into a folder of its own.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// small is a program of four layers in which functions reach upwards in every way that there is.
var small = map[string]string{
	"layers.tsv":  "# head\nlow\t0\t\t\nleft\t10\t\t\nright\t10\t\t\nhigh\t20\t\t\nfront\t30\tback\t\nback\t30\tfront\t\n",
	"files.tsv":   "low.c\tlow\t\nleft.c\tleft\t\nright.c\tright\t\nhigh.c\thigh\t\n",
	"symbols.tsv": "state\tlow\tdefined in high.c until that is split\n",
	"all.h": `
void low(void), left(void), right(void), high(int), never(void);
extern int count, state;
static inline void note(void) { if (count) high(1); }
static inline void note_all(void) { note(); }
static inline void unused(void) { never(); }`,
	"low.c": `
#include "all.h"
static void helper(void) { high(2); }             /* a call */
void low(void) { helper(); }                      /* names nothing of others itself */
int read_count(void) { return count; }            /* a variable */
void (*table[])(int) = {high};                    /* an address in an initial value */
void *address(void) { return (void *)left; }      /* an address */
void by_header(void) { note_all(); }              /* through inline functions of a header */
int moved(void) { return state; }                 /* belongs here, whatever file defines it */`,
	"left.c": `
#include "all.h"
static void helper(void) { low(); }
void left(void) { helper(); }
void aside(void) { right(); }                     /* a layer of the same level */`,
	"right.c": `
#include "all.h"
void right(void) { low(); }`,
	"high.c": `
#include "all.h"
int count, state;
void exported(void);
void high(int n) { if (n) left(), right(), low(), exported(); }`,
}

func check(t *testing.T, dir string) *Report {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Fatal("gcc is not installed (make deps)")
	}
	tables, err := ReadTables(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := filepath.Glob(dir + "/*.c")
	var files []string
	for _, f := range list {
		files = append(files, filepath.Base(f))
	}
	objects, err := Program{Root: dir, CC: "gcc", Include: []string{"."}, Cache: dir + "/kept"}.Compile(files)
	if err != nil {
		t.Fatal(err)
	}
	return tables.Check(objects, map[string]string{"exported": "front"})
}

func keys(list []Upward) (out []string) {
	for _, u := range list {
		out = append(out, u.File+" "+u.From+" "+u.Symbol)
	}
	return out
}

// Every way to name a function or variable of a higher layer is found, with the function that does it; none is found that is not there.
func TestUpwardReferencesAreFound(t *testing.T) {
	dir := project(t, small)
	r := check(t, dir)
	want := []string{
		"high.c high exported",
		"left.c aside right",
		"low.c address left",
		"low.c by_header count",
		"low.c by_header high",
		"low.c helper high",
		"low.c read_count count",
		"low.c table high",
	}
	if got := keys(r.Upward); !slices.Equal(got, want) {
		t.Errorf("upwards:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(r.Unplaced) > 0 || len(r.Gone) > 0 {
		t.Errorf("without a row: %v; rows for nothing: %v", r.Unplaced, r.Gone)
	}
	if want := [][]string{{"high.c", "left.c", "low.c", "right.c"}}; !reflect.DeepEqual(r.Circles, want) {
		t.Errorf("circles %v, want %v", r.Circles, want)
	}
	if text := r.Upward[5].Explain(); !strings.Contains(text, "low.c: helper names high of high.c: upwards, from layer low to layer high") {
		t.Error(text)
	}
}

// What is compiled anew is found at once, also when only a header has changed; a file without a row is named, and a row without a symbol.
func TestChangesAreFound(t *testing.T) {
	dir := project(t, small)
	before := len(check(t, dir).Upward)
	change := func(name, old, by string) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), old) {
			t.Fatalf("%s: no %q (%v)", name, old, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(string(text), old, by, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	change("right.c", "low();", "low(), high(3);")
	if r := check(t, dir); len(r.Upward) != before+1 || !slices.Contains(keys(r.Upward), "right.c right high") {
		t.Errorf("after a change of right.c: %v", keys(r.Upward))
	}
	change("all.h", "if (count) high(1);", "low();")
	if r := check(t, dir); len(r.Upward) != before-1 {
		t.Errorf("after a change of all.h: %v", keys(r.Upward))
	}
	change("files.tsv", "right.c\tright\t\n", "")
	change("symbols.tsv", "state", "stage")
	if r := check(t, dir); !slices.Equal(r.Unplaced, []string{"right.c"}) || !slices.Equal(r.Gone, []string{"stage (symbols.tsv)"}) {
		t.Errorf("without a row: %v; rows for nothing: %v", r.Unplaced, r.Gone)
	}
	change("files.tsv", "left.c\tleft", "left.c\tlift")
	if _, err := ReadTables(dir); err == nil || !strings.Contains(err.Error(), `"lift" is no layer`) {
		t.Errorf("an unknown layer: %v", err)
	}
}

// Layers of one level that name each other have said so.
func TestLayersOfOneLevel(t *testing.T) {
	tables, err := ReadTables(project(t, small))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		ok       bool
	}{{"low", "low", true}, {"high", "low", true}, {"low", "high", false}, {"left", "right", false}, {"front", "back", true}, {"back", "high", true}, {"high", "back", false}} {
		if tables.allows(c.from, c.to) != c.ok {
			t.Errorf("%s may name %s: %v", c.from, c.to, !c.ok)
		}
	}
}

// The allowance says what is new, what has gone, and what lies elsewhere now; written anew it has lost what has gone, and gained nothing.
func TestAllowance(t *testing.T) {
	r := &Report{Upward: []Upward{
		{"a.c", "f", "x", "h.c", "low", "high"},
		{"b.c", "g", "y", "h.c", "low", "high"},
		{"c.c", "new", "x", "h.c", "low", "high"},
	}}
	name := filepath.Join(project(t, map[string]string{"allowance.tsv": "# head\na.c\tf\tx\tpeers\nold.c\tg\ty\troom\na.c\tover\tz\tdeaths\n"}), "allowance.tsv")
	read := func() []Allowed {
		list, err := ReadAllowance(name)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	d := r.Compare(read())
	if !slices.Equal(keys(d.New), []string{"c.c new x"}) || !slices.Equal(keys(d.Moved), []string{"b.c g y"}) ||
		len(d.Gone) != 1 || d.Gone[0].From != "over" {
		t.Errorf("new %v, moved %v, gone %v", keys(d.New), keys(d.Moved), d.Gone)
	}
	if err := d.Write(name); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(name); string(text) != "# head\na.c\tf\tx\tpeers\nb.c\tg\ty\troom\n" {
		t.Errorf("written:\n%s", text)
	}
	if d := r.Compare(read()); len(d.New) != 1 || len(d.Gone) != 0 || len(d.Moved) != 0 {
		t.Errorf("after writing: new %v, moved %v, gone %v", d.New, d.Moved, d.Gone)
	}
}

// A ceiling sinks and does not rise, and what is longer than it is found.
func TestCeilings(t *testing.T) {
	long := strings.Repeat("x", 120)
	dir := project(t, map[string]string{
		"budgets.tsv": "# head\nbase\t10\t\tlines\nC\t9\t5\tall\nlongest line\t200\t100\tcharacters\nlongest file\t3\t\tlines\nGo\t-\t\tlines\n", "layers.tsv": "base\t0\t\t\n",
		"symbols.tsv": "", "files.tsv": "capi/dataplane/a.c\tbase\t\ncapi/dataplane/b.h\tbase\t\n",
		"capi/dataplane/a.c": "1\n2\n3\n4\n5\n6\n7\n", "capi/dataplane/b.h": "/* " + long + " */\n", "capi/dataplane/zz_c.c": "1\n", "capi/bodies/x.md": "1\n", "capi/boundary/x.md": "1\n", "capi/abi/x.md": "1\n",
		"capi/a.go": "package a\n\nimport _ \"m/core/b\"\n\n//export oneOfUs\n", "capi/a_test.go": "package a\n", "core/b/b.go": "package b\n", "core/b/zz_b.go": "package b\n", "core/c/c.go": "package c\n",
	})
	tables, err := ReadTables(dir)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := Sources(dir)
	if err != nil {
		t.Fatal(err)
	}
	goLines, err := GoLines(dir, "m")
	if err != nil || goLines != 6 {
		t.Errorf("%d lines of Go, want 6: capi and what it imports (%v)", goLines, err)
	}
	if exports, err := Exports(dir); err != nil || !slices.Equal(exports, []string{"oneOfUs"}) {
		t.Errorf("exports %v (%v)", exports, err)
	}
	sizes, notes := tables.Sizes(sources, goLines, &Report{})
	for name, want := range map[string]int{"base": 8, "base to rma": 8, "C": 8, "longest file": 7, "longest line": 126, "circle": 0, "Go": 6} {
		if sizes[name] != want {
			t.Errorf("%s: %d, want %d", name, sizes[name], want)
		}
	}
	beside := []string{"capi/a/x.c", "capi/a/y.c", "capi/a/z.c"}
	for _, c := range []struct {
		circles      [][]string
		all, folders int
	}{{[][]string{beside}, 3, 0}, {[][]string{beside, {"capi/a/w.c", "capi/b/w.c"}}, 3, 2}} {
		sizes, _ := tables.Sizes(sources, goLines, &Report{Circles: c.circles})
		if sizes["circle"] != c.all || sizes["circle, folders"] != c.folders {
			t.Errorf("%v: a circle of %d, over folders of %d", c.circles, sizes["circle"], sizes["circle, folders"])
		}
	}
	if notes["longest line"] != "capi/dataplane/b.h" || notes["longest file"] != "capi/dataplane/a.c" {
		t.Errorf("notes %v", notes)
	}
	budgets, err := ReadBudgets(dir + "/budgets.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var over []string
	for _, b := range budgets {
		if b.Over(sizes[b.Name]) {
			over = append(over, b.Name)
		}
	}
	if !slices.Equal(over, []string{"longest file"}) {
		t.Errorf("above their ceilings: %v", over)
	}
	if err := tables.Shrink(dir+"/budgets.tsv", budgets, sizes); err != nil {
		t.Fatal(err)
	}
	want := "# head\nbase\t8\t\tlines\nC\t8\t5\tall\nlongest line\t126\t100\tcharacters\nlongest file\t3\t\tlines\nGo\t-\t\tlines\n"
	if text, _ := os.ReadFile(dir + "/budgets.tsv"); string(text) != want {
		t.Errorf("written:\n%s", text)
	}

	// Lines move from one layer to another, and not more than that.
	tables.Layers["top"] = Layer{Name: "top", Level: 10}
	two := []Budget{{"base", 10, "", ""}, {"top", 10, "", ""}, {"C", 20, "", ""}}
	for _, c := range []struct {
		base, top int
		want      string
	}{{4, 15, "base\t4\t\t\ntop\t15\t\t\nC\t19\t\t\n"}, {4, 17, "base\t4\t\t\ntop\t10\t\t\nC\t20\t\t\n"}} {
		if err := tables.Shrink(dir+"/moved.tsv", two, map[string]int{"base": c.base, "top": c.top, "C": c.base + c.top}); err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(dir + "/moved.tsv"); string(text) != c.want {
			t.Errorf("with %d and %d lines written:\n%s", c.base, c.top, text)
		}
	}
}

// A way is found through static functions, tables and functions of headers, and none where there is none.
func TestReach(t *testing.T) {
	dir := project(t, map[string]string{
		"all.h": "extern int count;\nvoid wait_for(void), entry(void), table_user(void), quiet(void), far(void);\nstatic inline void by_header(void) { wait_for(); }",
		"a.c":   "#include \"all.h\"\nstatic void helper(void) { far(); }\nvoid entry(void) { helper(); }\nstatic void (*const table[])(void) = {quiet, far};\nvoid table_user(void) { table[count](); }\nvoid quiet(void) {}",
		"b.c":   "#include \"all.h\"\nstatic void helper(void) { by_header(); }\nvoid far(void) { helper(); }\nvoid wait_for(void) {}\nint count;",
	})
	objects, err := Program{Root: dir, CC: "gcc", Include: []string{"."}}.Compile([]string{"a.c", "b.c"})
	if err != nil {
		t.Fatal(err)
	}
	r := NewReach(objects)
	for from, want := range map[string][]string{
		"entry":      {"entry", "helper", "far", "helper", "by_header", "wait_for"},
		"table_user": {"table_user", "table", "far", "helper", "by_header", "wait_for"},
		"quiet":      nil,
	} {
		if got := r.Path(from, "wait_for"); !slices.Equal(got, want) {
			t.Errorf("from %s: %v, want %v", from, got, want)
		}
	}
	if got := r.Path("entry", "wait_for", "far"); got != nil {
		t.Errorf("not through far: %v", got)
	}
}
