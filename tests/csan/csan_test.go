// Package csan builds and runs the tests of the C parts alone, without Go and without a launcher, under the address,
// undefined-behaviour and thread sanitizers. A test is a program NAME.c in the folder test of a layer that returns 0 when all
// is well. It is linked with the files of that layer and of those below it (docs/layers.md), and with nothing else:
// what they register with layers above is left empty, or played by the test. Comments at its beginning say how it is built:
//
//	// sanitize: address,undefined thread      one build for each word (default: these two); plain: none, at -O2
//	// layer: relay                            the layer it is linked with, where that is not its folder's
//	// flags: -lm -DX=1                        more compiler flags; those with -l and -Wl, are the linker's
//	// timeout: 60                             seconds (default 60)
package csan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"os/exec"

	"libspx/internal/csource"
	"libspx/tests/harness"
	layering "libspx/tests/lint/layers"
)

// TestC has a subtest for each program and sanitizer:
//
//	go test ./tests/csan -run 'TestC/pack/thread'
func TestC(t *testing.T) {
	programs := find(t)
	made := &objects{dir: t.TempDir(), of: map[string]*object{}}
	for _, path := range programs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".c"), func(t *testing.T) {
			t.Parallel()
			p := read(t, path)
			for _, set := range p.sanitizers {
				t.Run(set, func(t *testing.T) { p.run(t, set, made) })
			}
		})
	}
}

// find are the test programs: below the folder of each layer, in test/.
func find(t *testing.T) (programs []string) {
	t.Helper()
	folders, err := csource.Folders(harness.Root())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		list, err := filepath.Glob(filepath.Join(harness.Root(), folder, "test", "*.c"))
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, list...)
	}
	if len(programs) == 0 {
		t.Fatalf("no test programs below %s", strings.Join(csource.Roots, ", "))
	}
	return programs
}

type program struct {
	path       string
	layer      string
	sanitizers []string
	flags      []string
	limit      time.Duration
}

func read(t *testing.T, path string) program {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := program{path: path, layer: layerOf(path), sanitizers: []string{"address,undefined", "thread"}, limit: time.Minute}
	for _, line := range strings.Split(string(text), "\n") {
		key, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "// "), ":")
		words := strings.Fields(value)
		switch {
		case !strings.HasPrefix(strings.TrimSpace(line), "// "):
		case key == "sanitize":
			p.sanitizers = words
		case key == "layer":
			p.layer = strings.TrimSpace(value)
		case key == "flags":
			p.flags = words
		case key == "timeout":
			s, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatalf("%s: timeout: %v", path, err)
			}
			p.limit = time.Duration(s) * time.Second
		}
	}
	if os.Getenv("SPX_RECORDS") != "" { // make fuzz-records
		p.limit = 48 * time.Hour
	}
	return p
}

// layerOf is the layer of the folder above the test's; of capi/dataplane itself it is the one that names all others there.
func layerOf(path string) string {
	name := filepath.Base(filepath.Dir(filepath.Dir(path)))
	if name == "dataplane" {
		return "attach"
	}
	return name
}

// below are the C files of a layer and of those below it.
var below = sync.OnceValue(func() func(layer string) ([]string, error) {
	tables, err := layering.ReadTables(filepath.Join(harness.Root(), "tests/lint/layers"))
	return func(layer string) ([]string, error) {
		if err != nil {
			return nil, err
		}
		list := tables.FilesFor(layer)
		if len(list) == 0 {
			return nil, fmt.Errorf("%q is no layer of tests/lint/layers/layers.tsv", layer)
		}
		return slices.DeleteFunc(list, func(file string) bool { return filepath.Ext(file) != ".c" }), nil
	}
})

// objects are the compiled sources, which programs have in common.
type objects struct {
	dir string
	mu  sync.Mutex
	of  map[string]*object // by the compiler's arguments
}

type object struct {
	once sync.Once
	path string
	err  error
}

// compile makes an object of a source, unless there is one.
func (o *objects) compile(args ...string) (string, error) {
	key := strings.Join(args, " ")
	o.mu.Lock()
	made := o.of[key]
	if made == nil {
		made = &object{path: filepath.Join(o.dir, fmt.Sprintf("%d.o", len(o.of)))}
		o.of[key] = made
	}
	o.mu.Unlock()
	made.once.Do(func() {
		if out, err := exec.Command("gcc", append(args, "-c", "-o", made.path)...).CombinedOutput(); err != nil {
			made.err = fmt.Errorf("gcc %s -c\n%w\n%s", key, err, out)
		}
	})
	return made.path, made.err
}

// archive makes one of the objects of a layer and of those below it, unless there is one. A program
// that defines a function itself, to play a part, gets that instead of the file that has it.
func (o *objects) archive(layer string, args []string) (string, error) {
	key := layer + " " + strings.Join(args, " ")
	o.mu.Lock()
	made := o.of[key]
	if made == nil {
		made = &object{path: filepath.Join(o.dir, fmt.Sprintf("lib%d.a", len(o.of)))}
		o.of[key] = made
	}
	o.mu.Unlock()
	made.once.Do(func() { made.err = o.pack(made.path, layer, args) })
	return made.path, made.err
}

func (o *objects) pack(name, layer string, args []string) error {
	files, err := below()(layer)
	if err != nil {
		return err
	}
	command := []string{"rcs", name}
	for _, file := range files {
		path, err := o.compile(append(args[:len(args):len(args)], filepath.Join(harness.Root(), file))...)
		if err != nil {
			return err
		}
		command = append(command, path)
	}
	if out, err := exec.Command("ar", command...).CombinedOutput(); err != nil {
		return fmt.Errorf("ar %s\n%w\n%s", strings.Join(command, " "), err, out)
	}
	return nil
}

// quickLinker is gold, where it is installed: it takes half as long as the usual one for programs with sanitizers.
var quickLinker = sync.OnceValue(func() []string {
	if _, err := exec.LookPath("ld.gold"); err != nil {
		return nil
	}
	return []string{"-fuse-ld=gold"}
})

func (p program) run(t *testing.T, set string, made *objects) {
	root := harness.Root()
	linking := func(flag string) bool { return strings.HasPrefix(flag, "-l") || strings.HasPrefix(flag, "-Wl,") }
	compiling := slices.DeleteFunc(slices.Clone(p.flags), linking)
	program := filepath.Join(t.TempDir(), "test")
	args := []string{"-std=gnu11", "-g1", "-fno-omit-frame-pointer", "-fno-strict-aliasing", "-pthread", "-Wall", "-Wextra",
		"-I" + root + "/include", "-I" + root + "/capi/dataplane/test"}
	if set == "plain" {
		args = append(args, "-O2")
	} else {
		args = append(args, "-O1", "-fsanitize="+set, "-fno-sanitize-recover=all")
	}
	folders, err := csource.Folders(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		args = append(args, "-I"+root+"/"+folder)
	}
	args = append(args, compiling...)
	test, err := made.compile(append(args[:len(args):len(args)], p.path)...)
	if err != nil {
		t.Fatal(err)
	}
	library, err := made.archive(p.layer, args)
	if err != nil {
		t.Fatal(err)
	}
	args = slices.Concat(args, quickLinker(), []string{"-o", program, test, library}, p.flags)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s\n%v\n%s", strings.Join(args, " "), err, out)
	}
	o := harness.Start(t, harness.Command{Args: []string{program}, Limit: p.limit, Dir: t.TempDir(), Env: []string{
		"ASAN_OPTIONS=detect_leaks=1:abort_on_error=0", "UBSAN_OPTIONS=print_stacktrace=1", "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"}})
	t.Logf("%.2f s of processors", o.Busy.Seconds())
	if o.Late || o.Status != 0 {
		why := fmt.Sprintf("exit status %d", o.Status)
		if o.Late {
			why = fmt.Sprintf("no end after %v", p.limit)
		}
		t.Errorf("%s\n%s--- again: go test ./tests/csan -count=1 -run '%s'", why, o.Text(), t.Name())
	}
	if os.Getenv("SPX_RECORDS") != "" {
		t.Log(o.Text())
	}
}
