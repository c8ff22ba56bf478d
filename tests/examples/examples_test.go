// Package examples compiles and runs the programs of examples/, as `make demo` does.
package examples

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

func example(t *testing.T, name string) string {
	return harness.Compile(t, "examples/"+name, []string{filepath.Join(harness.Root(), "examples", name+".c")}, "-O2", "-lm")
}

func run(t *testing.T, dir, n, program string, args ...string) string {
	t.Helper()
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, n, program, args...), Dir: dir})
	if o.Status != 0 || o.Late {
		t.Fatalf("exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
	}
	return o.Stdout
}

func TestHello(t *testing.T) {
	out := run(t, t.TempDir(), "3", example(t, "hello"))
	for _, want := range []string{"rank 0 of 3", "rank 1 of 3", "rank 2 of 3", "libspx"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestRing(t *testing.T) {
	for _, n := range []string{"1", "2", "8"} {
		if out := run(t, t.TempDir(), n, example(t, "ring"), "50"); !strings.Contains(out, " 0 wrong sums") {
			t.Errorf("%s ranks: %s", n, out)
		}
	}
}

func TestIntsort(t *testing.T) {
	for _, n := range []string{"1", "3", "8"} {
		if out := run(t, t.TempDir(), n, example(t, "intsort"), "16", "12", "3"); !strings.HasPrefix(out, "sorted: ") {
			t.Errorf("%s ranks: %s", n, out)
		}
	}
}

func TestPi(t *testing.T) {
	if out := run(t, t.TempDir(), "4", example(t, "pi"), "100000"); !strings.Contains(out, "pi = 3.14159265") {
		t.Error(out)
	}
}

// Without commands; with them: tests/docs.
func TestElastic(t *testing.T) {
	for _, n := range []string{"1", "5"} {
		if out := run(t, t.TempDir(), n, example(t, "elastic"), "100000"); !strings.Contains(out, "9592 primes below 100000, counted by "+n+" processes at the end") {
			t.Errorf("%s ranks: %s", n, out)
		}
	}
}

// Primes that are known, also when a process is killed, and when a program that was ended goes on with other processes.
func TestPrimes(t *testing.T) {
	for _, c := range []struct{ program, n, arg, says string }{
		{"primes", "1", "1", "9592 primes below 100000, counted by 1 "},
		{"primes", "5", "17", "9592 primes below 100000, counted by 5 "},
		{"primes_ft", "1", "kill", "9592 primes below 100000, counted by 1 processes after 0 "},
		{"primes_ft", "4", "live", "9592 primes below 100000, counted by 4 processes after 0 "},
		{"primes_ft", "2", "kill", "9592 primes below 100000, counted by 1 processes after 1 "},
		{"primes_ft", "6", "kill", "9592 primes below 100000, counted by 5 processes after 1 "},
	} {
		if out := run(t, t.TempDir(), c.n, example(t, c.program), "100000", c.arg); !strings.Contains(out, c.says) {
			t.Errorf("%s, %s ranks, %s: no %q in:\n%s", c.program, c.n, c.arg, c.says, out)
		}
	}
	dir, program := t.TempDir(), example(t, "primes_restart")
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "3", program, "saved", "2000000", "kill"), Dir: dir})
	if o.Status != 137 || o.Late || o.Stdout != "" {
		t.Fatalf("exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
	}
	if out := run(t, dir, "2", program, "saved", "2000000"); out != "goes on at 1120000, as 3 processes have left it\n148933 primes below 2000000, counted by 2 processes at the end\n" {
		t.Error(out)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "saved")); err != nil || len(left) != 0 {
		t.Errorf("left in the directory of checkpoints: %v, %v", left, err)
	}
}

func TestTasks(t *testing.T) {
	for _, n := range []string{"2", "7"} {
		if out := run(t, t.TempDir(), n, example(t, "tasks"), "40"); !strings.Contains(out, "tasks: 40 tasks, ") || !strings.Contains(out, " 0 of them wrong") {
			t.Errorf("%s ranks: %s", n, out)
		}
	}
}

// Sets of 64 workers that change all the time; one worker is killed, and its part is done by others: the sums are checked by the program, the picture here.
func TestRegions(t *testing.T) {
	program := example(t, "regions")
	for _, c := range []struct {
		args []string
		lost string
	}{{[]string{"60"}, " 0 workers lost"}, {[]string{"100", "30", "40"}, " 1 workers lost"}} {
		args := append([]string{filepath.Join(harness.Build(t), "bin/spxrun"), "--with-ft", "-n", "65", program}, c.args...)
		o := harness.Run(t, harness.Command{Args: args, Dir: t.TempDir()})
		if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, " 0 wrong sums,"+c.lost) {
			t.Errorf("%v: exit status %d, late %v\n%s", args, o.Status, o.Late, o.Text())
		}
		for _, mark := range []string{"AAA", "BBB", "CCC", "..."} {
			if !strings.Contains(o.Stdout, mark) {
				t.Errorf("%v: no %s in the picture:\n%s", args, mark, o.Stdout)
			}
		}
		if dead := strings.Contains(o.Stdout, "x"); dead != (len(c.args) > 1) {
			t.Errorf("%v: a dead worker in the picture: %v\n%s", args, dead, o.Stdout)
		}
	}
}

// Masters and workers are killed in turn until two processes are left; the program compares its results itself.
func TestFarm(t *testing.T) {
	program := example(t, "farm")
	for _, c := range []struct {
		n    string
		args []string
		says string
	}{
		{"1", []string{"60"}, "60 tasks, 0 wrong; 1 processes are left after 0"},
		{"3", []string{"100"}, "100 tasks, 0 wrong; 3 processes are left after 0"},
		{"4", []string{"400", "kill"}, "400 tasks, 0 wrong; 2 processes are left"},
		{"9", []string{"400", "kill"}, "400 tasks, 0 wrong; 2 processes are left"},
	} {
		args := append([]string{filepath.Join(harness.Build(t), "bin/spxrun"), "--with-ft", "-n", c.n, program}, c.args...)
		o := harness.Run(t, harness.Command{Args: args, Dir: t.TempDir()})
		if o.Status != 0 || o.Late || !strings.Contains(o.Stdout, c.says) {
			t.Errorf("%v: exit status %d, late %v\n%s", args, o.Status, o.Late, o.Text())
		}
	}
}

// The program compares its numbers itself.
func TestSurvivor(t *testing.T) {
	program := example(t, "survivor")
	for _, c := range []struct {
		n      string
		args   []string
		status int
		says   string
	}{
		{"4", []string{"1"}, 0, " 1000 steps on 3 processes, 0 recoveries"},
		{"8", []string{"3", "kill"}, 0, " 1000 steps on 5 processes, 3 recoveries"},
	} {
		args := append([]string{"--with-ft", "-n", c.n, program}, c.args...)
		o := harness.Run(t, harness.Command{Args: append([]string{filepath.Join(harness.Build(t), "bin/spxrun")}, args...), Dir: t.TempDir()})
		if o.Status != c.status || o.Late || !strings.Contains(o.Stdout, c.says) || !strings.Contains(o.Stdout, "verified") {
			t.Errorf("%v: exit status %d, late %v\n%s", args, o.Status, o.Late, o.Text())
		}
	}
}

// The program checks its own numbers; here the picture is checked, and that the number of ranks does not change it but for
// the borders that it draws.
func TestHeat2D(t *testing.T) {
	program := example(t, "heat2d")
	for _, n := range []string{"1", "4", "6"} {
		dir := t.TempDir()
		if out := run(t, dir, n, program, "heat.png"); !strings.Contains(out, "heat2d: verified") {
			t.Fatalf("%s ranks: %s", n, out)
		}
		data, err := os.ReadFile(filepath.Join(dir, "heat.png"))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s ranks: %v", n, err)
		}
		if b := picture.Bounds(); b.Dx() != 480 || b.Dy() != 320 {
			t.Errorf("%s ranks: the picture has %v", n, b)
		}
		hot, _, _, _ := picture.At(85, 130).RGBA() // inside the S
		cold, _, _, _ := picture.At(5, 5).RGBA()
		if hot < 0xe000 || cold > 0x2000 {
			t.Errorf("%s ranks: red is %#x in a letter and %#x in the corner", n, hot, cold)
		}
	}
}
