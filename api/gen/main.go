// Command gen writes everything that follows from the tables in api: the public headers, the C shims with their argument
// checks, the dispatch table from C to Go, the linker's version script and the list of symbols.
//
//	go run ./api/gen            writes the files that have changed
//	go run ./api/gen -check     writes nothing, and fails if a file is not as it would be written
//	go run ./api/gen -status    prints the functions that have no body yet; the last line counts them
//
// It finds the bodies by itself, in capi/bodies/*.c, capi/boundary/*.c and capi/*.go (see docs/architecture.md).
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"libspx/api"
)

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	status := flag.Bool("status", false, "print the functions without a body")
	flag.Parse()
	if err := run(*check, *status); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(check, status bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	t, err := api.Load()
	if err != nil {
		return err
	}
	b, err := findBodies(root, t)
	if err != nil {
		return err
	}
	if status {
		printStatus(t, b)
		return nil
	}
	out := outputs(t, b)
	set, err := settings()
	if err != nil {
		return err
	}
	out["capi/dataplane/base/zz_settings.h"] = settingsHeader(set)
	out["capi/dataplane/base/zz_settings.inc"] = settingsTable(set)
	out["docs/settings.md"] = settingsPage(set)
	return writeAll(root, out, check)
}

// outputs makes every generated file: path below the root -> contents.
func outputs(t *api.Tables, b *bodies) map[string][]byte {
	out := headers(t)
	for name, text := range shims(t, b) {
		out[filepath.Join("capi/abi", name)] = text
	}
	out["capi/abi/zz_functions.h"] = functionsHeader(t)
	out["capi/boundary/zz_functions.c"] = functionsNames(t)
	out["launch/inspect/zz_calls.go"] = callNames(t)
	out["capi/abi/zz_bodies.h"] = bodiesHeader(t)
	out["capi/zz_dispatch.go"] = dispatch(t, b)
	out["capi/zz_export.map"] = exportMap(t)
	out["api/zz_symbols.txt"] = symbols(t)
	return out
}

func writeAll(root string, out map[string][]byte, check bool) error {
	var names, stale []string
	for name := range out {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		path := filepath.Join(root, name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, out[name]) {
			continue
		}
		if check {
			stale = append(stale, name)
			continue
		}
		// A new file takes the old one's place in one step: several builds may run at once.
		tmp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
		if err := os.WriteFile(tmp, out[name], 0o644); err != nil {
			return err
		}
		if err := os.Rename(tmp, path); err != nil {
			return err
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("not as generated: %v; run `make generate`", stale)
	}
	return nil
}

// moduleRoot is the nearest folder above that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod in any folder above")
		}
		dir = up
	}
}

// isExtension tells whether a function is none of the standard's 662 (nor of those that MPI-3.0 removed).
func isExtension(f *api.Function) bool {
	return f.Header != "mpi.h" && f.Header != "mpi-legacy.h"
}

// lacking lists the functions without a body: those of the standard, and extensions.
func lacking(t *api.Tables, b *bodies) (standard, extensions []*api.Function) {
	for _, f := range t.Functions {
		switch {
		case b.of(f).where != unwritten:
		case isExtension(f):
			extensions = append(extensions, f)
		default:
			standard = append(standard, f)
		}
	}
	return standard, extensions
}

func printStatus(t *api.Tables, b *bodies) {
	standard, extensions := lacking(t, b)
	count := map[string]int{}
	for _, f := range t.Functions {
		count[f.Header]++
	}
	for _, list := range [][]*api.Function{extensions, standard} {
		for _, f := range list {
			fmt.Printf("%-10s %s\n", f.Chapter, f.Name)
		}
	}
	all := len(t.Functions) - count["mpi.h"] - count["mpi-legacy.h"]
	fmt.Printf("%d functions unwritten of the %d extensions (mpi-ext.h, mpisp.h, ulfm_dyprc.h)\n", len(extensions), all)
	fmt.Printf("%d functions unwritten of the standard's %d (and of %d that it has removed)\n", len(standard), count["mpi.h"], count["mpi-legacy.h"])
}
