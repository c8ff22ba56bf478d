package layers

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Layer is a row of layers.tsv. Code of a layer may name what lies in the same layer and in layers of a lower level; layers of one
// level do not know each other, unless Also says so.
type Layer struct {
	Name  string
	Level int
	Also  []string // further layers that it may name
}

// Tables are the layers, and what lies in which.
type Tables struct {
	Layers  map[string]Layer
	Order   []string          // names, as the table has them
	Files   map[string]string // file of capi/, with its folder -> layer
	Symbols map[string]string // function or variable that belongs to another layer than the file that defines it -> layer
}

// Allowed is a row of allowance.tsv: a reference that points upwards and has not been removed yet.
type Allowed struct {
	File, From, Symbol string
	Family             string // which hooks will remove it: docs/layers.md
}

func (a Allowed) row() string {
	return strings.Join([]string{a.File, a.From, a.Symbol, a.Family}, "\t")
}

// Families of hooks by which the references of the allowance go, and what is no hook: see docs/layers.md.
var Families = []string{"progress", "records", "room", "network", "deaths", "peers", "long-data", "sleeper", "other-way", "attach", "place"}

// rows are the lines of a table with that many columns, without comments.
func rows(name string, columns int) ([][]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var list [][]string
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != columns {
			return nil, fmt.Errorf("%s:%d: %d columns, not %d, between tabs", name, n+1, len(cells), columns)
		}
		list = append(list, cells)
	}
	return list, nil
}

// ReadTables reads layers.tsv, files.tsv and symbols.tsv of the folder.
func ReadTables(dir string) (*Tables, error) {
	t := &Tables{Layers: map[string]Layer{}, Files: map[string]string{}, Symbols: map[string]string{}}
	list, err := rows(dir+"/layers.tsv", 4)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		level, err := strconv.Atoi(r[1])
		if err != nil {
			return nil, fmt.Errorf("layers.tsv: %s: level %q is not a number", r[0], r[1])
		}
		t.Layers[r[0]] = Layer{r[0], level, strings.Fields(r[2])}
		t.Order = append(t.Order, r[0])
	}
	for _, l := range t.Layers {
		for _, also := range l.Also {
			if _, ok := t.Layers[also]; !ok {
				return nil, fmt.Errorf("layers.tsv: %s may name %q, which is no layer", l.Name, also)
			}
		}
	}
	for file, into := range map[string]map[string]string{"files.tsv": t.Files, "symbols.tsv": t.Symbols} {
		list, err := rows(dir+"/"+file, 3)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if _, ok := t.Layers[r[1]]; !ok {
				return nil, fmt.Errorf("%s: %s: %q is no layer of layers.tsv", file, r[0], r[1])
			}
			if _, ok := into[r[0]]; ok {
				return nil, fmt.Errorf("%s: %s has two rows", file, r[0])
			}
			if file == "symbols.tsv" && r[2] == "" {
				return nil, fmt.Errorf("%s: %s: no reason", file, r[0])
			}
			into[r[0]] = r[1]
		}
	}
	return t, nil
}

// ReadAllowance reads allowance.tsv.
func ReadAllowance(name string) (list []Allowed, err error) {
	table, err := rows(name, 4)
	for _, r := range table {
		list = append(list, Allowed{r[0], r[1], r[2], r[3]})
	}
	return list, err
}

// allows says whether code of one layer may name what lies in the other.
func (t *Tables) allows(from, to string) bool {
	if from == to || t.Layers[to].Level < t.Layers[from].Level {
		return true
	}
	for _, also := range t.Layers[from].Also {
		if also == to {
			return true
		}
	}
	return false
}

// FilesFor are the files of a layer, and of those below it; sorted.
func (t *Tables) FilesFor(layer string) (list []string) {
	for file, of := range t.Files {
		if of == layer || t.Layers[of].Level < t.Layers[layer].Level {
			list = append(list, file)
		}
	}
	slices.Sort(list)
	return list
}

// head is the comment with which a table begins.
func head(name string) string {
	text, _ := os.ReadFile(name)
	var out strings.Builder
	for _, line := range strings.SplitAfter(string(text), "\n") {
		if !strings.HasPrefix(line, "#") {
			break
		}
		out.WriteString(line)
	}
	return out.String()
}
