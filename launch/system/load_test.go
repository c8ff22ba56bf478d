package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	s, err := Load(write("the radar.toml", "[[cluster]]\nname = 'a'\nprogram = './a'\nranks = 2\n"))
	if err != nil || s.Name != "the_radar" {
		t.Errorf("%+v, %v", s, err)
	}
	bad := write("bad.toml", "[[cluster]]\nname = 'a'\nranks = 0\ncolour = 'red'\n")
	want := bad + ":1:1: cluster \"a\" has no program: say program = \"FILE\""
	if _, err := Load(bad); err == nil || !strings.HasPrefix(err.Error(), want) ||
		strings.Count(err.Error(), "\n"+bad+":") != 2 {
		t.Errorf("error %v, want one beginning with %s, and two more lines", err, want)
	}
	for _, file := range []string{filepath.Join(dir, "none"), dir} {
		if _, err := Load(file); err == nil ||
			!strings.HasPrefix(err.Error(), file+": cannot read the system file: ") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
