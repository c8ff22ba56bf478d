// Package csan builds and runs the tests of the C parts alone, without Go and without a launcher, under the address,
// undefined-behaviour and thread sanitizers. A test is a program capi/*/test/NAME.c that returns 0 when all is well.
// Comments at its beginning say what it is made of:
//
//	// sources: pack.c basic.c ../shim/x.c     files that are linked with it, relative to the folder above (required; none: "-")
//	// sources: @job @rma                      those of a group of the data plane (below)
//	// sanitize: address,undefined thread      one build for each word (default: these two)
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
)

// TestC has a subtest for each program and sanitizer:
//
//	go test ./tests/csan -run 'TestC/pack/thread'
func TestC(t *testing.T) {
	programs, err := filepath.Glob(filepath.Join(harness.Root(), "capi/*/test/*.c"))
	if err != nil {
		t.Fatal(err)
	}
	if len(programs) == 0 {
		t.Fatal("no test programs in capi/*/test")
	}
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

// groups of files of capi/dataplane that need each other. A file that comes to one of them is named here, not in every test.
var groups = map[string]string{
	"@job": "dataplane.c assert.c segment.c related.c clusters.c replay.c replay_core.c replay_claims.c replay_image.c replay_long.c copies.c copies_core.c net.c net_bell.c net_read.c net_lend.c net_zero.c net_burst.c net_relay.c net_close.c origin.c place.c peers.c settings.c stat.c handles.c ring.c pair.c match.c spare.c p2p.c deliver.c mcast.c mcast_ack.c mcast_arrive.c mcast_chain.c mcast_hand.c mcast_match.c mcast_relay.c mcast_source.c mcast_shelf.c mcast_wire.c file_memory.c available.c get.c pass.c far.c copy.c wait.c poll.c request.c " +
		"lock.c load.c net_long.c net_streams.c diag.c fail.c probe.c bsend.c pack.c pack_runs.c copy_typed.c plan_temp.c basic.c",
	"@reduce": "reduce.c reduce_pair.c reduce_base.c reduce_avx2.c reduce_avx512.c",
	"@rma":    "rma_memory.c rma_move.c rma_mail.c rma_rows.c rma_far.c rma_accumulate.c",
}

// source is a file of the data plane: names are given without their folders.
func source(t *testing.T, name string) string {
	t.Helper()
	all, err := csource.Files(harness.Root(), ".c")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if strings.HasPrefix(file, csource.Roots[0]+"/") && filepath.Base(file) == name {
			return filepath.Join(harness.Root(), file)
		}
	}
	t.Fatalf("there is no %s below %s", name, csource.Roots[0])
	return ""
}

type program struct {
	path       string
	sources    []string
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
	p := program{path: path, sanitizers: []string{"address,undefined", "thread"}, limit: time.Minute}
	said := false
	for _, line := range strings.Split(string(text), "\n") {
		key, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "// "), ":")
		words := strings.Fields(value)
		switch {
		case !strings.HasPrefix(strings.TrimSpace(line), "// "):
		case key == "sources":
			said = true
			for _, w := range words {
				switch {
				case strings.HasPrefix(w, "@"):
					if groups[w] == "" {
						t.Fatalf("%s: there is no group %s", path, w)
					}
					for _, name := range strings.Fields(groups[w]) {
						p.sources = append(p.sources, source(t, name))
					}
				case w != "-":
					name := filepath.Join(filepath.Dir(path), "..", w) // beside the tests, where those have a folder of their own
					if _, err := os.Stat(name); err != nil {
						name = source(t, filepath.Base(w))
					}
					p.sources = append(p.sources, name)
				}
			}
		case key == "sanitize":
			p.sanitizers = words
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
	if !said {
		t.Fatalf("%s: no comment '// sources: ...' says which files it tests", path)
	}
	return p
}

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
	args := []string{"-std=gnu11", "-g1", "-O1", "-fno-omit-frame-pointer", "-fno-strict-aliasing", "-pthread", "-Wall", "-Wextra",
		"-fsanitize=" + set, "-fno-sanitize-recover=all",
		"-I" + root + "/include"}
	folders, err := csource.Folders(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		args = append(args, "-I"+root+"/"+folder)
	}
	var parts []string
	for _, source := range append([]string{p.path}, p.sources...) {
		path, err := made.compile(slices.Concat(args, []string{source}, compiling)...)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, path)
	}
	args = slices.Concat(args, quickLinker(), []string{"-o", program}, parts, p.flags)
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
