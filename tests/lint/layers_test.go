package lint

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"libspx/internal/csource"
	"libspx/tests/harness"
	layering "libspx/tests/lint/layers"
)

// rewrite lets a step of the re-layout note what it has gained. It never allows more than before: that is done by hand, with a reason.
var rewrite = flag.Bool("rewrite", false, "TestLayers and TestBudgets write allowance.tsv and budgets.tsv: what has gone is taken out, ceilings are lowered")

const tables = "layers" // the folder of the tables, beside this test

type code struct {
	tables *layering.Tables
	report *layering.Report
	reach  *layering.Reach
}

// read compiles what has changed of the C code, and compares it with the tables.
var read = sync.OnceValues(func() (code, error) {
	root := harness.Root()
	t, err := layering.ReadTables(tables)
	if err != nil {
		return code{}, err
	}
	sources, err := csource.Files(root, ".c")
	if err != nil {
		return code{}, err
	}
	folders, err := csource.Folders(root)
	if err != nil {
		return code{}, err
	}
	build := cmp.Or(os.Getenv("SPX_BUILD"), filepath.Join(root, "build"))
	program := layering.Program{Root: root, CC: "gcc", Include: append(folders, "include"), Cache: filepath.Join(build, "obj/layers")}
	objects, err := program.Compile(sources)
	if err != nil {
		return code{}, err
	}
	exports, err := layering.Exports(root)
	if err != nil {
		return code{}, err
	}
	outside := map[string]string{}
	for _, name := range exports {
		outside[name] = "engine"
	}
	return code{t, t.Check(objects, outside), layering.NewReach(objects)}, nil
})

func readCode(t *testing.T) code {
	t.Helper()
	harness.Need(t, "build", "gcc")
	c, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every C file has a layer, and functions name only what lies below, but for the references in the allowance, which become fewer.
func TestLayers(t *testing.T) {
	c := readCode(t)
	for _, f := range c.report.Unplaced {
		t.Errorf("%s has no layer: give it a row in tests/lint/layers/files.tsv (docs/layers.md says what lies where)", f)
	}
	for _, name := range c.report.Gone {
		t.Errorf("%s is not there any more: take its row out of tests/lint/layers", name)
	}
	name := filepath.Join(tables, "allowance.tsv")
	allowance, err := layering.ReadAllowance(name)
	if err != nil {
		t.Fatal(err)
	}
	d := c.report.Compare(allowance)
	var lines strings.Builder
	for _, u := range d.New {
		t.Error(u.Explain())
		lines.WriteString(u.File + "\t" + u.From + "\t" + u.Symbol + "\tFAMILY\n")
	}
	if len(d.New) > 0 {
		t.Logf("as rows of the allowance, for the rare case that one must be, by hand and with its family:\n%s", lines.String())
	}
	if *rewrite {
		if err := d.Write(name); err != nil {
			t.Fatal(err)
		}
	} else {
		for _, a := range d.Gone {
			t.Errorf("%s: %s no longer names %s, good: take it out of the allowance, by go test ./tests/lint -run TestLayers -rewrite", a.File, a.From, a.Symbol)
		}
		for _, u := range d.Moved {
			t.Errorf("%s: %s, which names %s, has moved here: go test ./tests/lint -run TestLayers -rewrite", u.File, u.From, u.Symbol)
		}
	}
	families := map[string]int{}
	for _, a := range d.Kept {
		families[a.Family]++
	}
	for family := range families {
		if !slices.Contains(layering.Families, family) {
			t.Errorf("allowance.tsv: %q is none of the families: %s", family, strings.Join(layering.Families, ", "))
		}
	}
	if testing.Verbose() {
		tell(t, c, families)
	}
}

// tell prints what has been found.
func tell(t *testing.T, c code, families map[string]int) {
	t.Helper()
	inside, all := 0, 0
	for layer, n := range c.report.References {
		if all += n; c.tables.Layers[layer].Level < c.tables.Layers["boundary"].Level {
			inside += n
		}
	}
	t.Logf("%d references to other files, %d of them of the data plane; %d point upwards", all, inside, len(c.report.Upward))
	for _, family := range layering.Families {
		t.Logf("%5d  %s", families[family], family)
	}
	for _, circle := range c.report.Circles {
		t.Logf("a circle of %d files: %s", len(circle), strings.Join(circle, " "))
	}
}

// A file lies in the folder of its layer, which says what it owns and what it may call. What becomes Go lies among the bodies until then.
func TestFolders(t *testing.T) {
	c, err := layering.ReadTables(tables)
	if err != nil {
		t.Fatal(err)
	}
	for file, layer := range c.Files {
		folder := filepath.Dir(file)
		if layer == "attach" { // dataplane.c, above all folders
			continue
		}
		if name := strings.Replace(layer, "togo", "bodies", 1); filepath.Base(folder) != name {
			t.Errorf("%s is of layer %s: it belongs into a folder of that name", file, layer)
		}
		if _, err := os.Stat(filepath.Join(harness.Root(), folder, "README.md")); err != nil {
			t.Errorf("%s has no README.md that says what the layer owns and what it may call", folder)
		}
	}
}

// Sizes do not grow: the ceilings are what there was when they were written, and only sink.
func TestBudgets(t *testing.T) {
	c := readCode(t)
	root := harness.Root()
	sources, err := layering.Sources(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if c.tables.Files[s.Path] == "" {
			t.Errorf("%s has no layer: give it a row in tests/lint/layers/files.tsv (docs/layers.md says what lies where)", s.Path)
		}
	}
	for _, f := range c.tables.Missing(root) {
		t.Errorf("%s is not there any more: take its row out of tests/lint/layers/files.tsv", f)
	}
	goLines, err := layering.GoLines(root, "libspx")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(tables, "budgets.tsv")
	budgets, err := layering.ReadBudgets(name)
	if err != nil {
		t.Fatal(err)
	}
	sizes, notes := c.tables.Sizes(sources, goLines, c.report)
	var table strings.Builder
	fmt.Fprintf(&table, "%-14s %7s %7s %7s  %s", "", "now", "ceiling", "target", "what is counted")
	for _, b := range budgets {
		size, ok := sizes[b.Name]
		if !ok && c.tables.Layers[b.Name].Name == "" {
			t.Errorf("budgets.tsv: nothing is counted as %q", b.Name)
		}
		table.WriteString("\n" + b.Line(size, notes[b.Name]))
		if b.Over(size) {
			t.Errorf("%s: %d, more than %d (%s). What has grown elsewhere has to shrink here, or become Go; "+
				"how a ceiling is raised in the rare case that it must be: docs/layers.md", b.Name, size, b.Ceiling, strings.TrimSpace(b.About+" "+notes[b.Name]))
		}
	}
	if testing.Verbose() {
		t.Log(table.String())
	}
	for _, name := range c.tables.Order {
		if sizes[name] > 0 && !layering.Has(budgets, name) {
			t.Errorf("budgets.tsv: no row for layer %s", name)
		}
	}
	if *rewrite {
		if err := c.tables.Shrink(name, budgets, sizes); err != nil {
			t.Fatal(err)
		}
	}
}
