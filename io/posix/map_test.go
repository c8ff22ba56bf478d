package posix

import (
	"os"
	"path/filepath"
	"testing"

	"libspx/core/io"
)

// What is stored into a mapping is in the file, nothing else is, and a shorter file grows to the last byte: also when the file was
// opened for writing alone.
func TestMap(t *testing.T) {
	for name, mode := range map[string]int{"rw": io.ReadWrite | io.Create, "w": io.WriteOnly | io.Create} {
		path := filepath.Join(t.TempDir(), name)
		f := open(t, path, mode)
		if err := f.WriteAt([]byte("0123456789"), 5000); err != nil {
			t.Fatal(err)
		}
		p, done := f.Map(5003, 9001)
		if p == nil {
			t.Fatalf("%s: no mapping", name)
		}
		p[0], p[len(p)-1] = 'x', 'y'
		if err := f.WriteAt([]byte("z"), 5004); err != nil { // by another way, at the same time
			t.Fatal(err)
		}
		done()
		got, err := os.ReadFile(path)
		if err != nil || len(got) != 9001 {
			t.Fatalf("%s: the file has %d bytes: %v", name, len(got), err)
		}
		if text := string(got[5000:5010]); text != "012xz56789" || got[9000] != 'y' || got[0] != 0 || got[8999] != 0 {
			t.Errorf("%s: the file has %q", name, text)
		}
	}
}

// What cannot be mapped, or not for writing, says so and stays as it is.
func TestNoMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("abc"), 0o400); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*File{"device": open(t, "/dev/null", io.ReadWrite), "nothing": open(t, path, io.ReadOnly)} {
		if p, _ := f.Map(3, 3); p != nil {
			t.Errorf("%s: a mapping of nothing", name)
		}
	}
	if p, _ := open(t, "/dev/null", io.WriteOnly).Map(0, 10); p != nil {
		t.Error("a mapping of a device")
	}
}
