package boundary

import (
	"bytes"
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/launch/cpus"
	"libspx/tests/harness"
)

// record accepts a deliberate change of what the short paths cost, or notes what they cost with another compiler: docs/layers.md.
var record = flag.Bool("record", false, "TestInstructions writes down the instructions of the short paths as they are now")

// recorded has the instructions of each path by compiler; recordedHere those with compilers that it does not have, in the build folder.
const recorded, recordedHere = "testdata/instructions.tsv", "obj/instructions.tsv"

// tolerance is how much longer a path may be than recorded: 1/tolerance of it. What a compiler makes of code beside it may cost an instruction.
const tolerance = 50

// kernels are the functions of reductions, of which the processor's abilities choose one.
var kernels = regexp.MustCompile(`^(avx512|avx2|base)_`)

// path is what one short path has cost.
type path struct {
	name        string
	count       int // instructions, without those of kernels
	usual, most int // the median and the maximum, kernels included
	functions   map[string]int
}

// TestInstructions counts the instructions of the short paths when nothing is waited for, and compares with what is recorded for the same compiler. A count
// is not noisy as a time is: one instruction more is one more in the code.
func TestInstructions(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("testdata/steps.c steps by the trap flag of x86-64, not on %s", runtime.GOARCH)
	}
	library := filepath.Join(harness.Build(t), "lib/libspx.so")
	compiler, symbols := readLibrary(t, library)
	if cpus.Usable() < 2 {
		compiler += ", ranks outnumber processors" // they take turns then, which is other code
	}
	paths := countPaths(t, symbols)
	if testing.Verbose() {
		for _, p := range paths {
			t.Log(p.text())
		}
	}
	here := filepath.Join(harness.Build(t), recordedHere)
	shared, local := readRecords(t, recorded), readRecords(t, here)
	if *record {
		name, table := here, local
		if shared.has(compiler) || len(shared) == 0 {
			name, table = recorded, shared
		}
		for _, p := range paths {
			table[key{compiler, p.name}] = p.count
		}
		table.write(t, name)
		t.Logf("recorded in %s", name)
		return
	}
	table := shared
	if !shared.has(compiler) {
		if table = local; !local.has(compiler) {
			t.Skipf("nothing is recorded for %s, only for\n%s\nTo compare before and after a change on this machine: before it, "+
				"go test ./tests/boundary -run TestInstructions -record (into %s)", compiler, strings.Join(shared.compilers(), "\n"), here)
		}
	}
	for _, p := range paths {
		if wrong, note := table.judge(compiler, p); wrong != "" {
			t.Errorf("%s\n%s", wrong, p.text())
		} else if note != "" {
			t.Log(note)
		}
	}
}

// key of a record: what a path costs depends on the compiler and its options.
type key struct{ compiler, path string }

type records map[key]int

func (r records) has(compiler string) bool {
	for k := range r {
		if k.compiler == compiler {
			return true
		}
	}
	return false
}

func (r records) compilers() (list []string) {
	for k := range r {
		if !slices.Contains(list, k.compiler) {
			list = append(list, k.compiler)
		}
	}
	slices.Sort(list)
	return list
}

// judge says what is wrong with what a path costs now; or what is worth knowing about it.
func (r records) judge(compiler string, p path) (wrong, note string) {
	was, ok := r[key{compiler, p.name}]
	switch {
	case !ok:
		return fmt.Sprintf("%s: %d instructions, and nothing is recorded: go test ./tests/boundary -run TestInstructions -record", p.name, p.count), ""
	case p.count*tolerance > was*(tolerance+1):
		return fmt.Sprintf("%s: %d instructions, %d were recorded: %+.1f %%, more than %d %%. If that is what the change is worth, "+
			"go test ./tests/boundary -run TestInstructions -record, and say in the commit's message what for (docs/layers.md)",
			p.name, p.count, was, 100*float64(p.count-was)/float64(was), 100/tolerance), ""
	case p.count*tolerance < was*(tolerance-1):
		return "", fmt.Sprintf("%s: %d instructions, %d were recorded: keep what was gained by go test ./tests/boundary -run TestInstructions -record", p.name, p.count, was)
	}
	return "", ""
}

func readRecords(t *testing.T, name string) records {
	t.Helper()
	r := records{}
	text, err := os.ReadFile(name)
	if err != nil {
		return r
	}
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 3 {
			t.Fatalf("%s:%d: not path, instructions, compiler between tabs", name, n+1)
		}
		count, err := strconv.Atoi(cells[1])
		if err != nil {
			t.Fatalf("%s:%d: %v", name, n+1, err)
		}
		r[key{cells[2], cells[0]}] = count
	}
	return r
}

func (r records) write(t *testing.T, name string) {
	t.Helper()
	var out strings.Builder
	out.WriteString("# Instructions of the short paths in the library when nothing is waited for, by what the library was compiled with: TestInstructions, docs/layers.md\n# path\tinstructions\tcompiler\n")
	byCompiler := func(a, b key) int {
		return cmp.Or(cmp.Compare(a.compiler, b.compiler), cmp.Compare(a.path, b.path))
	}
	for _, k := range slices.SortedFunc(maps.Keys(r), byCompiler) {
		fmt.Fprintf(&out, "%s\t%d\t%s\n", k.path, r[k], k.compiler)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(out.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// readLibrary returns with what compiler and options the library's C code was made, as its debug information says, and its functions by address.
func readLibrary(t *testing.T, name string) (compiler string, functions []elf.Symbol) {
	t.Helper()
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Skipf("%s: %v: a library without symbols does not say what it was made with", name, err)
	}
	var send uint64
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
			functions = append(functions, s)
			if s.Name == "spx_send" {
				send = s.Value
			}
		}
	}
	slices.SortFunc(functions, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	d, err := f.DWARF()
	if err != nil {
		t.Skipf("%s: %v: a library without debug information does not say what it was made with", name, err)
	}
	unit, err := d.Reader().SeekPC(send)
	if err != nil {
		t.Skipf("%s: nothing about spx_send in the debug information: %v", name, err)
	}
	compiler, _ = unit.Val(dwarf.AttrProducer).(string)
	return compiler, functions
}

// countPaths runs the program that counts, and finds out which functions the instructions are in.
func countPaths(t *testing.T, functions []elf.Symbol) (list []path) {
	t.Helper()
	dir := t.TempDir()
	turns, output := filepath.Join(dir, "turns"), filepath.Join(dir, "output")
	if err := os.WriteFile(turns, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	o := harness.Run(t, harness.Command{
		Args: harness.Spxrun(t, "2", compile(t, "steps"), turns, output),
		// The rank that waits polls for as long as it takes: one that has gone to sleep would have to be woken up.
		Env:   []string{"SPX_TUNING=none", "SPX_SPIN=4294967295", "SPX_SPIN_BUSY=4294967295"},
		Limit: time.Minute,
	})
	if o.Status != 0 {
		t.Fatalf("status %d\n%s", o.Status, o.Text())
	}
	var text []byte
	for _, rank := range []string{".0", ".1"} {
		part, err := os.ReadFile(output + rank)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part...)
	}
	list, err := parsePaths(text, functions)
	if err != nil || len(list) != 6 {
		t.Fatalf("%d of 6 paths (%v)\n%s", len(list), err, text)
	}
	return list
}

// parsePaths reads what steps.c prints.
func parsePaths(text []byte, functions []elf.Symbol) (list []path, err error) {
	at := map[string]int{}
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		switch {
		case len(words) == 6 && words[0] == "path":
			p := path{name: words[1], functions: map[string]int{}}
			if p.usual, err = strconv.Atoi(words[4]); err != nil {
				return nil, err
			}
			if p.most, err = strconv.Atoi(words[5]); err != nil {
				return nil, err
			}
			at[p.name] = len(list)
			list = append(list, p)
		case len(words) == 4 && words[0] == "at":
			n, ok := at[words[1]]
			if !ok {
				return nil, fmt.Errorf("an address of %q, before the path", words[1])
			}
			offset, err := strconv.ParseUint(words[2], 16, 64)
			if err != nil {
				return nil, err
			}
			times, err := strconv.Atoi(words[3])
			if err != nil {
				return nil, err
			}
			name := functionAt(functions, offset)
			list[n].functions[name] += times
			if !kernels.MatchString(name) {
				list[n].count += times
			}
		}
	}
	slices.SortFunc(list, func(a, b path) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

func functionAt(functions []elf.Symbol, offset uint64) string {
	n, _ := slices.BinarySearchFunc(functions, offset+1, func(s elf.Symbol, at uint64) int { return cmp.Compare(s.Value, at) })
	if n == 0 || offset >= functions[n-1].Value+max(functions[n-1].Size, 1) {
		return "elsewhere" // tables of the linker
	}
	return functions[n-1].Name
}

// text tells what a path costs, and where.
func (p path) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %d instructions (usually %d, at most %d)", p.name, p.count, p.usual, p.most)
	for _, name := range slices.SortedFunc(maps.Keys(p.functions), func(a, b string) int {
		return cmp.Or(p.functions[b]-p.functions[a], cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&out, "\n%9d  %s", p.functions[name], name)
	}
	return out.String()
}

// What counts as too many instructions: from +2 % on, for this compiler alone; kernels do not count, and addresses go to the right functions.
func TestInstructionsAreJudged(t *testing.T) {
	functions := []elf.Symbol{{Name: "spx_send", Value: 0x100, Size: 0x20}, {Name: "avx2_sum", Value: 0x120, Size: 0x10}, {Name: "spx_wait", Value: 0x140, Size: 0x10}}
	list, err := parsePaths([]byte("path send 15 7 9 12\nat send 100 2\nat send 11f 1\nat send 120 5\nat send 14f 1\nat send 150 1\nat send 90 1\n"), functions)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if want := map[string]int{"spx_send": 3, "avx2_sum": 5, "spx_wait": 1, "elsewhere": 2}; !maps.Equal(list[0].functions, want) || list[0].count != 6 {
		t.Errorf("%d instructions in %v, want 6 in %v", list[0].count, list[0].functions, want)
	}
	if _, err := parsePaths([]byte("at send 100 2\n"), functions); err == nil {
		t.Error("an address without its path is no error")
	}

	r := records{{"gcc 12", "send"}: 200, {"gcc 12", "receive"}: 100}
	for _, c := range []struct {
		path            string
		count           int
		isWrong, isNote bool
	}{{"send", 200, false, false}, {"send", 204, false, false}, {"send", 205, true, false}, {"send", 206, true, false}, {"receive", 103, true, false},
		{"send", 196, false, false}, {"send", 195, false, true}, {"barrier", 10, true, false}} {
		wrong, note := r.judge("gcc 12", path{name: c.path, count: c.count})
		if (wrong != "") != c.isWrong || (note != "") != c.isNote {
			t.Errorf("%s with %d instructions: %q, %q", c.path, c.count, wrong, note)
		}
		if c.isWrong && !strings.Contains(wrong, strconv.Itoa(c.count)) {
			t.Errorf("%q does not say how many", wrong)
		}
	}
	if !r.has("gcc 12") || r.has("gcc 13") {
		t.Error("which compilers are known")
	}
	name := filepath.Join(t.TempDir(), "x/instructions.tsv")
	r.write(t, name)
	if again := readRecords(t, name); !maps.Equal(r, again) {
		t.Errorf("read %v, written %v", again, r)
	}
}
