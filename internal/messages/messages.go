// Package messages finds every text that libspx has for a user when something is wrong: the errors that its C and Go parts raise, and
// what its programs say. It owns the page docs/messages.md, which lists them by MPI error class (MPI-5.0, 10.4), and the rules that
// the texts keep. It reads sources only: nothing of libspx is run, and nothing is found that a source does not spell out.
package messages

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"libspx/internal/csource"
)

//go:generate go run ./gen ../.. ../../docs/messages.md

// A Text is one message with placeholders as <name>, and the place that says it.
type Text struct {
	Class string // the error class ("MPI_ERR_RANK"), or "" for what has none
	Words string
	File  string // from the repository's root
	In    string // the function: MPI_X where it is the body of one
}

// Part is the heading under which texts without a class stand.
func (t Text) Part() string {
	for _, p := range parts {
		for _, dir := range p.dirs {
			if strings.HasPrefix(t.File, dir) {
				return p.title
			}
		}
	}
	return parts[len(parts)-1].title
}

// Folders whose texts users see, by the program that says them.
var parts = []struct {
	title, about string
	dirs         []string
}{
	{"What a job's launcher says of its processes", "spxrun and its agents say these of deaths, hangs and ends; the lines begin with `spxrun:`.", []string{"launch/job/", "core/diagnose/"}},
	{"spxrun: its command line", "Exit status 2; nothing was started. `spxrun --help` lists the options.", []string{"launch/command/", "launch/front/", "launch/hosts/", "launch/cpus/"}},
	{"Systems of clusters", "Mistakes in the file of a system, with line and column. See [systems](systems.md).", []string{"cluster/", "launch/system/"}},
	{"Agents of the hosts", "The agents start the processes, and answer their questions. See [running](running.md) and [clusters](clusters.md).", []string{"launch/agent/", "launch/control/", "launch/service/", "launch/output/", "launch/process/", "shm/"}},
	{"Other launchers", "What is wrong between libspx and srun, mpiexec, mpirun or prterun, under which a program was started. See [clusters](clusters.md).", []string{"launch/pmi/"}},
	{"spxctl, and what it asks of a job", "See [diagnosis](diagnosis.md), [live](live.md) and [malleability](malleability.md).", []string{"cmd/spxctl/", "launch/inspect/", "launch/live/", "launch/steer/", "launch/probe/", "launch/trace/", "launch/mpir/", "launch/progress/"}},
	{"Parts of the engine", "Reasons that stand in errors of several classes (mostly MPI_ERR_INTERN and MPI_ERR_OTHER), and warnings of processes.", nil},
}

var folders = []string{"capi", "ckpt", "cluster", "cmd", "core", "ft", "io", "launch", "mcast", "net", "shm"}

// Collect finds the texts in the sources below root.
func Collect(root string) ([]Text, error) {
	var all []Text
	consts, err := constants(root)
	if err != nil {
		return nil, err
	}
	err = each(root, func(path string, text []byte) error {
		var more []Text
		var err error
		if strings.HasSuffix(path, ".go") {
			more, err = inGo(path, text, consts)
		} else {
			more = inC(path, string(text))
		}
		all = append(all, more...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if all, err = resolved(root, all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Text) int {
		return cmp.Or(strings.Compare(a.Words, b.Words), strings.Compare(a.File, b.File), strings.Compare(a.In, b.In))
	})
	return slices.Compact(all), err
}

// resolved puts the classes that functions are given in place: one text for each of them.
func resolved(root string, all []Text) (out []Text, err error) {
	var sources []string
	names, err := csource.Files(root, ".c")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		sources = append(sources, string(text))
	}
	known := map[string][]string{}
	for _, t := range all {
		function, ok := strings.CutPrefix(t.Class, given)
		if !ok {
			out = append(out, t)
			continue
		}
		if _, there := known[function]; !there {
			known[function] = givenClasses(function, sources)
		}
		t.Class = ""
		if len(known[function]) == 0 {
			out = append(out, t)
		}
		for _, c := range known[function] {
			t.Class = c
			out = append(out, t)
		}
	}
	return out, nil
}

// each calls f for the sources that may have texts: no tests, no generators, no generated files.
func each(root string, f func(path string, text []byte) error) error {
	for _, dir := range folders {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			base := filepath.Base(path)
			if d.IsDir() {
				if base == "test" || base == "testdata" || base == "gen" || base == "layoutgen" || base == "sigpatch" {
					return filepath.SkipDir
				}
				return nil
			}
			ext := filepath.Ext(base)
			if ext != ".go" && ext != ".c" && ext != ".h" || strings.HasPrefix(base, "zz_") || strings.HasSuffix(base, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			return f(filepath.ToSlash(rel), text)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}
